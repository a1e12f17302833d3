// Gradients of reductions, of indexing and of the matrix product.
#include "autograd/lift.h"
#include "autograd/rules.h"
#include "ingot/ops.h"

namespace ingot::autograd {
namespace {

Tensor reduced(Op op, const Tensor& x, uint32_t mask) {
  Attrs at;
  at.mask = mask;
  return make(op, {node_of(x)}, at);
}

Tensor expanded(const Tensor& x, const Dims& shape) {
  Attrs at;
  at.shape = shape;
  return make(Op::Expand, {node_of(x)}, at);
}

// The gradient of a product with respect to one factor is the product of the others. With one zero among the
// factors only the zero's own gradient is left, with two or more none is.
Tensor product_back(const RuleCall& c) {
  Tensor a = lift(c.input(0));
  Tensor zero = a == 0.0;
  Tensor factors = where(zero, 1.0, a);
  Tensor zeros = reduced(Op::Sum, zero.to(a.dtype()), c.n.mask);
  Tensor others = reduced(Op::Prod, factors, c.n.mask) / factors;
  Tensor alive = where(zero, zeros == 1.0, zeros == 0.0);
  return where(alive, c.g * others, 0.0);
}

// Equal extremes share the gradient.
Tensor extreme_back(const RuleCall& c) {
  Tensor hit = (lift(c.input(0)) == lift(&c.n)).to(c.n.dtype);
  return hit * (c.g / reduced(Op::Sum, hit, c.n.mask));
}

// One element picked along the axis (a label's logit): the gradient is g where the position is the index, and
// fuses with what surrounds it.
Tensor picked_back(const RuleCall& c) {
  const Dims& shape = c.input(0)->shape;
  int axis = static_cast<int>(c.n.imm_i);
  Dims along = Dims::filled(shape.size(), 1);
  along[axis] = shape[axis];
  Tensor place = arange(shape[axis], {int64, c.input(0)->device}).reshape(along);
  Tensor index = lift(c.input(1)).to(int64), out = lift(&c.n);
  // The index is looked at through the value it picked, which is what it was checked for: so it is also when
  // nobody asks for that value.
  index = where(out == out, index, index);
  return where(place == index, c.g, 0.0);
}

Tensor transposed(Node* x) {
  Attrs at;
  for (int d = 0; d < x->rank(); ++d) at.d0.push_back(d);
  std::swap(at.d0[x->rank() - 1], at.d0[x->rank() - 2]);
  return make(Op::Permute, {x}, at);
}

void matmul_rule(const RuleCall& c) {
  if (c.wants(0)) c.out[0] = make(Op::Matmul, {node_of(c.g), node_of(transposed(c.input(1)))}, {});
  if (c.wants(1)) c.out[1] = make(Op::Matmul, {node_of(transposed(c.input(0))), node_of(c.g)}, {});
}

}  // namespace

bool reduce_rule(const RuleCall& c) {
  switch (c.n.op) {
    case Op::Sum:
      if (c.wants(0)) c.out[0] = expanded(c.g, c.input(0)->shape);
      return true;
    case Op::Prod:
      if (c.wants(0)) c.out[0] = product_back(c);
      return true;
    case Op::Max:
    case Op::Min:
      if (c.wants(0)) c.out[0] = extreme_back(c);
      return true;
    case Op::ArgMax:
    case Op::ArgMin:
      return true;
    default:
      return false;
  }
}

bool contraction_rule(const RuleCall& c) {
  Attrs at;
  at.i = c.n.imm_i;
  switch (c.n.op) {
    case Op::Gather:
      at.f = c.n.imm_f;  // the check is the forward's
      if (!c.wants(0)) return true;
      if (c.input(1)->shape[static_cast<int>(at.i)] == 1) return c.out[0] = picked_back(c), true;
      at.shape = c.input(0)->shape;
      c.out[0] = make(Op::ScatterAdd, {c.input(1), node_of(c.g)}, at);
      return true;
    case Op::ScatterAdd:
      at.f = c.n.imm_f;
      if (c.wants(1)) c.out[1] = make(Op::Gather, {node_of(c.g), c.input(0)}, at);
      return true;
    case Op::Matmul:
      return matmul_rule(c), true;
    default:
      return false;
  }
}

}  // namespace ingot::autograd
