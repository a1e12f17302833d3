// Gradients of the movement ops (index arithmetic backwards) and of the ops that only carry a value
// on.
#include "autograd/rules.h"
#include "graph/lift.h"
#include "ingot/ops.h"

namespace ingot::autograd {
namespace {

Tensor zeros_of(const Dims& shape, const Node& like) {
  return full(shape, 0.0, {like.dtype, like.device});
}

Tensor slice_at(const Tensor& g, const Dims& start, const Dims& step, const Dims& shape) {
  return make(Op::Slice, {node_of(g)}, {SliceAttrs{start, step}, shape});
}

// Steps of 1 and -1 are adjacent in the input: reverse the axes that run backwards, and pad. Other
// steps leave gaps, so the gradient is written into zeros.
Tensor slice_back(const RuleCall& c) {
  const auto& [start, step] = c.attrs<SliceAttrs>();
  const Dims &size = c.n.shape, &full_shape = c.input(0)->shape;
  bool dense = true, reversed = false;
  for (int d = 0; d < size.size(); ++d) {
    dense = dense && (step[d] == 1 || step[d] == -1 || size[d] <= 1);
    reversed = reversed || (step[d] < 0 && size[d] > 1);
  }
  if (!dense)
    return make(Op::SliceAssign, {node_of(zeros_of(full_shape, c.n)), node_of(c.g)},
                {c.attrs<SliceAttrs>()});
  Tensor g = c.g;
  PadAttrs pad{start};
  SliceAttrs back{start, Dims::filled(size.size(), 1)};
  for (int d = 0; d < size.size(); ++d) {
    const bool reverse = step[d] < 0 && size[d] > 1;
    back.start[d] = reverse ? size[d] - 1 : 0;
    back.step[d] = reverse ? -1 : 1;
    if (reverse) pad.front[d] = start[d] - (size[d] - 1);
    if (size[d] == 0) pad.front[d] = 0;  // an empty slice may start at the end
  }
  if (reversed) g = slice_at(g, back.start, back.step, size);
  return make(Op::Pad, {node_of(g)}, {pad, full_shape});
}

}  // namespace

namespace gradient {

void reshape(const RuleCall& c) {
  if (c.wants(0)) c.out[0] = make(Op::Reshape, {node_of(c.g)}, {.shape = c.input(0)->shape});
}

void permute(const RuleCall& c) {
  const Dims& order = c.attrs<PermuteAttrs>().order;
  Dims inverse = order;
  for (int d = 0; d < order.size(); ++d) inverse[static_cast<int>(order[d])] = d;
  if (c.wants(0)) c.out[0] = make(Op::Permute, {node_of(c.g)}, {PermuteAttrs{inverse}});
}

void expand(const RuleCall& c) {
  if (c.wants(0)) c.out[0] = sum_to(c.g, c.input(0)->shape);
}

void slice(const RuleCall& c) {
  if (c.wants(0)) c.out[0] = slice_back(c);
}

void pad(const RuleCall& c) {
  if (c.wants(0))
    c.out[0] =
        slice_at(c.g, c.attrs<PadAttrs>().front, Dims::filled(c.n.rank(), 1), c.input(0)->shape);
}

// The value is another node's.
void carry(const RuleCall& c) {
  if (c.wants(0)) c.out[0] = c.g;
}

// The old value is gone.
void assign(const RuleCall& c) {
  if (c.wants(1)) c.out[1] = c.g;
}

void slice_assign(const RuleCall& c) {
  const SliceAttrs& a = c.attrs<SliceAttrs>();
  const Dims& shape = c.input(1)->shape;
  if (c.wants(0))
    c.out[0] = make(Op::SliceAssign, {node_of(c.g), node_of(zeros_of(shape, c.n))}, {a});
  if (c.wants(1)) c.out[1] = slice_at(c.g, a.start, a.step, shape);
}

void to_device(const RuleCall& c) {
  if (c.wants(0)) c.out[0] = c.g.to(c.input(0)->device);
}

}  // namespace gradient
}  // namespace ingot::autograd
