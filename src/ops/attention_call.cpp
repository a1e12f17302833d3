// Attention as one library call: forward and backward are two primitives, tied together as a
// custom function that saves the output and the rows' log-sum-exp.
#include "graph/lift.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "ops/common.h"

namespace ingot {

// The gradients of q, k and v (and none of a bias) by ops that have gradients themselves.
static std::vector<Tensor> decomposed(const std::vector<Tensor>& saved, const Tensor& g,
                                      bool causal, double scale, const SourceLoc& loc) {
  const Tensor &q = saved[0], &k = saved[1], &v = saved[2],
               bias = saved.size() == 6 ? saved[5] : Tensor();
  Tensor p = softmax(attention_scores(q, k, bias, causal, scale, loc), -1);
  Tensor dp = matmul(g, v.transpose(-1, -2));
  Tensor ds = p * (dp - (dp * p).sum({-1}, true)) * scale;
  std::vector<Tensor> gradients{matmul(ds, k), matmul(ds.transpose(-1, -2), q),
                                matmul(p.transpose(-1, -2), g)};
  if (bias.defined()) gradients.emplace_back();
  return gradients;
}

Tensor fused_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias,
                       bool causal, double scale, const SourceLoc& loc) {
  const OpSpec spec{AttentionAttrs{causal ? AttentionMask::Causal : AttentionMask::None, scale}};
  auto forward = [=](const std::vector<Tensor>& in) {
    std::vector<NodeRef> nodes;
    nodes.reserve(in.size());
    for (const Tensor& t : in) nodes.push_back(node_of(t));
    return record_taking(Op::Attention, nodes, spec, loc);
  };
  std::vector<Tensor> inputs{q, k, v};
  if (bias.defined()) inputs.push_back(bias);
  if (!is_grad_enabled() || !(q.requires_grad() || k.requires_grad() || v.requires_grad()))
    return lift(forward(inputs));
  CustomFunction attention(
      [=](FunctionContext& ctx, const std::vector<Tensor>& in) {
        NodeRef node = forward(in);
        Tensor lse = result_of(node, 1, loc), o = lift(std::move(node));
        std::vector<Tensor> saved{in[0], in[1], in[2], o, lse};
        if (in.size() == 4) saved.push_back(in[3]);
        ctx.save_for_backward(saved);
        return std::vector<Tensor>{o};
      },
      [=](FunctionContext& ctx, const std::vector<Tensor>& g) {
        const std::vector<Tensor>& s = ctx.saved();
        if (is_grad_enabled()) return decomposed(s, g[0], causal, scale, loc);
        std::vector<NodeRef> in{node_of(s[0]), node_of(s[1]), node_of(s[2]),
                                node_of(s[3]), node_of(g[0]), node_of(s[4])};
        if (s.size() == 6) in.push_back(node_of(s[5]));
        NodeRef dq = record_taking(Op::AttentionGrad, in, spec, loc);
        Tensor dk = result_of(dq, 1, loc), dv = result_of(dq, 2, loc);
        std::vector<Tensor> gradients{lift(std::move(dq)), dk, dv};
        if (s.size() == 6) gradients.emplace_back();  // the bias is a constant
        return gradients;
      },
      "attention");
  return attention(inputs, loc)[0];
}

}  // namespace ingot
