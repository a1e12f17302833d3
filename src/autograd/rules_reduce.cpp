// Gradients of reductions, of indexing and of the matrix product.
#include "autograd/rules.h"
#include "graph/lift.h"
#include "ingot/ops.h"

namespace ingot::autograd {
namespace {

// Over the axes of the forward's reduction.
Tensor reduced(const RuleCall& c, Op op, const Tensor& x) {
  return make(op, {node_of(x)}, {c.attrs<ReduceAttrs>()});
}

// The gradient of a product with respect to one factor is the product of the others. With one zero
// among the factors only the zero's own gradient is left, with two or more none is.
Tensor product_back(const RuleCall& c) {
  Tensor a = lift(c.input(0));
  Tensor zero = a == 0.0;
  Tensor factors = where(zero, 1.0, a);
  Tensor zeros = reduced(c, Op::Sum, zero.to(a.dtype()));
  Tensor others = reduced(c, Op::Prod, factors) / factors;
  Tensor alive = where(zero, zeros == 1.0, zeros == 0.0);
  return where(alive, c.g * others, 0.0);
}

// Equal extremes share the gradient.
Tensor extreme_back(const RuleCall& c) {
  Tensor hit = (lift(c.input(0)) == lift(&c.n)).to(c.n.dtype);
  return hit * (c.g / reduced(c, Op::Sum, hit));
}

// One element picked along the axis (a label's logit): the gradient is g where the position is the
// index, and fuses with what surrounds it.
Tensor picked_back(const RuleCall& c) {
  const Dims& shape = c.input(0)->shape;
  const int axis = c.attrs<IndexAttrs>().axis;
  Dims along = Dims::filled(shape.size(), 1);
  along[axis] = shape[axis];
  Tensor place = arange(shape[axis], {int64, c.input(0)->device}).reshape(along);
  Tensor index = lift(c.input(1)).to(int64), out = lift(&c.n);
  // The index is looked at through the value it picked, which is what it was checked for: so it is
  // also when nobody asks for that value.
  index = where(out == out, index, index);
  return where(place == index, c.g, 0.0);
}

Tensor transposed(Node* x) {
  PermuteAttrs a;
  for (int d = 0; d < x->rank(); ++d) a.order.push_back(d);
  std::swap(a.order[x->rank() - 1], a.order[x->rank() - 2]);
  return make(Op::Permute, {x}, {a});
}

}  // namespace

namespace gradient {

void sum(const RuleCall& c) {
  if (c.wants(0)) c.out[0] = make(Op::Expand, {node_of(c.g)}, {.shape = c.input(0)->shape});
}

void prod(const RuleCall& c) {
  if (c.wants(0)) c.out[0] = product_back(c);
}

void extreme(const RuleCall& c) {
  if (c.wants(0)) c.out[0] = extreme_back(c);
}

// The check of an index is the forward's.
void gather(const RuleCall& c) {
  const IndexAttrs& a = c.attrs<IndexAttrs>();
  if (!c.wants(0)) return;
  c.out[0] = c.input(1)->shape[a.axis] == 1
                 ? picked_back(c)
                 : make(Op::ScatterAdd, {c.input(1), node_of(c.g)}, {a, c.input(0)->shape});
}

void scatter_add(const RuleCall& c) {
  if (c.wants(1)) c.out[1] = make(Op::Gather, {node_of(c.g), c.input(0)}, {c.attrs<IndexAttrs>()});
}

void matmul(const RuleCall& c) {
  if (c.wants(0)) c.out[0] = make(Op::Matmul, {node_of(c.g), node_of(transposed(c.input(1)))}, {});
  if (c.wants(1)) c.out[1] = make(Op::Matmul, {node_of(transposed(c.input(0))), node_of(c.g)}, {});
}

}  // namespace gradient
}  // namespace ingot::autograd
