// The gradient of an LSTM layer's steps. Backwards through time only the cell's gradient and one product are
// left for each step; the recurrent weight's gradient is one product over all steps instead of a sum of one
// for each. Where the gradient shall have a history itself, the steps are recorded again, and everything
// below is differentiable.
#include "ops/recurrent.h"

#include "ingot/autograd.h"
#include "ingot/ops.h"

namespace ingot {
namespace {

struct GateValues {
  Tensor in, forget, fresh, out, c;
};

struct Given {
  Tensor z, h0, c0, weight;
  bool backwards;
  SourceLoc loc;

  int64_t steps() const { return z.size(0); }
  int64_t at(int64_t i) const { return backwards ? steps() - 1 - i : i; }
};

Given given_of(const std::vector<Tensor>& in, bool backwards, const SourceLoc& loc) {
  return {in[0], in[1], in[2], in[3], backwards, loc};
}

// In the order of time, or against it; `all` gets every h.
std::vector<GateValues> walk(const Given& k, Tensor& all) {
  const int64_t H = k.weight.size(1);
  all = zeros({k.steps(), k.z.size(1), H}, {k.z.dtype(), k.z.device()});
  std::vector<GateValues> walked;
  Tensor h = k.h0, c = k.c0;
  for (int64_t i = 0; i < k.steps(); ++i) {
    // Gate by gate, so that the sums are not stored.
    Tensor z = k.z.select(0, k.at(i)), r = linear(h, k.weight);
    auto part = [&](int64_t gate) { return z.narrow(1, gate * H, H) + r.narrow(1, gate * H, H); };
    GateValues s{sigmoid(part(0)), sigmoid(part(1)), tanh(part(2)), sigmoid(part(3)), {}};
    s.c = c = s.forget * c + s.in * s.fresh;
    h = s.out * tanh(c);
    all = put_step(all, h, k.at(i), k.loc);
    walked.push_back(s);
  }
  return walked;
}

std::vector<Tensor> back(const Given& k, const std::vector<GateValues>& walked, const Tensor& all,
                         const std::vector<Tensor>& g) {
  const int64_t T = k.steps(), N = k.z.size(1), H = k.weight.size(1);
  Tensor dz = zeros(k.z.shape(), {k.z.dtype(), k.z.device()}), dc = g[1], dh;
  for (int64_t i = T - 1; i >= 0; --i) {
    const GateValues& s = walked[static_cast<size_t>(i)];
    const Tensor before = i > 0 ? walked[static_cast<size_t>(i) - 1].c : k.c0;
    Tensor top = g[0].select(0, k.at(i)), t = tanh(s.c);
    Tensor down = dh.defined() ? top + dh : top;
    dc = dc + down * s.out * (1.0 - t * t);
    Tensor gates = cat({dc * s.fresh * s.in * (1.0 - s.in), dc * before * s.forget * (1.0 - s.forget),
                        dc * s.in * (1.0 - s.fresh * s.fresh), down * t * s.out * (1.0 - s.out)},
                       1);
    dz = put_step(dz, gates, k.at(i), k.loc);
    dh = matmul(gates, k.weight);
    dc = dc * s.forget;
  }
  // The h that each step began with, in the order of z.
  Tensor first = k.h0.unsqueeze(0), rest = k.backwards ? all.narrow(0, 1, T - 1) : all.narrow(0, 0, T - 1);
  Tensor before = k.backwards ? cat({rest, first}, 0) : cat({first, rest}, 0);
  Tensor flat = dz.reshape({T * N, 4 * H});
  return {dz, dh, dc, matmul(flat.transpose(0, 1), before.reshape({T * N, H}))};
}

}  // namespace

LstmSteps lstm_steps(const Tensor& z, const Tensor& h0, const Tensor& c0, const Tensor& weight,
                     bool backwards, const SourceLoc& loc) {
  const std::vector<Tensor> inputs{z, h0, c0, weight};
  const size_t n = inputs.size();
  CustomFunction steps(
      [=](FunctionContext& ctx, const std::vector<Tensor>& in) {
        Tensor all;
        const std::vector<GateValues> walked = walk(given_of(in, backwards, loc), all);
        std::vector<Tensor> saved = in;
        saved.push_back(all);
        for (const GateValues& s : walked) saved.insert(saved.end(), {s.in, s.forget, s.fresh, s.out, s.c});
        ctx.save_for_backward(saved);
        return std::vector<Tensor>{all, walked.back().c * 1.0};
      },
      [=](FunctionContext& ctx, const std::vector<Tensor>& g) {
        const std::vector<Tensor>& s = ctx.saved();
        const Given k = given_of({s.begin(), s.begin() + static_cast<int64_t>(n)}, backwards, loc);
        Tensor all = s[n];
        std::vector<GateValues> walked;
        if (is_grad_enabled())
          walked = walk(k, all);
        else
          for (size_t i = n + 1; i < s.size(); i += 5)
            walked.push_back({s[i], s[i + 1], s[i + 2], s[i + 3], s[i + 4]});
        return back(k, walked, all, g);
      },
      "lstm");
  const std::vector<Tensor> r = steps(inputs, loc);
  return {r[0], r[1]};
}

}  // namespace ingot
