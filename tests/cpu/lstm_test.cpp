// The steps of an LSTM as one call of the CPU backend, and recorded one by one.
#include "backend/cpu/support/threads.h"
#include "neural/lstm_check.h"

using namespace ingot;
using namespace ingot::test;

TEST_CASE("an LSTM of float32 and its gradients are those of float64") {
  check_lstm(Device("cpu"), float32, float32, 2e-5);
}

TEST_CASE("GRUs and plain RNNs of float32 and their gradients are those of float64") {
  check_lstm(Device("cpu"), float32, float32, 2e-5, 3);
  check_lstm(Device("cpu"), float32, float32, 2e-5, 1);
  check_lstm(Device("cpu"), float32, float32, 2e-5, 1, true);
}

TEST_CASE("under Autocast GRUs and plain RNNs compute in 16 bits") {
  check_lstm(Device("cpu"), float32, bfloat16, 4e-2, 3);
  check_lstm(Device("cpu"), float32, float16, 5e-3, 3);
  check_lstm(Device("cpu"), float32, bfloat16, 5e-2, 1);
}

TEST_CASE("the steps of GRUs and plain RNNs are one call forward and one backward") {
  for (int64_t gates : {3, 1}) {
    CAPTURE(gates);
    LstmCase c{"calls", 9, 6, 5, 8};
    c.gates = gates;
    std::vector<Tensor> x;
    for (const Tensor& t : LstmInputs(c).leaves)
      x.push_back(t.to(float32).detach().requires_grad_());
    const std::vector<Tensor> w(x.begin() + 1, x.end());
    const Tensor y = gates == 3 ? gru(x[0], {}, w).output : rnn(x[0], {}, w).output;
    const std::string text = explain(grad({y.sum()}, x)).text;
    const std::string name = gates == 3 ? "gru" : "rnn";
    CHECK(text.find(name + " [packed steps]") != std::string::npos);
    CHECK(text.find(name + "_grad [packed steps]") != std::string::npos);
    CHECK(lstm_recorded(8, Device("cpu"), float32, gates) ==
          lstm_recorded(200, Device("cpu"), float32, gates));
  }
}

TEST_CASE("under Autocast an LSTM computes in 16 bits, with a cell state of 32") {
  check_lstm(Device("cpu"), float32, bfloat16, 4e-2);
  check_lstm(Device("cpu"), float32, float16, 5e-3);
  check_lstm(Device("cpu"), bfloat16, bfloat16, 4e-2);
}

TEST_CASE("GRUs, plain RNNs and LSTMs with lengths under Autocast stay near float64") {
  const int64_t T = 6, N = 4, F = 3, H = 8;
  for (int64_t gates : {4, 3, 1}) {
    auto run = [&](DType t, bool cast) {
      const Generator gen(5);
      std::vector<Tensor> x;
      for (const Dims& d : {Dims{T, N, F}, Dims{gates * H, F}, Dims{gates * H, H}, Dims{gates * H},
                            Dims{gates * H}})
        x.push_back((randn(d, {float64}, gen) * 0.4).to(t).detach().requires_grad_());
      amp::Autocast scope(bfloat16, cast);
      const std::vector<Tensor> w(x.begin() + 1, x.end());
      RnnOptions o;
      o.lengths = {6, 1, 4, 5};
      Tensor y = gates == 4   ? lstm(x[0], {}, {}, w, true, o).output
                 : gates == 3 ? gru(x[0], {}, w).output
                              : rnn(x[0], {}, w).output;
      std::vector<Tensor> all = grad({y.to(t).square().sum()}, x);
      CHECK(y.dtype() == (cast ? bfloat16 : t));
      all.push_back(y);
      return all;
    };
    const std::vector<Tensor> want = run(float64, false), got = run(float32, true);
    for (size_t i = 0; i < want.size(); ++i)
      CHECK(lstm_distance(numbers(got[i]), numbers(want[i])) < 4e-2);
  }
}

TEST_CASE("gradients of an LSTM's gradients") {
  for (const LstmCase& c :
       {LstmCase{"second", 8, 5, 3, 6, 1, true, false, true}, LstmCase{"short", 3, 2, 2, 3}}) {
    const LstmInputs in(c);
    const auto want = run_lstm(c, in, Device("cpu"), float64, float64, true),
               got = run_lstm(c, in, Device("cpu"), float32, float32, true);
    for (size_t i = 0; i < want.size(); ++i) CHECK(lstm_distance(got[i], want[i]) < 1e-4);
  }
}

TEST_CASE("gradients of the gradients of GRUs and plain RNNs") {
  for (int64_t gates : {3, 1}) {
    LstmCase c{"second", 8, 5, 3, 6, 1, true, false, true};
    c.gates = gates;
    const LstmInputs in(c);
    const auto want = run_lstm(c, in, Device("cpu"), float64, float64, true),
               got = run_lstm(c, in, Device("cpu"), float32, float32, true);
    for (size_t i = 0; i < want.size(); ++i) CHECK(lstm_distance(got[i], want[i]) < 1e-4);
  }
}

TEST_CASE("an LSTM without gradients, and one whose states alone are asked for") {
  const LstmCase c{"inference", 12, 6, 5, 40, 1, true, false, true};
  const LstmInputs in(c);
  const auto want = run_lstm(c, in, Device("cpu"), float64, float64);
  NoGrad guard;
  std::vector<Tensor> x;
  for (const Tensor& t : in.leaves) x.push_back(t.to(float32));
  RnnOptions o;
  o.bidirectional = true;
  auto run = [&] {
    return lstm(x[0], x[x.size() - 2], x.back(), {x.begin() + 1, x.end() - 2}, true, o);
  };
  RnnResult r = run();
  CHECK(explain(r.output).text.find("lstm") != std::string::npos);
  CHECK(lstm_distance(numbers(r.output), want[0]) < 1e-5);
  CHECK(lstm_distance(numbers(r.h), want[1]) < 1e-5);
  CHECK(lstm_distance(numbers(run().c), want[2]) < 1e-5);
}

TEST_CASE("what an LSTM records does not grow with its steps") {
  CHECK(lstm_recorded(8, Device("cpu"), float32) == lstm_recorded(200, Device("cpu"), float32));
  CHECK(lstm_recorded(8, Device("null"), bfloat16) == lstm_recorded(200, Device("null"), bfloat16));
}

TEST_CASE("a recurrent layer's bits do not depend on the number of threads") {
  const LstmCase c{"threads", 6, 70, 20, 130, 1, true, false, true};
  LstmCase gru_case = c, rnn_case = c;
  gru_case.gates = 3, rnn_case.gates = 1;
  for (const LstmCase& each : {c, gru_case, rnn_case}) {
    const LstmInputs in(each);
    const int before = get_num_threads();
    set_num_threads(1);
    const auto one = run_lstm(each, in, Device("cpu"), float32, float32);
    for (int threads : {2, 5, 12}) {  // 12 are too many for each to have rows of its own
      set_num_threads(threads);
      CHECK(one == run_lstm(each, in, Device("cpu"), float32, float32));
    }
    set_num_threads(before);
  }
}

TEST_CASE(
    "an LSTM's gates are stored where the inputs' parts were, and their gradients where the gates "
    "were") {
  const int64_t T = 64, N = 32, F = 16, H = 64;
  const Generator gen(3);
  std::vector<Tensor> x;
  for (const Dims& d : {Dims{T, N, F}, Dims{4 * H, F}, Dims{4 * H, H}, Dims{4 * H}, Dims{4 * H}})
    x.push_back(randn(d, {float32}, gen).detach().requires_grad_());
  const Tensor y = lstm(x[0], {}, {}, {x.begin() + 1, x.end()}).output;
  const std::vector<Tensor> all = grad({y.sum()}, x);
  const auto gates = static_cast<size_t>(T * N * 4 * H) * sizeof(float);
  // Beside the gates: x, h, c, their gradients and the weights, not much more together.
  CHECK(explain(all).peak_bytes < gates * 5 / 2);
}
