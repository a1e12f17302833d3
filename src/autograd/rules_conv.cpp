// Gradients of convolutions, which are convolutions again, and of windows.
#include "autograd/lift.h"
#include "autograd/rules.h"
#include "ingot/ops.h"
#include "ops/windows.h"

namespace ingot::autograd {
namespace {

// The same convolution, another of its three results.
Tensor conv_of(const RuleCall& c, Op op, Node* a, Node* b, const Dims& shape) {
  Attrs at;
  at.d0 = c.n.ext->d0;
  at.d1 = c.n.ext->d1;
  at.i = c.n.imm_i;
  if (op != Op::Conv) at.shape = shape;
  return make(op, {a, b}, at);
}

// y, x and w of one convolution: each is linear in the other two.
void conv_rule_of(const RuleCall& c) {
  NodeRef g = node_of(c.g), a = c.input(0), b = c.input(1);
  switch (c.n.op) {
    case Op::Conv:  // x, w
      if (c.wants(0)) c.out[0] = conv_of(c, Op::ConvGradInput, g, b, a->shape);
      if (c.wants(1)) c.out[1] = conv_of(c, Op::ConvGradWeight, a, g, b->shape);
      return;
    case Op::ConvGradInput:  // gy, w; g is x-like
      if (c.wants(0)) c.out[0] = conv_of(c, Op::Conv, g, b, {});
      if (c.wants(1)) c.out[1] = conv_of(c, Op::ConvGradWeight, g, a, b->shape);
      return;
    default:  // x, gy; g is w-like
      if (c.wants(0)) c.out[0] = conv_of(c, Op::ConvGradInput, b, g, a->shape);
      if (c.wants(1)) c.out[1] = conv_of(c, Op::Conv, a, g, {});
  }
}

Tensor window_back(const RuleCall& c) {
  const Dims &stride = c.n.ext->d0, &dilation = c.n.ext->d1;
  const int n = stride.size();
  Attrs at;
  at.d0 = stride;
  for (int64_t d : dilation) at.d0.push_back(d);
  for (int d = 0; d < n; ++d) at.d0.push_back(0);
  at.d1 = Dims(c.n.shape.end() - n, n);
  at.shape = c.input(0)->shape;
  return make(Op::Fold, {node_of(c.g)}, at);
}

// A fold of whole windows goes back as windows; one of single positions as the element at that position.
Tensor fold_back(const RuleCall& c) {
  const Dims& kernel = c.n.ext->d1;
  const int n = kernel.size();
  Node* v = c.input(0);
  const bool picks = c.in.size() == 2;
  Attrs at;
  at.d0 = Dims(c.n.ext->d0.begin(), n);
  at.d1 = Dims(c.n.ext->d0.begin() + n, n);
  at.shape = v->shape;
  if (picks)
    for (int64_t k : kernel) at.shape.push_back(k);
  // What the windows reach beyond the result is 0.
  const Dims front(c.n.ext->d0.begin() + 2 * n, n);
  Dims behind = Dims::filled(n, 0);
  for (int d = 0; d < n; ++d) {
    const int64_t size = c.n.shape[c.n.shape.size() - n + d], count = v->shape[c.n.shape.size() - n + d];
    const int64_t reach = (count - 1) * at.d0[d] + (kernel[d] - 1) * at.d1[d] + 1;
    behind[d] = std::max<int64_t>(0, reach - front[d] - size);
  }
  const Tensor g = pad_last(c.g, front, behind, 0, c.n.loc);
  Tensor windows = make(Op::Window, {node_of(g)}, at);
  if (!picks) return windows;
  Dims ones = Dims::filled(v->rank() + n, 1), flat = kernel;
  for (int d = 0; d < v->rank(); ++d) ones[d] = v->shape[d];
  Tensor place = arange(kernel.numel(), {int64, v->device}).reshape(flat);
  Tensor hit = lift(c.input(1)).to(int64).reshape(ones) == place;
  Dims axes;
  for (int d = 0; d < n; ++d) axes.push_back(v->rank() + d);
  return where(hit, windows, 0.0).sum(axes);
}

}  // namespace

bool conv_rule(const RuleCall& c) {
  switch (c.n.op) {
    case Op::Conv:
    case Op::ConvGradInput:
    case Op::ConvGradWeight:
      return conv_rule_of(c), true;
    case Op::Window:
      if (c.wants(0)) c.out[0] = window_back(c);
      return true;
    case Op::Fold:
      if (c.wants(0)) c.out[0] = fold_back(c);
      return true;
    default:
      return false;
  }
}

}  // namespace ingot::autograd
