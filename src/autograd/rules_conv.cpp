// Gradients of convolutions, which are convolutions again, and of windows.
#include "autograd/rules.h"
#include "graph/lift.h"
#include "ingot/ops.h"
#include "ops/windows.h"

namespace ingot::autograd {
namespace {

// The same convolution, another of its three results.
Tensor conv_of(const RuleCall& c, Op op, Node* a, Node* b, const Dims& shape) {
  return make(op, {a, b}, {c.attrs<ConvAttrs>(), shape});
}

// Of each window the element at its position, [.., O.., K..] -> [.., O..].
Tensor at_positions(const Tensor& windows, Node* position, const Dims& window) {
  const int n = window.size(), lead = position->rank();
  Dims ones = Dims::filled(lead + n, 1);
  for (int d = 0; d < lead; ++d) ones[d] = position->shape[d];
  Tensor place = arange(window.numel(), {int64, position->device}).reshape(window);
  Tensor hit = lift(position).to(int64).reshape(ones) == place;
  Dims axes;
  for (int d = 0; d < n; ++d) axes.push_back(lead + d);
  return ingot::where(hit, windows, 0.0).sum(axes);
}

}  // namespace

namespace gradient {

// y, x and w of one convolution: each is linear in the other two.
void conv(const RuleCall& c) {
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

void window(const RuleCall& c) {
  const auto& [stride, dilation] = c.attrs<WindowAttrs>();
  const int n = stride.size();
  const FoldAttrs a{stride, dilation, Dims::filled(n, 0), Dims(c.n.shape.end() - n, n)};
  if (c.wants(0)) c.out[0] = make(Op::Fold, {node_of(c.g)}, {a, c.input(0)->shape});
}

// A fold of whole windows goes back as windows; one of single positions as the element at that
// position.
void fold(const RuleCall& c) {
  if (!c.wants(0)) return;
  const FoldAttrs& f = c.attrs<FoldAttrs>();
  const int n = f.window.size();
  Node* v = c.input(0);
  const bool positions = c.in.size() == 2;
  Dims shape = v->shape;
  if (positions)
    for (int64_t k : f.window) shape.push_back(k);
  // What the windows reach beyond the result is 0.
  Dims behind = Dims::filled(n, 0);
  for (int d = 0; d < n; ++d) {
    const int64_t size = c.n.shape[c.n.shape.size() - n + d],
                  count = v->shape[c.n.shape.size() - n + d];
    const int64_t reach = (count - 1) * f.stride[d] + (f.window[d] - 1) * f.dilation[d] + 1;
    behind[d] = std::max<int64_t>(0, reach - f.front[d] - size);
  }
  const Tensor g = pad_last(c.g, f.front, behind, 0, c.n.loc);
  Tensor windows = make(Op::Window, {node_of(g)}, {WindowAttrs{f.stride, f.dilation}, shape});
  c.out[0] = positions ? at_positions(windows, c.input(1), f.window) : windows;
}

}  // namespace gradient
}  // namespace ingot::autograd
