// Elementwise functions that are composed of the table's, so that they fuse.
#include <cmath>
#include <limits>

#include "ingot/elementwise.h"
#include "ops/composed.h"

namespace ingot {
namespace {

// Functions of floating numbers that are composed: integers become float32, 16-bit floats compute
// in it.
template <class F>
Tensor composed(const Tensor& x, const char* op, const SourceLoc& place, F f) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  DType t = node_of(x, op, loc)->dtype;
  if (!is_float(t)) t = DType::Float32;
  return f(x.to(compute_type(t))).to(t);
}

Tensor binary(Op op, const Tensor& a, const Operand& b, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  Pair p = promoted_pair(a, b, true, info(op).name, loc);
  return tensor_of(binary_node(op, p.a.cell()->current(), p.b.cell()->current(), loc));
}

}  // namespace

// ---- One operand

Tensor digamma(const Tensor& x, SourceLoc loc) { return polygamma(0, x, loc); }

Tensor polygamma(int64_t n, const Tensor& x, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (n < 0)
    fail(ErrorKind::Value, "polygamma", "the order cannot be negative: " + std::to_string(n), loc);
  constexpr int64_t most = 10000;  // the sum that an element takes grows with it
  if (n > most)
    fail(ErrorKind::Value, "polygamma",
         "the order is at most " + std::to_string(most) + ", not " + std::to_string(n), loc);
  NodeRef f = node_of(x, "polygamma", loc);
  if (!is_float(f->dtype)) f = cast_to(f.get(), DType::Float32, loc);
  NodeRef order = constant(n, f->dtype, f->device, loc);
  return tensor_of(record2(Op::Polygamma, order.get(), f.get(), loc));
}

Tensor logit(const Tensor& x, std::optional<double> eps, SourceLoc loc) {
  return composed(x, "logit", loc, [&](const Tensor& f) {
    Tensor p = eps ? clamp(f, *eps, 1.0 - *eps) : f;
    return log(p / (1.0 - p));
  });
}

Tensor frac(const Tensor& x, SourceLoc loc) {
  return in_wide(x, "frac", loc, [](const Tensor& f) { return f - trunc(f); });
}

Tensor round(const Tensor& x, int64_t decimals, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  if (decimals == 0) return round(x);
  double ten = std::pow(10.0, static_cast<double>(std::llabs(decimals)));
  return in_wide(x, "round", loc, [&](const Tensor& f) {
    return decimals > 0 ? round(f * ten) / ten : round(f / ten) * ten;
  });
}

Tensor signbit(const Tensor& x, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = node_of(x, "signbit", loc);
  if (is_float(n->dtype)) return copysign(ones_like(x), x) < 0.0;
  return n->dtype == DType::Bool ? zeros_like(x) : x < 0;
}

namespace {

Tensor equals_infinity(const Tensor& x, double which, const char* op, const SourceLoc& place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = node_of(x, op, loc);
  return is_float(n->dtype) ? x == which : zeros_like(x, DType::Bool);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double largest(DType t) {
  switch (t) {
    case DType::Float64:
      return std::numeric_limits<double>::max();
    case DType::Float16:
      return 65504.0;
    case DType::BFloat16:
      return 3.3895313892515355e38;
    default:
      return static_cast<double>(std::numeric_limits<float>::max());
  }
}

}  // namespace

Tensor isposinf(const Tensor& x, SourceLoc loc) {
  return equals_infinity(x, kInfinity, "isposinf", loc);
}
Tensor isneginf(const Tensor& x, SourceLoc loc) {
  return equals_infinity(x, -kInfinity, "isneginf", loc);
}
Tensor deg2rad(const Tensor& x, SourceLoc loc) {
  return composed(x, "deg2rad", loc, [](const Tensor& f) { return f * 0.017453292519943295; });
}
Tensor rad2deg(const Tensor& x, SourceLoc loc) {
  return composed(x, "rad2deg", loc, [](const Tensor& f) { return f * 57.29577951308232; });
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf,
                  std::optional<double> neginf, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = node_of(x, "nan_to_num", loc);
  if (!is_float(n->dtype)) return tensor_of(NodeRef(n));
  double top = largest(n->dtype);
  Tensor low = where(x == -kInfinity, neginf.value_or(-top), x);
  Tensor finite = where(x == kInfinity, posinf.value_or(top), low);
  return where(isnan(x), nan, finite);
}

// ---- Two operands

namespace {

// f(b * alpha), for add(), sub() and related functions. alpha must be a number of the result's
// type.
template <class F>
auto scaled(const Operand& b, const Scalar& alpha, DType result, const char* op,
            const SourceLoc& loc, F f) {
  if (alpha.f == 1) return f(b);
  if (!is_float(result)) {
    if (alpha.kind == Scalar::Kind::Float)
      fail(ErrorKind::DType, op,
           "alpha must be an integer for integer tensors, not " + text_of(alpha.f), loc,
           "convert with .to(float32)");
    check_fits(alpha, result, op, loc);
  }
  if (b.tensor) {
    const Tensor product = mul(*b.tensor, Operand(alpha, loc), loc);
    return f(Operand(product, loc));
  }
  if (alpha.kind == Scalar::Kind::Float || b.scalar.kind == Scalar::Kind::Float)
    return f(Operand(b.scalar.to<double>() * alpha.to<double>(), loc));
  // Integers wrap.
  return f(Operand(
      static_cast<int64_t>(static_cast<uint64_t>(b.scalar.i) * static_cast<uint64_t>(alpha.i)),
      loc));
}

}  // namespace

Tensor add(const Tensor& a, const Operand& b, const Scalar& alpha, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  return scaled(b, alpha, result_type(a, b, loc), "add", loc,
                [&](const Operand& v) { return add(a, v, loc); });
}
Tensor sub(const Tensor& a, const Operand& b, const Scalar& alpha, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  return scaled(b, alpha, result_type(a, b, loc), "sub", loc,
                [&](const Operand& v) { return sub(a, v, loc); });
}
Tensor rsub(const Tensor& a, const Operand& b, const Scalar& alpha, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  return scaled(Operand(a, loc), alpha, result_type(a, b, loc), "rsub", loc, [&](const Operand& v) {
    return b.tensor ? sub(*b.tensor, v, loc) : b.scalar - *v.tensor;
  });
}

Tensor div(const Tensor& a, const Operand& b, std::string_view rounding_mode, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  CheckScope checked(Check::Div);
  if (rounding_mode == "floor") return floor_divide(a, b, loc);
  if (rounding_mode != "trunc")
    fail(ErrorKind::Value, "div", "rounding_mode is \"" + std::string(rounding_mode) + "\"", loc,
         "use \"floor\" or \"trunc\"");
  if (is_float(result_type(a, b, loc))) return trunc(div(a, b, loc));
  return floor_divide(sub(a, fmod(a, b, loc), loc), b,
                      loc);  // a multiple of b is left, which every rounding keeps
}
Tensor true_divide(const Tensor& a, const Operand& b, SourceLoc loc) { return div(a, b, loc); }

Tensor hypot(const Tensor& a, const Operand& b, SourceLoc loc) {
  return binary(Op::Hypot, a, b, loc);
}
Tensor copysign(const Tensor& a, const Operand& b, SourceLoc loc) {
  return binary(Op::Copysign, a, b, loc);
}

// Written with where, so that the gradient at a tie goes to a, as PyTorch's.
Tensor fmax(const Tensor& a, const Operand& b, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Pair p = promoted_pair(a, b, false, "fmax", loc);
  return is_float(p.dtype) ? where((p.a >= p.b) | isnan(p.b), p.a, p.b) : maximum(p.a, p.b);
}
Tensor fmin(const Tensor& a, const Operand& b, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Pair p = promoted_pair(a, b, false, "fmin", loc);
  return is_float(p.dtype) ? where((p.a <= p.b) | isnan(p.b), p.a, p.b) : minimum(p.a, p.b);
}

namespace {

// The difference of equal operands is 0 even where both are infinite.
Tensor distance(const Tensor& a, const Tensor& b) { return abs(where(a == b, 0.0, a - b)); }

void need_floats(const Tensor& a, const Operand& b, const char* op, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  if (!is_float(result_type(a, b, loc)))
    fail(ErrorKind::DType, op, "needs a floating type, not " + describe(a), loc,
         "convert with x.to(float32)");
}

}  // namespace

Tensor logaddexp(const Tensor& a, const Operand& b, SourceLoc loc) {
  need_floats(a, b, "logaddexp", loc);
  return pair_in_wide(a, b, "logaddexp", loc, [](const Tensor& x, const Tensor& y) {
    return maximum(x, y) + log1p(exp(-distance(x, y)));
  });
}
Tensor logaddexp2(const Tensor& a, const Operand& b, SourceLoc loc) {
  need_floats(a, b, "logaddexp2", loc);
  return pair_in_wide(a, b, "logaddexp2", loc, [](const Tensor& x, const Tensor& y) {
    return maximum(x, y) + log1p(exp2(-distance(x, y))) * 1.4426950408889634;
  });
}

Tensor xlogy(const Tensor& a, const Operand& b, SourceLoc loc) {
  return pair_in_wide(a, b, "xlogy", loc, [](const Tensor& x, const Tensor& y) {
    Tensor nothing = (x == 0.0) & ((y <= 0.0) | (y == kInfinity));
    // Adding 0.0 takes the sign from a zero, -0.0 changes nothing: x = 0 gives 0 and keeps its
    // gradient, log(y).
    Tensor plus = where(x == 0.0, full({}, 0.0, {x.dtype(), x.device()}), -0.0);
    return where(nothing, 0.0, x * log(where(nothing, 1.0, y)) + plus);
  });
}
Tensor xlogy(const Scalar& a, const Tensor& b, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = node_of(b, "xlogy", loc);
  DType t = is_float(n->dtype) ? n->dtype : DType::Float32;
  return xlogy(tensor_of(constant(a, t, n->device, loc)), b.to(t), loc);
}

Tensor heaviside(const Tensor& a, const Operand& b, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Pair p = promoted_pair(a, b, false, "heaviside", loc);
  return where(p.a == 0, p.b, (p.a > 0).to(p.dtype));
}

Tensor float_power(const Tensor& a, const Operand& b, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = node_of(a, "float_power", loc);
  Tensor wide = operand_as(b, DType::Float64, n->device, "float_power", loc);
  return b.tensor ? pow(a.to(DType::Float64), wide)
                  : pow(a.to(DType::Float64), b.scalar.to<double>());
}

Tensor ldexp(const Tensor& a, const Operand& b, SourceLoc loc) {
  return pair_in_wide(a, b, "ldexp", loc,
                      [](const Tensor& x, const Tensor& y) { return x * exp2(y); });
}

// ---- Comparison

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan,
               SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef x = node_of(a, "isclose", loc), y = node_of(b, "isclose", loc);
  if (rtol < 0 || atol < 0)
    fail(ErrorKind::Value, "isclose",
         "rtol and atol cannot be negative: " + text_of(rtol) + " and " + text_of(atol), loc);
  if (x->dtype != y->dtype)
    fail(ErrorKind::DType, "isclose",
         "operands differ in type: " + describe(a) + " and " + describe(b), loc,
         "convert one of them: .to(" + std::string(name_of(promote(x->dtype, y->dtype))) + ")");
  Tensor close = a == b;
  if (rtol == 0 && atol == 0 && !(equal_nan && is_float(x->dtype))) return close;
  DType t = is_float(x->dtype) ? compute_type(x->dtype) : DType::Float64;
  Tensor p = a.to(t), q = b.to(t), off = abs(p - q);
  if (equal_nan && is_float(x->dtype)) close = close | (isnan(a) & isnan(b));
  return close | (isfinite(off) & (off <= abs(q * rtol) + atol));
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan,
              SourceLoc loc) {
  return isclose(a, b, rtol, atol, equal_nan, loc).all({}, false, loc).item<bool>(loc);
}

bool equal(const Tensor& a, const Tensor& b, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  NodeRef x = node_of(a, "equal", loc), y = node_of(b, "equal", loc);
  return x->shape == y->shape && eq(a, b, loc).all({}, false, loc).item<bool>(loc);
}

// ---- Three operands

// Taken from the nearer end, so that both ends are met exactly.
Tensor lerp(const Tensor& start, const Tensor& end, const Operand& weight, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  DType t = floating_node(start, "lerp", loc)->dtype;
  if (floating_node(end, "lerp", loc)->dtype != t ||
      (weight.tensor && node_of(*weight.tensor, "lerp", loc)->dtype != t))
    fail(ErrorKind::DType, "lerp",
         "start, end and weight differ in type: " + describe(start) + " and " + describe(end), loc,
         "convert with .to(" + std::string(name_of(t)) + ")");
  DType w = compute_type(t);
  Tensor a = start.to(w), b = end.to(w), d = b - a;
  if (!weight.tensor) {
    double k = weight.scalar.to<double>();
    return (k < 0.5 ? a + d * k : b - d * (1.0 - k)).to(t);
  }
  Tensor k = weight.tensor->to(w);
  return where(abs(k) < 0.5, a + k * d, b - d * (1.0 - k)).to(t);
}

namespace {

Tensor add_product(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value,
                   bool divide, const char* op, const SourceLoc& place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef p = node_of(a, op, loc), q = node_of(b, op, loc), n = node_of(x, op, loc);
  DType t = promote(n->dtype, promoted(p, q));
  if (divide && !is_float(promoted(p, q)))
    fail(ErrorKind::DType, op, "does not divide integers: " + describe(a) + " and " + describe(b),
         loc, "convert with .to(float32)");
  if (!is_float(t) && value.kind == Scalar::Kind::Float)
    fail(ErrorKind::DType, op,
         "value must be an integer for integer tensors, not " + text_of(value.f), loc,
         "convert with .to(float32)");
  check_fits(value, t, op, loc);
  DType w = compute_type(t);
  Tensor f = a.to(w), g = b.to(w), part = divide ? f / g : f * g;
  if (value.f != 1) part = divide ? f * value / g : f * value * g;
  return (x.to(w) + part).to(t);
}

}  // namespace

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value,
               SourceLoc loc) {
  return add_product(x, a, b, value, false, "addcmul", loc);
}
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value,
               SourceLoc loc) {
  return add_product(x, a, b, value, true, "addcdiv", loc);
}

}  // namespace ingot
