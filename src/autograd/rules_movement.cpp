// Gradients of the movement ops (index arithmetic backwards) and of the ops that only carry a value on.
#include "autograd/lift.h"
#include "autograd/rules.h"
#include "ingot/ops.h"

namespace ingot::autograd {
namespace {

Tensor zeros_of(const Dims& shape, const Node& like) { return full(shape, 0.0, {like.dtype, like.device}); }

Tensor permute_back(const RuleCall& c) {
  const Dims& order = c.n.ext->d0;
  Attrs at;
  at.d0 = Dims::filled(order.size(), 0);
  for (int d = 0; d < order.size(); ++d) at.d0[static_cast<int>(order[d])] = d;
  return make(Op::Permute, {node_of(c.g)}, at);
}

// Steps of 1 and -1 lie side by side in the input: turn the axes that run backwards and pad. Other steps
// leave gaps, so the gradient is written into zeros.
Tensor slice_back(const RuleCall& c) {
  const Dims &start = c.n.ext->d0, &step = c.n.ext->d1, &size = c.n.shape;
  const Dims& full_shape = c.input(0)->shape;
  bool dense = true, turned = false;
  for (int d = 0; d < size.size(); ++d) {
    dense = dense && (step[d] == 1 || step[d] == -1 || size[d] <= 1);
    turned = turned || (step[d] < 0 && size[d] > 1);
  }
  Attrs at;
  if (!dense) {
    at.d0 = start;
    at.d1 = step;
    return make(Op::SliceAssign, {node_of(zeros_of(full_shape, c.n)), node_of(c.g)}, at);
  }
  Tensor g = c.g;
  at.d0 = start;
  at.d1 = Dims::filled(size.size(), 1);
  Attrs turn = at;
  turn.shape = size;
  for (int d = 0; d < size.size(); ++d) {
    bool back = step[d] < 0 && size[d] > 1;
    turn.d0[d] = back ? size[d] - 1 : 0;
    turn.d1[d] = back ? -1 : 1;
    if (back) at.d0[d] = start[d] - (size[d] - 1);
    if (size[d] == 0) at.d0[d] = 0;  // an empty slice may start at the end
  }
  if (turned) g = make(Op::Slice, {node_of(g)}, turn);
  at.shape = full_shape;
  at.d1 = {};
  return make(Op::Pad, {node_of(g)}, at);
}

Tensor slice_at(const Tensor& g, const Dims& start, const Dims& step, const Dims& shape) {
  Attrs at;
  at.d0 = start;
  at.d1 = step;
  at.shape = shape;
  return make(Op::Slice, {node_of(g)}, at);
}

void slice_assign_rule(const RuleCall& c) {
  const Dims &start = c.n.ext->d0, &step = c.n.ext->d1, &shape = c.input(1)->shape;
  if (c.wants(0)) {
    Attrs at;
    at.d0 = start;
    at.d1 = step;
    c.out[0] = make(Op::SliceAssign, {node_of(c.g), node_of(zeros_of(shape, c.n))}, at);
  }
  if (c.wants(1)) c.out[1] = slice_at(c.g, start, step, shape);
}

Tensor to_device(const Tensor& g, const Node& like) { return g.to(like.device); }

}  // namespace

bool movement_rule(const RuleCall& c) {
  Attrs at;
  bool first = c.wants(0);
  switch (c.n.op) {
    case Op::Reshape:
      at.shape = c.input(0)->shape;
      if (first) c.out[0] = make(Op::Reshape, {node_of(c.g)}, at);
      return true;
    case Op::Permute:
      if (first) c.out[0] = permute_back(c);
      return true;
    case Op::Expand:
      if (first) c.out[0] = sum_to(c.g, c.input(0)->shape);
      return true;
    case Op::Slice:
      if (first) c.out[0] = slice_back(c);
      return true;
    case Op::Pad:
      if (first) c.out[0] = slice_at(c.g, c.n.ext->d0, Dims::filled(c.n.rank(), 1), c.input(0)->shape);
      return true;
    case Op::Alias:
    case Op::Fence:
      if (first) c.out[0] = c.g;
      return true;
    case Op::Assign:  // the old value is gone
      if (c.wants(1)) c.out[1] = c.g;
      return true;
    case Op::SliceAssign:
      return slice_assign_rule(c), true;
    case Op::ToDevice:
      if (first) c.out[0] = to_device(c.g, *c.input(0));
      return true;
    default:
      return false;
  }
}

}  // namespace ingot::autograd
