// Recurrent layers of many forms, run on any device and in any type, with all their gradients: the
// library call of a backend is compared with the steps recorded one by one in float64.
#pragma once
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

namespace ingot::test {

struct LstmCase {
  const char* name;
  int64_t T, N, F, H, layers = 1;
  bool both = false, batch_first = false, states = false, bias = true;
  bool last_only = false;  // the gradient comes from the last states alone
  std::vector<int64_t> lengths{};
  int64_t gates = 4;  // LSTM; 3: GRU, 1: RNN
  bool relu = false;  // RNN
};

inline std::vector<LstmCase> lstm_cases(int64_t gates = 4, bool relu = false) {
  std::vector<LstmCase> all{
      {"plain", 9, 6, 5, 8},
      {"odd sizes", 11, 7, 3, 13},
      {"one row", 40, 1, 4, 10},
      {"one step", 1, 5, 4, 6, 1, false, false, true},
      {"one unit", 33, 2, 2, 1},
      {"wide", 5, 35, 6, 70, 1, false, false, true},
      {"against time, states", 10, 4, 5, 12, 1, true, false, true},
      {"two layers, two ways", 8, 5, 7, 36, 2, true, true, true},
      {"no bias, batch first", 12, 3, 4, 33, 1, false, true, false, false},
      {"last states alone", 9, 4, 3, 20, 1, true, false, true, true, true},
      {"lengths", 9, 5, 3, 11, 2, true, false, true, true, false, {9, 1, 5, 9, 3}},
      {"lengths, batch first", 12, 4, 3, 8, 1, true, true, false, true, false, {2, 12, 7, 1}},
      {"lengths, last states", 8, 6, 3, 9, 1, true, false, true, true, true, {4, 8, 1, 2, 3, 5}}};
  for (LstmCase& c : all) c.gates = gates, c.relu = relu;
  return all;
}

struct LstmInputs {
  std::vector<Tensor> leaves;  // x, weights, (h0, c0)
  size_t weights = 0;
  Tensor gy, gh, gc;

  explicit LstmInputs(const LstmCase& c) {
    const Generator gen(11);
    auto made = [&](const Dims& d, double by = 1) {
      return (randn(d, {float64}, gen) * by).eval_();
    };
    const int64_t ways = c.both ? 2 : 1;
    leaves.push_back(made(c.batch_first ? Dims{c.N, c.T, c.F} : Dims{c.T, c.N, c.F}));
    for (int64_t i = 0; i < c.layers * ways; ++i) {
      const int64_t in = i < ways ? c.F : c.H * ways;
      const double by = 1 / std::sqrt(static_cast<double>(c.H));
      const int64_t rows = c.gates * c.H;
      leaves.push_back(made({rows, in}, by));
      leaves.push_back(made({rows, c.H}, by));
      for (int b = 0; b < 2 && c.bias; ++b) leaves.push_back(made({rows}, by));
    }
    weights = leaves.size() - 1;
    const Dims state{c.layers * ways, c.N, c.H};
    for (int s = 0; s < (c.gates == 4 ? 2 : 1) && c.states; ++s) leaves.push_back(made(state));
    gy = made(c.batch_first ? Dims{c.N, c.T, c.H * ways} : Dims{c.T, c.N, c.H * ways});
    gh = made(state);
    gc = made(state);
  }
};

inline std::vector<double> numbers(const Tensor& t) {
  return t.to(float64).to(Device("cpu")).to_vector<double>();
}

/// output, h, c, then the gradients of all leaves. Under Autocast to `cast` unless that is the type
/// itself.
inline std::vector<std::vector<double>> run_lstm(const LstmCase& c, const LstmInputs& in,
                                                 const Device& device, DType type, DType cast,
                                                 bool twice = false) {
  std::vector<Tensor> x;
  for (const Tensor& t : in.leaves) x.push_back(t.to(type).to(device).detach().requires_grad_());
  const std::vector<Tensor> weights(x.begin() + 1,
                                    x.begin() + 1 + static_cast<int64_t>(in.weights));
  RnnOptions o;
  o.num_layers = c.layers;
  o.bidirectional = c.both;
  o.batch_first = c.batch_first;
  o.lengths = c.lengths;
  if (c.relu) o.nonlinearity = "relu";
  RnnResult r;
  {
    amp::Autocast scope(cast == type ? bfloat16 : cast, cast != type);
    const Tensor h0 = c.states ? x[1 + in.weights] : Tensor();
    const Tensor c0 = c.states && c.gates == 4 ? x.back() : Tensor();
    r = c.gates == 4   ? lstm(x[0], h0, c0, weights, c.bias, o)
        : c.gates == 3 ? gru(x[0], h0, weights, c.bias, o)
                       : rnn(x[0], h0, weights, c.bias, o);
  }
  CHECK(r.output.dtype() == cast);
  std::vector<Tensor> of{r.output, r.h}, g{in.gy, in.gh};
  if (c.gates == 4) {
    CHECK(r.c.dtype() == cast);
    of.push_back(r.c);
    g.push_back(in.gc);
  }
  if (c.last_only) of.erase(of.begin()), g.erase(g.begin());
  for (Tensor& t : g) t = t.to(cast).to(device);
  std::vector<Tensor> all = grad(of, x, g, {}, twice);
  if (twice) {
    Tensor sum = zeros({}, {type, device});
    for (const Tensor& t : all) sum = sum + (t * t).sum();
    all = grad({sum}, x);
  }
  all.insert(all.begin(), {r.output, r.h});
  if (c.gates == 4) all.insert(all.begin() + 2, r.c);
  eval(all);
  std::vector<std::vector<double>> out;
  for (const Tensor& t : all) out.push_back(numbers(t));
  return out;
}

inline double lstm_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double d = 0, n = 0;
  for (size_t i = 0; i < a.size(); ++i) d += std::pow(a[i] - b[i], 2), n += std::pow(b[i], 2);
  return std::sqrt(d / std::max(n, 1e-30));
}

/// Every case on a device in a type, against float64 on the CPU. Returns the largest distance.
inline double check_lstm(const Device& device, DType type, DType cast, double near,
                         int64_t gates = 4, bool relu = false, bool few = false) {
  double largest = 0;
  for (const LstmCase& c : lstm_cases(gates, relu)) {
    if (few && !c.states) continue;
    CAPTURE(c.name);
    CAPTURE(name_of(cast));
    const LstmInputs in(c);
    const auto want = run_lstm(c, in, Device("cpu"), float64, float64),
               got = run_lstm(c, in, device, type, cast);
    REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      CAPTURE(i);
      REQUIRE(got[i].size() == want[i].size());
      const double d = lstm_distance(got[i], want[i]);
      CHECK(d < near);
      largest = std::max(largest, d);
    }
  }
  return largest;
}

/// How many ops an LSTM of T steps is recorded as, with its gradients.
inline std::string lstm_recorded(int64_t T, const Device& device, DType cast, int64_t gates = 4) {
  LstmCase c{"counted", T, 8, 4, 16, 2, true};
  c.gates = gates;
  std::vector<Tensor> w;
  for (const Tensor& t : LstmInputs(c).leaves)
    w.push_back(t.to(float32).to(device).detach().requires_grad_());
  eval(w);
  RnnOptions o;
  o.num_layers = c.layers;
  o.bidirectional = true;
  RnnResult r;
  {
    amp::Autocast scope(cast == float32 ? bfloat16 : cast, cast != float32);
    const std::vector<Tensor> weights(w.begin() + 1, w.end());
    r = gates == 4   ? lstm(w[0], {}, {}, weights, true, o)
        : gates == 3 ? gru(w[0], {}, weights, true, o)
                     : rnn(w[0], {}, weights, true, o);
  }
  const std::string text = explain(grad({r.output}, w, {ones_like(r.output)})).text;
  return text.substr(0, text.find(" recorded ops"));
}

}  // namespace ingot::test
