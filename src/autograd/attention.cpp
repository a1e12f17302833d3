// Attention as one library call: forward and backward are primitives of their own, tied together as a custom function
// that saves the output and the rows' log-sum-exp.
#include "autograd/lift.h"
#include "ingot/autograd.h"
#include "ops/common.h"

namespace ingot {

using autograd::lift;
using autograd::node_of;

Tensor fused_attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal, double scale, const SourceLoc& loc) {
  Attrs at;
  at.i = causal;
  at.f = scale;
  auto pick = [loc](const Tensor& of, int64_t number) {
    Attrs a;
    a.i = number;
    return lift(record(Op::Pick, {node_of(of)}, a, loc));
  };
  if (!is_grad_enabled() || !(q.requires_grad() || k.requires_grad() || v.requires_grad()))
  {
    // The call writes the log-sum-exp too: the fence keeps it part of the program.
    Tensor o = lift(record(Op::Attention, {node_of(q), node_of(k), node_of(v)}, at, loc));
    return lift(record(Op::Fence, {node_of(o), node_of(pick(o, 1))}, {}, loc));
  }
  CustomFunction attention(
      [=](FunctionContext& ctx, const std::vector<Tensor>& in) {
        Tensor o = lift(record(Op::Attention, {node_of(in[0]), node_of(in[1]), node_of(in[2])}, at, loc));
        ctx.save_for_backward({in[0], in[1], in[2], o, pick(o, 1)});
        return std::vector<Tensor>{o};
      },
      [=](FunctionContext& ctx, const std::vector<Tensor>& g) {
        const std::vector<Tensor>& s = ctx.saved();
        Node* in[6] = {node_of(s[0]), node_of(s[1]), node_of(s[2]), node_of(s[3]), node_of(g[0]), node_of(s[4])};
        Tensor dq = lift(record(Op::AttentionGrad, std::span<Node* const>(in, 6), at, loc));
        return std::vector<Tensor>{dq, pick(dq, 1), pick(dq, 2)};
      },
      "attention");
  return attention({q, k, v}, loc)[0];
}

}  // namespace ingot
