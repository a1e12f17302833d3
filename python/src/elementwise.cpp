// Elementwise functions and the operators. One line binds a function and the method of that name.
#include "bind.h"

namespace ingot_python {
namespace {

using T = const Tensor&;
using O = const Operand&;
using L = SourceLoc;

void bind_unary(Table& t) {
#define UNARY(name) t.both(#name, [](T x, L loc) { return name(x, loc); })
#define ALIAS(alias, name) t.both(#alias, [](T x, L loc) { return name(x, loc); })
#define INGOT_FUNCTION(name) UNARY(name);
#include "ingot/methods.def"
  nb::list in_place;  // _tensor.py adds the forms of these names with an underscore
#define INGOT_FUNCTION(name) in_place.append(#name);
#include "ingot/methods.def"
  t.module().attr("_in_place_functions") = in_place;
  UNARY(neg);
  ALIAS(negative, neg);
  UNARY(abs);
  ALIAS(absolute, abs);
  UNARY(sign);
  UNARY(exp);
  UNARY(exp2);
  UNARY(expm1);
  UNARY(log);
  UNARY(log2);
  UNARY(log10);
  UNARY(log1p);
  UNARY(sqrt);
  UNARY(rsqrt);
  UNARY(reciprocal);
  UNARY(square);
  UNARY(sin);
  UNARY(cos);
  UNARY(tan);
  UNARY(asin);
  ALIAS(arcsin, asin);
  UNARY(acos);
  ALIAS(arccos, acos);
  UNARY(atan);
  ALIAS(arctan, atan);
  UNARY(sinh);
  UNARY(cosh);
  UNARY(tanh);
  UNARY(erf);
  UNARY(erfc);
  UNARY(sigmoid);
  UNARY(relu);
  UNARY(floor);
  UNARY(ceil);
  UNARY(trunc);
  ALIAS(fix, trunc);
  UNARY(isnan);
  UNARY(isinf);
  UNARY(isfinite);
  UNARY(logical_not);
  UNARY(bitwise_not);
  ALIAS(arcsinh, asinh);
  ALIAS(arccosh, acosh);
  ALIAS(arctanh, atanh);
  UNARY(sgn);
  UNARY(signbit);
  UNARY(isposinf);
  UNARY(isneginf);
  t.both(
      "round", [](T x, int64_t decimals, L loc) { return round(x, decimals, loc); }, nb::kw_only(),
      "decimals"_a = 0);
#undef UNARY
#undef ALIAS
  t.both(
      "logit", [](T x, std::optional<double> eps, L loc) { return logit(x, eps, loc); },
      "eps"_a.none() = nb::none());
  t.function(
      "polygamma", [](int64_t n, T x, L loc) { return polygamma(n, x, loc); }, "n"_a, "input"_a);
  t.both(
      "nan_to_num",
      [](T x, std::optional<double> nan, std::optional<double> hi, std::optional<double> lo,
         L loc) { return nan_to_num(x, nan.value_or(0), hi, lo, loc); },
      "nan"_a.none() = nb::none(), "posinf"_a.none() = nb::none(), "neginf"_a.none() = nb::none());
}

void bind_binary(Table& t) {
#define BINARY(name) \
  t.both(            \
      #name, [](T a, O b, L loc) { return name(a, b, loc); }, "other"_a)
#define ALIAS(alias, name) \
  t.both(                  \
      #alias, [](T a, O b, L loc) { return name(a, b, loc); }, "other"_a)
  BINARY(maximum);
  BINARY(minimum);
  BINARY(atan2);
  ALIAS(arctan2, atan2);
  BINARY(fmod);
  BINARY(remainder);
  BINARY(floor_divide);
  BINARY(eq);
  BINARY(ne);
  ALIAS(not_equal, ne);
  BINARY(lt);
  ALIAS(less, lt);
  BINARY(le);
  ALIAS(less_equal, le);
  BINARY(gt);
  ALIAS(greater, gt);
  BINARY(ge);
  ALIAS(greater_equal, ge);
  BINARY(logical_and);
  BINARY(logical_or);
  BINARY(logical_xor);
  BINARY(bitwise_and);
  BINARY(bitwise_or);
  BINARY(bitwise_xor);
  BINARY(bitwise_left_shift);
  BINARY(bitwise_right_shift);
  BINARY(hypot);
  BINARY(copysign);
  BINARY(fmax);
  BINARY(fmin);
  BINARY(logaddexp);
  BINARY(logaddexp2);
  BINARY(xlogy);
  BINARY(ldexp);
#undef BINARY
#undef ALIAS
  auto add_scaled = [](T a, O b, const Scalar& alpha, L loc) { return add(a, b, alpha, loc); };
  auto sub_scaled = [](T a, O b, const Scalar& alpha, L loc) { return sub(a, b, alpha, loc); };
  t.both("add", add_scaled, "other"_a, nb::kw_only(), "alpha"_a = 1);
  t.both("sub", sub_scaled, "other"_a, nb::kw_only(), "alpha"_a = 1);
  t.both("subtract", sub_scaled, "other"_a, nb::kw_only(), "alpha"_a = 1);
  for (const char* name : {"mul", "multiply"})
    t.both(
        name, [](T a, O b, L loc) { return mul(a, b, loc); }, "other"_a);
  for (const char* name : {"div", "divide", "true_divide"})
    t.both(
        name,
        [](T a, O b, const std::optional<std::string>& mode, L loc) {
          if (!mode) return div(a, b, loc);
          return div(a, b, *mode, loc);
        },
        "other"_a, nb::kw_only(), "rounding_mode"_a.none() = nb::none());
  t.both(
      "pow", [](T a, O b, L loc) { return pow(a, b, loc); }, "exponent"_a);
  t.function(
      "pow", [](const Scalar& a, T b, L loc) { return pow(a, b, loc); }, "self"_a, "exponent"_a);
  t.both(
      "heaviside", [](T a, O b, L loc) { return heaviside(a, b, loc); }, "values"_a);
  t.both(
      "float_power", [](T a, O b, L loc) { return float_power(a, b, loc); }, "exponent"_a);
  t.function(
      "xlogy", [](const Scalar& a, T b, L loc) { return xlogy(a, b, loc); }, "self"_a, "other"_a);
  t.function(
      "rsub", [](T a, O b, const Scalar& alpha, L loc) { return rsub(a, b, alpha, loc); },
      "input"_a, "other"_a, nb::kw_only(), "alpha"_a = 1);
}

void bind_operators(Table& t) {
  nb::is_operator op;
#define OPERATOR(name, symbol) \
  t.method(                    \
      "__" #name "__", [](T a, O b, L loc) { return symbol(a, b, loc); }, op)
#define REFLECTED(name, expression) \
  t.method(                         \
      "__r" #name "__", [](T a, const Scalar& b, L loc) { return expression; }, op)
  OPERATOR(add, add);
  OPERATOR(sub, sub);
  OPERATOR(mul, mul);
  OPERATOR(truediv, div);
  OPERATOR(floordiv, floor_divide);
  OPERATOR(mod, remainder);
  OPERATOR(pow, pow);
  OPERATOR(and, bitwise_and);
  OPERATOR(or, bitwise_or);
  OPERATOR(xor, bitwise_xor);
  OPERATOR(lshift, bitwise_left_shift);
  OPERATOR(rshift, bitwise_right_shift);
  OPERATOR(eq, eq);
  OPERATOR(ne, ne);
  OPERATOR(lt, lt);
  OPERATOR(le, le);
  OPERATOR(gt, gt);
  OPERATOR(ge, ge);
  REFLECTED(add, add(a, Operand(b, loc), loc));
  REFLECTED(mul, mul(a, Operand(b, loc), loc));
  REFLECTED(and, bitwise_and(a, Operand(b, loc), loc));
  REFLECTED(or, bitwise_or(a, Operand(b, loc), loc));
  REFLECTED(xor, bitwise_xor(a, Operand(b, loc), loc));
  REFLECTED(sub, b - TensorArg(a, loc));
  REFLECTED(truediv, b / TensorArg(a, loc));
  REFLECTED(mod, b % TensorArg(a, loc));
  REFLECTED(pow, pow(b, a, loc));
#undef OPERATOR
#undef REFLECTED
  // A number on the left takes the tensor's type where promotion says so.
  auto lifted = [](const Scalar& b, T a, L loc) {
    return scalar(b, Options(result_type(a, Operand(b, loc), loc), a.device(loc)), loc);
  };
  t.method(
      "__rfloordiv__",
      [lifted](T a, const Scalar& b, L loc) { return floor_divide(lifted(b, a, loc), a, loc); },
      op);
  t.method(
      "__rlshift__",
      [lifted](T a, const Scalar& b, L loc) {
        return bitwise_left_shift(lifted(b, a, loc), a, loc);
      },
      op);
  t.method(
      "__rrshift__",
      [lifted](T a, const Scalar& b, L loc) {
        return bitwise_right_shift(lifted(b, a, loc), a, loc);
      },
      op);
  t.method("__neg__", [](T a, L loc) { return neg(a, loc); });
  t.method("__pos__", [](T a, L) { return a; });
  t.method("__abs__", [](T a, L loc) { return abs(a, loc); });
  t.method("__invert__", [](T a, L loc) { return bitwise_not(a, loc); });
  t.method(
      "__matmul__", [](T a, T b, L loc) { return matmul(a, b, loc); }, op);
}

void bind_choice(Table& t) {
  t.function(
      "where", [](T c, O a, O b, L loc) { return where(c, a, b, loc); }, "condition"_a, "input"_a,
      "other"_a);
  t.method(
      "where", [](T a, T c, O b, L loc) { return where(c, a, b, loc); }, "condition"_a, "other"_a);
  auto clamp_any = [](T x, const std::optional<OperandIn>& lo, const std::optional<OperandIn>& hi,
                      L loc) {
    if (!lo && !hi)
      throw Error(ErrorKind::Value, "clamp", "neither min nor max is given", loc,
                  "give at least one of them");
    if (lo && hi && !lo->tensor && !hi->tensor) return clamp(x, lo->scalar, hi->scalar, loc);
    if (lo && hi && lo->tensor && hi->tensor) return clamp(x, *lo->tensor, *hi->tensor, loc);
    Tensor y = lo ? clamp_min(x, lo->at(loc), loc) : x;
    return hi ? clamp_max(y, hi->at(loc), loc) : y;
  };
  for (const char* name : {"clamp", "clip"})
    t.both(name, clamp_any, "min"_a.none() = nb::none(), "max"_a.none() = nb::none());
  t.both(
      "clamp_min", [](T x, O lo, L loc) { return clamp_min(x, lo, loc); }, "min"_a);
  t.both(
      "clamp_max", [](T x, O hi, L loc) { return clamp_max(x, hi, loc); }, "max"_a);
  t.both(
      "masked_fill", [](T x, T mask, O v, L loc) { return masked_fill(x, mask, v, loc); }, "mask"_a,
      "value"_a);
  t.both(
      "lerp", [](T a, T b, O w, L loc) { return lerp(a, b, w, loc); }, "end"_a, "weight"_a);
  t.both(
      "addcmul", [](T x, T a, T b, const Scalar& v, L loc) { return addcmul(x, a, b, v, loc); },
      "tensor1"_a, "tensor2"_a, nb::kw_only(), "value"_a = 1);
  t.both(
      "addcdiv", [](T x, T a, T b, const Scalar& v, L loc) { return addcdiv(x, a, b, v, loc); },
      "tensor1"_a, "tensor2"_a, nb::kw_only(), "value"_a = 1);
}

void bind_comparisons(Table& t) {
  t.both(
      "isclose",
      [](T a, T b, double r, double at, bool nan, L loc) { return isclose(a, b, r, at, nan, loc); },
      "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false);
  t.both(
      "allclose",
      [](T a, T b, double r, double at, bool nan, L loc) {
        return allclose(a, b, r, at, nan, loc);
      },
      "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false);
  t.both(
      "equal", [](T a, T b, L loc) { return equal(a, b, loc); }, "other"_a);
}

}  // namespace

void bind_elementwise(Table& t) {
  bind_unary(t);
  bind_binary(t);
  bind_operators(t);
  bind_choice(t);
  bind_comparisons(t);
}

}  // namespace ingot_python
