// Elementwise functions of the table and operators: promote, then record one primitive of the
// table. The path of two tensors of one type is kept short, since small programs are made of it.
#include <cmath>

#include "ingot/elementwise.h"
#include "ops/common.h"

namespace ingot {
namespace {

// Functions of floating numbers turn integers into float32 first.
Tensor unary_float(Op op, const Tensor& x, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, info(op).name, loc);
  if (is_float(n->dtype)) [[likely]]
    return tensor_of(record(op, {std::move(n)}, kNoAttrs, loc));
  return tensor_of(record(op, {cast_to(std::move(n), DType::Float32, loc)}, kNoAttrs, loc));
}

Tensor unary_any(Op op, const Tensor& x, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  return tensor_of(record(op, {node_of(x, info(op).name, loc)}, kNoAttrs, loc));
}

// floor, ceil, round, trunc: integers are their own.
Tensor rounding(Op op, const Tensor& x, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, info(op).name, loc);
  if (is_integer(n->dtype)) return tensor_of(std::move(n));
  return tensor_of(record(op, {std::move(n)}, kNoAttrs, loc));
}

Tensor binary(Op op, const Tensor& a, const Tensor& b, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  return tensor_of(
      binary_node(op, node_of(a, info(op).name, loc), node_of(b, info(op).name, loc), loc));
}

Tensor binary(Op op, const Tensor& a, const Operand& b, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  return tensor_of(binary_node(op, node_of(a, info(op).name, loc), b, loc));
}

Tensor binary(Op op, const Scalar& a, const Tensor& b, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(b, info(op).name, loc);
  DType t = promoted(n, a);
  NodeRef x = constant(a, t, n->device, loc), y = cast_to(std::move(n), t, loc);
  return tensor_of(record(op, {std::move(x), std::move(y)}, kNoAttrs, loc));
}

// Division and atan2 of integers happen in float32.
NodeRef floating(NodeRef n, const SourceLoc& loc) {
  return is_float(n->dtype) ? n : cast_to(std::move(n), DType::Float32, loc);
}

Tensor binary_float(Op op, const Tensor& a, const Operand& b, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef x = node_of(a, info(op).name, loc);
  NodeRef y = b.tensor ? node_of(*b.tensor, info(op).name, loc) : nullptr;
  DType t = y ? promoted(x, y) : promoted(x, b.scalar);
  if (is_float(t)) [[likely]]
    return tensor_of(y ? binary_node(op, std::move(x), std::move(y), loc)
                       : binary_node(op, std::move(x), b, loc));
  x = floating(std::move(x), loc);
  if (!y) return tensor_of(binary_node(op, std::move(x), b, loc));
  return tensor_of(binary_node(op, std::move(x), floating(std::move(y), loc), loc));
}

Tensor binary_float(Op op, const Scalar& a, const Tensor& b, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef y = floating(node_of(b, info(op).name, loc), loc);
  NodeRef x = constant(a, y->dtype, y->device, loc);
  return tensor_of(record(op, {std::move(x), std::move(y)}, kNoAttrs, loc));
}

// Comparisons with zero; bool as it is.
NodeRef truth(NodeRef n, const SourceLoc& loc) {
  if (n->dtype == DType::Bool) return n;
  NodeRef zero = constant(0, n->dtype, n->device, loc);
  return record(Op::Ne, {std::move(n), std::move(zero)}, kNoAttrs, loc);
}

Tensor logical(Op op, const char* name, const Tensor& a, const Operand& b, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef x = truth(node_of(a, name, loc), loc);
  NodeRef y = b.tensor ? truth(node_of(*b.tensor, name, loc), loc)
                       : constant(b.scalar, DType::Bool, x->device, loc);
  return tensor_of(binary_node(op, std::move(x), std::move(y), loc));
}

}  // namespace

// ---- One operand

namespace {

template <Op op>
Tensor unary(const Tensor& x, const SourceLoc& loc) {
  if constexpr (op == Op::Floor || op == Op::Ceil || op == Op::Round || op == Op::Trunc)
    return rounding(op, x, loc);
  else if constexpr (op == Op::BitNot)
    return unary_any(x.defined() && x.dtype() == DType::Bool ? Op::LogicalNot : op, x, loc);
  else
    return info(op).rule == TypeRule::Float ? unary_float(op, x, loc) : unary_any(op, x, loc);
}

}  // namespace

#define INGOT_FRONT_1(E, name) \
  Tensor name(const Tensor& x, SourceLoc loc) { return unary<Op::E>(x, loc); }
#define INGOT_FRONT_2(E, name)
#define INGOT_EW(E, name, arity, ...) INGOT_FRONT_##arity(E, name)
#include "graph/elementwise.def"
#undef INGOT_EW
#undef INGOT_FRONT_1
#undef INGOT_FRONT_2

Tensor square(const Tensor& x, SourceLoc loc) { return binary(Op::Mul, x, x, loc); }

// ---- Two operands

namespace {

// Integers have no number for a quotient by 0: it is an error, at the call where the divisor is
// known there.
Tensor divided(Op op, Check check, const Tensor& a, const Operand& b, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  CheckScope checking(check);
  const char* name = info(op).name;
  NodeRef x = node_of(a, name, loc), d = b.tensor ? node_of(*b.tensor, name, loc) : nullptr;
  DType t = d ? promoted(x, d) : promoted(x, b.scalar);
  if (is_float(t) || t == DType::Bool) return binary(op, a, b, loc);
  bool known = !d || d->op == Op::Const;
  if (known && (d ? d->attrs.as<ConstAttrs>().i : b.scalar.i) == 0)
    throw failed_check(current_check(), name, 0, 0, loc);
  if (known || d->numel() == 0) return binary(op, a, b, loc);
  NodeRef by = cast_to(d, t, loc), zero = constant(0, t, by->device, loc);
  NodeRef ok = record2(Op::Ne, by.get(), zero.get(), loc),
          checked = require(ok.get(), current_check(), loc);
  checked = cast_to(checked.get(), t, loc);
  Tensor divisor = tensor_of(record2(Op::Add, by.get(), checked.get(), loc));
  return binary(op, a, Operand(divisor, loc), loc);
}

}  // namespace

Tensor fmod(const Tensor& a, const Operand& b, SourceLoc loc) {
  return divided(Op::Fmod, Check::Fmod, a, b, loc);
}
Tensor remainder(const Tensor& a, const Operand& b, SourceLoc loc) {
  return divided(Op::Remainder, Check::Remainder, a, b, loc);
}
Tensor floor_divide(const Tensor& a, const Operand& b, SourceLoc loc) {
  return divided(Op::FloorDiv, Check::FloorDivide, a, b, loc);
}

namespace {

Tensor modulo(Op, const Tensor& a, const Operand& b, const SourceLoc& loc) {
  return remainder(a, b, loc);
}
Tensor modulo(Op, const Scalar& a, const Tensor& b, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef y = node_of(b, "remainder", loc);
  return remainder(tensor_of(constant(a, promoted(y, a), y->device, loc)), b, loc);
}

}  // namespace

#define INGOT_BINARY(name, how, op) \
  Tensor name(const Tensor& a, const Operand& b, SourceLoc loc) { return how(Op::op, a, b, loc); }
INGOT_BINARY(add, binary, Add)
INGOT_BINARY(sub, binary, Sub)
INGOT_BINARY(mul, binary, Mul)
INGOT_BINARY(div, binary_float, Div)
INGOT_BINARY(maximum, binary, Maximum)
INGOT_BINARY(minimum, binary, Minimum)
INGOT_BINARY(atan2, binary_float, Atan2)
INGOT_BINARY(eq, binary, Eq)
INGOT_BINARY(ne, binary, Ne)
INGOT_BINARY(lt, binary, Lt)
INGOT_BINARY(le, binary, Le)
INGOT_BINARY(gt, binary, Gt)
INGOT_BINARY(ge, binary, Ge)
INGOT_BINARY(bitwise_and, binary, BitAnd)
INGOT_BINARY(bitwise_or, binary, BitOr)
INGOT_BINARY(bitwise_xor, binary, BitXor)
INGOT_BINARY(bitwise_left_shift, binary, Shl)
INGOT_BINARY(bitwise_right_shift, binary, Shr)
#undef INGOT_BINARY

Tensor logical_and(const Tensor& a, const Operand& b, SourceLoc loc) {
  return logical(Op::BitAnd, "logical_and", a, b, loc);
}
Tensor logical_or(const Tensor& a, const Operand& b, SourceLoc loc) {
  return logical(Op::BitOr, "logical_or", a, b, loc);
}
Tensor logical_xor(const Tensor& a, const Operand& b, SourceLoc loc) {
  return logical(Op::BitXor, "logical_xor", a, b, loc);
}

#define INGOT_OPERATOR(sign, how, op)                         \
  Tensor operator sign(const Tensor& a, const TensorArg& b) { \
    return how(Op::op, a, b.tensor, b.loc);                   \
  }                                                           \
  Tensor operator sign(const TensorArg& a, const Scalar& b) { \
    return how(Op::op, a.tensor, Operand(b), a.loc);          \
  }                                                           \
  Tensor operator sign(const Scalar& a, const TensorArg& b) { \
    return how(Op::op, a, b.tensor, b.loc);                   \
  }
INGOT_OPERATOR(+, binary, Add)
INGOT_OPERATOR(-, binary, Sub)
INGOT_OPERATOR(*, binary, Mul)
INGOT_OPERATOR(/, binary_float, Div)
INGOT_OPERATOR(%, modulo, Remainder)
INGOT_OPERATOR(&, binary, BitAnd)
INGOT_OPERATOR(|, binary, BitOr)
INGOT_OPERATOR(^, binary, BitXor)
#undef INGOT_OPERATOR
#define INGOT_COMPARISON(sign, op)                               \
  Tensor operator sign(const TensorArg& a, const TensorArg& b) { \
    return binary(Op::op, a.tensor, b.tensor, a.loc);            \
  }                                                              \
  Tensor operator sign(const TensorArg& a, const Scalar& b) {    \
    return binary(Op::op, a.tensor, Operand(b), a.loc);          \
  }                                                              \
  Tensor operator sign(const Scalar& a, const TensorArg& b) {    \
    return binary(Op::op, a, b.tensor, b.loc);                   \
  }
INGOT_COMPARISON(==, Eq)
INGOT_COMPARISON(!=, Ne)
INGOT_COMPARISON(<, Lt)
INGOT_COMPARISON(<=, Le)
INGOT_COMPARISON(>, Gt)
INGOT_COMPARISON(>=, Ge)
#undef INGOT_COMPARISON
Tensor operator-(const TensorArg& a) { return unary_any(Op::Neg, a.tensor, a.loc); }
Tensor operator~(const TensorArg& a) { return bitwise_not(a.tensor, a.loc); }
Tensor operator!(const TensorArg& a) { return unary_any(Op::LogicalNot, a.tensor, a.loc); }

// ---- Powers

namespace {

// The common powers of a number as products and roots; null when pow is needed. n has the result's
// type.
NodeRef simple_power(Node* n, double p, const SourceLoc& loc) {
  if (p == 0) {
    NodeRef one = constant(1, n->dtype, n->device, loc);
    return expand_to(one.get(), n->shape, loc);
  }
  if (p == 1) return n;
  if (p == 2) return record2(Op::Mul, n, n, loc);
  if (p == 3) {
    NodeRef sq = record2(Op::Mul, n, n, loc);
    return record2(Op::Mul, sq.get(), n, loc);
  }
  if (!is_float(n->dtype)) return nullptr;
  if (p == 0.5) return record1(Op::Sqrt, n, loc);
  if (p == -0.5) return record1(Op::Rsqrt, n, loc);
  if (p == -1) return record1(Op::Reciprocal, n, loc);
  return nullptr;
}

}  // namespace

Tensor pow(const Tensor& a, const Operand& b, SourceLoc where) {
  if (b.tensor) return binary(Op::Pow, a, *b.tensor, where);
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(a, "pow", loc);
  if (is_integer(n->dtype) && b.scalar.kind == Scalar::Kind::Int && b.scalar.i < 0)
    fail(ErrorKind::Value, "pow",
         "an integer tensor cannot be raised to the negative power " + std::to_string(b.scalar.i) +
             ": " + describe(a),
         loc, "convert first: pow(x.to(float32), " + std::to_string(b.scalar.i) + ")");
  NodeRef x = cast_to(n, promoted(n, b.scalar), loc);
  check_fits(b.scalar, x->dtype, "pow", loc);
  if (x->dtype != DType::Bool)
    if (NodeRef y = simple_power(x.get(), b.scalar.f, loc)) return tensor_of(y);
  return tensor_of(binary_node(Op::Pow, x.get(), b, loc));
}
Tensor pow(const Scalar& a, const Tensor& b, SourceLoc loc) { return binary(Op::Pow, a, b, loc); }

// ---- Choice

Tensor where(const Tensor& condition, const Operand& a, const Operand& b, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  NodeRef c = node_of(condition, "where", loc);
  NodeRef x = a.tensor ? node_of(*a.tensor, "where", loc) : nullptr;
  NodeRef y = b.tensor ? node_of(*b.tensor, "where", loc) : nullptr;
  DType t = x && y ? promoted(x, y)
            : x    ? promoted(x, b.scalar)
            : y    ? promoted(y, a.scalar)
                   : promote(default_dtype(a.scalar), default_dtype(b.scalar));
  // 0-d operands follow the others.
  Device d = c->rank() || !x ? c->device : x->rank() || !y ? x->device : y->device;
  auto ready = [&](Node* n, const Scalar& s) {
    if (!n) return fitting(s, t, d, "where", loc);
    NodeRef r = cast_to(n, t, loc);
    return n->rank() == 0 ? move_to(r.get(), d, loc) : r;
  };
  NodeRef cn = c->rank() == 0 ? move_to(c, d, loc) : NodeRef(c);
  NodeRef xn = ready(x, a.scalar), yn = ready(y, b.scalar);
  return tensor_of(record(Op::Where, {cn.get(), xn.get(), yn.get()}, kNoAttrs, loc));
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Operand& value, SourceLoc where_) {
  SourceLoc loc = user_loc(where_);
  LocScope scope(loc);
  NodeRef n = node_of(x, "masked_fill", loc);
  NodeRef m = node_of(mask, "masked_fill", loc);
  if (m->dtype != DType::Bool)
    fail(ErrorKind::DType, "masked_fill", "the mask must be bool, not " + describe(mask), loc,
         "compare it: mask != 0");
  if (value.tensor) return where(mask, value.tensor->to(n->dtype), x);
  NodeRef v = fitting(value.scalar, n->dtype, n->device, "masked_fill", loc);
  return where(mask, tensor_of(v), x);
}

// Written with where rather than maximum, so that the gradient at a bound is 1, as PyTorch's.
namespace {

// The bound where x is past it, or where it is NaN, as in PyTorch.
Tensor bounded(const Tensor& past, const Operand& bound, const Tensor& x, const SourceLoc& loc) {
  bool floating =
      bound.tensor ? is_float(bound.tensor->dtype(loc)) : bound.scalar.kind == Scalar::Kind::Float;
  if (!floating || (!bound.tensor && bound.scalar.f == bound.scalar.f))
    return where(past, bound, x, loc);
  if (!bound.tensor) return where(logical_or(past, Operand(true, loc), loc), bound, x, loc);
  return where(logical_or(past, isnan(*bound.tensor, loc), loc), bound, x, loc);
}

}  // namespace

Tensor clamp_min(const Tensor& x, const Operand& lo, SourceLoc loc) {
  LocScope scope(loc);
  return bounded(lt(x, lo, loc), lo, x, user_loc(loc));
}
Tensor clamp_max(const Tensor& x, const Operand& hi, SourceLoc loc) {
  LocScope scope(loc);
  return bounded(gt(x, hi, loc), hi, x, user_loc(loc));
}
Tensor clamp(const Tensor& x, const Scalar& lo, const Scalar& hi, SourceLoc loc) {
  return clamp_max(clamp_min(x, lo, loc), hi, loc);
}
Tensor clamp(const Tensor& x, const Tensor& lo, const Tensor& hi, SourceLoc loc) {
  return clamp_max(clamp_min(x, lo, loc), hi, loc);
}

// ---- Type

Tensor cast(const Tensor& x, DType dtype, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "to", loc);
  return n->dtype == dtype ? x : tensor_of(cast_to(n, dtype, loc));
}

DType result_type(const Tensor& a, const Operand& b, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef x = node_of(a, "result_type", loc);
  if (!b.tensor) return promoted(x, b.scalar);
  NodeRef y = node_of(*b.tensor, "result_type", loc);
  return promoted(x, y);
}

}  // namespace ingot
