// The steps of an LSTM layer and their gradient: a library call each where the backend has them
// (Op::Lstm), else recorded step by step. Backwards through time only the cell's gradient and one
// product are left for each step; the recurrent weight's gradient is one product over all steps
// instead of a sum of one for each. Where the gradient shall have a history itself, the steps are
// recorded again, and everything below is differentiable.
#include "ops/recurrent.h"

#include "graph/lift.h"
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
  /// What the cell computes in, and keeps its c in: values in 16 bits are sums of many steps
  /// otherwise.
  DType wide() const { return is_half(z.dtype()) ? float32 : z.dtype(); }
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
  Tensor h = k.h0, c = k.c0.to(k.wide());
  for (int64_t i = 0; i < k.steps(); ++i) {
    // Gate by gate, so that the sums are not stored.
    Tensor z = k.z.select(0, k.at(i)), r = linear(h, k.weight);
    auto part = [&](int64_t gate) {
      return z.narrow(1, gate * H, H).to(k.wide()) + r.narrow(1, gate * H, H).to(k.wide());
    };
    GateValues s{sigmoid(part(0)), sigmoid(part(1)), tanh(part(2)), sigmoid(part(3)), {}};
    s.c = c = s.forget * c + s.in * s.fresh;
    h = (s.out * tanh(c)).to(k.z.dtype());
    for (Tensor* kept : {&s.in, &s.forget, &s.fresh, &s.out}) *kept = kept->to(k.z.dtype());
    all = put_step(all, h, k.at(i), k.loc);
    walked.push_back(s);
  }
  return walked;
}

// One product over all steps.
Tensor weight_gradient(const Given& k, const Tensor& dz, const Tensor& all) {
  const int64_t T = k.steps(), N = k.z.size(1), H = k.weight.size(1);
  // The h that each step began with, in the order of z.
  Tensor first = k.h0.unsqueeze(0),
         rest = k.backwards ? all.narrow(0, 1, T - 1) : all.narrow(0, 0, T - 1);
  Tensor before = k.backwards ? cat({rest, first}, 0) : cat({first, rest}, 0);
  return matmul(dz.reshape({T * N, 4 * H}).transpose(0, 1), before.reshape({T * N, H}));
}

std::vector<Tensor> back(const Given& k, const std::vector<GateValues>& walked, const Tensor& all,
                         const std::vector<Tensor>& g) {
  const int64_t T = k.steps();
  Tensor dz = zeros(k.z.shape(), {k.z.dtype(), k.z.device()}), dc = g[1].to(k.wide()), dh;
  for (int64_t i = T - 1; i >= 0; --i) {
    GateValues s = walked[static_cast<size_t>(i)];
    for (Tensor* kept : {&s.in, &s.forget, &s.fresh, &s.out}) *kept = kept->to(k.wide());
    const Tensor before = i > 0 ? walked[static_cast<size_t>(i) - 1].c : k.c0.to(k.wide());
    Tensor top = g[0].select(0, k.at(i)).to(k.wide()), t = tanh(s.c);
    Tensor down = dh.defined() ? top + dh.to(k.wide()) : top;
    dc = dc + down * s.out * (1.0 - t * t);
    Tensor gates =
        cat({dc * s.fresh * s.in * (1.0 - s.in), dc * before * s.forget * (1.0 - s.forget),
             dc * s.in * (1.0 - s.fresh * s.fresh), down * t * s.out * (1.0 - s.out)},
            1)
            .to(k.z.dtype());
    dz = put_step(dz, gates, k.at(i), k.loc);
    dh = matmul(gates, k.weight);
    dc = dc * s.forget;
  }
  return {dz, dh, dc.to(k.c0.dtype()), weight_gradient(k, dz, all)};
}

}  // namespace

// ---- As one call of a library, where the backend has it.

namespace {

NodeRef call(const Given& k) {
  const Tensor c0 = k.c0.to(k.wide());
  return record(Op::Lstm, {node_of(k.z), node_of(k.h0), node_of(c0), node_of(k.weight)},
                {RecurrentAttrs{k.backwards}}, k.loc);
}

// From all of c the last one, in the type that was given.
Tensor last_c(const Given& k, const Tensor& c) {
  return (c.select(0, k.at(k.steps() - 1)) * 1.0).to(k.c0.dtype());
}

// gates and c: what the call kept.
std::vector<Tensor> call_back(const Given& k, const Tensor& all, const Tensor& gates,
                              const Tensor& c, const std::vector<Tensor>& g, bool first_h,
                              bool first_c) {
  const Tensor c0 = k.c0.to(k.wide()), dc = g[1].to(k.wide());
  NodeRef call = record(
      Op::LstmGrad,
      {node_of(gates), node_of(c), node_of(c0), node_of(k.weight), node_of(g[0]), node_of(dc)},
      {RecurrentAttrs{k.backwards}}, k.loc);
  Tensor dh0 = first_h ? result_of(call, 1, k.loc).to(k.h0.dtype()) : Tensor();
  Tensor dc0 = first_c ? result_of(call, 2, k.loc).to(k.c0.dtype()) : Tensor();
  Tensor dz = lift(std::move(call));
  return {dz, dh0, dc0, weight_gradient(k, dz, all)};
}

}  // namespace

static LstmSteps called_steps(const Given& given) {
  const bool backwards = given.backwards;
  const SourceLoc loc = given.loc;
  const std::vector<Tensor> inputs{given.z, given.h0, given.c0, given.weight};
  bool wanted = false;
  for (const Tensor& t : inputs) wanted = wanted || t.requires_grad();
  if (!is_grad_enabled() || !wanted) {
    NodeRef all = call(given);
    Tensor c = result_of(all, 2, loc);
    return {lift(std::move(all)), last_c(given, c)};
  }
  const size_t n = inputs.size();
  CustomFunction steps(
      [=](FunctionContext& ctx, const std::vector<Tensor>& in) {
        const Given k = given_of(in, backwards, loc);
        NodeRef node = call(k);
        Tensor gates = result_of(node, 1, loc), c = result_of(node, 2, loc),
               all = lift(std::move(node));
        std::vector<Tensor> saved = in;
        saved.insert(saved.end(), {all, gates, c});
        ctx.save_for_backward(saved);
        return std::vector<Tensor>{all, last_c(k, c)};
      },
      [=](FunctionContext& ctx, const std::vector<Tensor>& g) {
        const std::vector<Tensor>& s = ctx.saved();
        const Given k = given_of({s.begin(), s.begin() + static_cast<int64_t>(n)}, backwards, loc);
        if (!is_grad_enabled())
          return call_back(k, s[n], s[n + 1], s[n + 2], g, ctx.needs_input_grad(1),
                           ctx.needs_input_grad(2));
        Tensor all;
        const std::vector<GateValues> walked = walk(k, all);
        return back(k, walked, all, g);
      },
      "lstm");
  const std::vector<Tensor> r = steps(inputs, loc);
  return {r[0], r[1]};
}

LstmSteps lstm_steps(const Tensor& z, const Tensor& h0, const Tensor& c0, const Tensor& weight,
                     bool backwards, const SourceLoc& loc) {
  const std::vector<Tensor> inputs{z, h0, c0, weight};
  const NodeRef of = node_of(z), by = node_of(weight);
  if (has_lstm(*of, *by)) return called_steps(given_of(inputs, backwards, loc));
  const size_t n = inputs.size();
  CustomFunction steps(
      [=](FunctionContext& ctx, const std::vector<Tensor>& in) {
        Tensor all;
        const std::vector<GateValues> walked = walk(given_of(in, backwards, loc), all);
        std::vector<Tensor> saved = in;
        saved.push_back(all);
        for (const GateValues& s : walked)
          saved.insert(saved.end(), {s.in, s.forget, s.fresh, s.out, s.c});
        ctx.save_for_backward(saved);
        return std::vector<Tensor>{all, (walked.back().c * 1.0).to(in[2].dtype())};
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
