// Elementwise functions: each element of the result comes from those at its position. Shapes
// broadcast and types promote as everywhere (ops.h says what is checked). NaN, infinities and -0.0
// come out as PyTorch's. activation.h has relu, sigmoid, gelu and the other activations.
#pragma once
#include <optional>
#include <string_view>

#include "ingot/tensor.h"

namespace ingot {

// ---- One operand. Those that only make sense on floating types convert integers to float32.

#define INGOT_FUNCTION(name) Tensor name(const Tensor& x, INGOT_LOC);
#include "ingot/methods.def"
Tensor neg(const Tensor& x, INGOT_LOC);         ///< throws Error(DType) on bool: use logical_not
Tensor abs(const Tensor& x, INGOT_LOC);         ///< |x|
Tensor sign(const Tensor& x, INGOT_LOC);        ///< -1, 0 or 1
Tensor exp(const Tensor& x, INGOT_LOC);         ///< e^x
Tensor exp2(const Tensor& x, INGOT_LOC);        ///< 2^x
Tensor expm1(const Tensor& x, INGOT_LOC);       ///< exp(x) - 1, exact near 0
Tensor log(const Tensor& x, INGOT_LOC);         ///< natural; log(0) is -inf, of negatives NaN
Tensor log2(const Tensor& x, INGOT_LOC);        ///< to base 2
Tensor log10(const Tensor& x, INGOT_LOC);       ///< to base 10
Tensor log1p(const Tensor& x, INGOT_LOC);       ///< log(1 + x), exact near 0
Tensor sqrt(const Tensor& x, INGOT_LOC);        ///< NaN of negatives
Tensor rsqrt(const Tensor& x, INGOT_LOC);       ///< 1 / sqrt(x)
Tensor reciprocal(const Tensor& x, INGOT_LOC);  ///< 1 / x
Tensor square(const Tensor& x, INGOT_LOC);      ///< x * x
Tensor sin(const Tensor& x, INGOT_LOC);         ///< of radians
Tensor cos(const Tensor& x, INGOT_LOC);         ///< of radians
Tensor tan(const Tensor& x, INGOT_LOC);         ///< of radians
Tensor asin(const Tensor& x, INGOT_LOC);        ///< in radians; NaN outside [-1, 1]
Tensor acos(const Tensor& x, INGOT_LOC);        ///< in radians; NaN outside [-1, 1]
Tensor atan(const Tensor& x, INGOT_LOC);        ///< in radians
Tensor sinh(const Tensor& x, INGOT_LOC);        ///< (e^x - e^-x) / 2
Tensor cosh(const Tensor& x, INGOT_LOC);        ///< (e^x + e^-x) / 2
Tensor tanh(const Tensor& x, INGOT_LOC);        ///< sinh(x) / cosh(x)
Tensor erf(const Tensor& x, INGOT_LOC);         ///< the error function
Tensor erfc(const Tensor& x, INGOT_LOC);        ///< 1 - erf(x), exact for large x
/// The n-th derivative of digamma. Error(Value) when n is negative.
Tensor polygamma(int64_t n, const Tensor& x, INGOT_LOC);
/// log(x / (1 - x)); with eps x is first clamped to [eps, 1 - eps].
Tensor logit(const Tensor& x, std::optional<double> eps = {}, INGOT_LOC);
Tensor floor(const Tensor& x, INGOT_LOC);  ///< the largest integer not above x
Tensor ceil(const Tensor& x, INGOT_LOC);   ///< the smallest integer not below x
Tensor round(const Tensor& x, INGOT_LOC);  ///< halves to even
Tensor trunc(const Tensor& x, INGOT_LOC);  ///< rounded towards 0
/// Rounded to this many decimals (halves to even), or to a multiple of 10^-decimals when negative.
Tensor round(const Tensor& x, int64_t decimals, INGOT_LOC);
Tensor isnan(const Tensor& x, INGOT_LOC);     ///< bool
Tensor isinf(const Tensor& x, INGOT_LOC);     ///< bool: either infinity
Tensor isfinite(const Tensor& x, INGOT_LOC);  ///< bool: neither infinite nor NaN
Tensor signbit(const Tensor& x, INGOT_LOC);   ///< bool: negative, or -0.0
Tensor isposinf(const Tensor& x, INGOT_LOC);  ///< bool: is it +inf?
Tensor isneginf(const Tensor& x, INGOT_LOC);  ///< bool: is it -inf?
/// NaN and infinities replaced; the infinities by the type's largest and smallest values when not
/// given. Integers as they are.
Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = {},
                  std::optional<double> neginf = {}, INGOT_LOC);
Tensor logical_not(const Tensor& x, INGOT_LOC);  ///< bool: is it 0?
Tensor bitwise_not(const Tensor& x, INGOT_LOC);  ///< of integers; of bool the opposite

// ---- Two operands

Tensor add(const Tensor& a, const Operand& b, INGOT_LOC);  ///< a + b
Tensor sub(const Tensor& a, const Operand& b,
           INGOT_LOC);  ///< throws Error(DType) on bool: use logical_xor
Tensor mul(const Tensor& a, const Operand& b, INGOT_LOC);  ///< a * b
Tensor div(const Tensor& a, const Operand& b, INGOT_LOC);  ///< integers give float32
/// Powers 2, 3, 0.5, -0.5 and -1 become products, roots and reciprocals.
Tensor pow(const Tensor& a, const Operand& b, INGOT_LOC);
Tensor pow(const Scalar& a, const Tensor& b, INGOT_LOC);
Tensor maximum(const Tensor& a, const Operand& b, INGOT_LOC);    ///< NaN wins
Tensor minimum(const Tensor& a, const Operand& b, INGOT_LOC);    ///< NaN wins
Tensor atan2(const Tensor& a, const Operand& b, INGOT_LOC);      ///< the angle of the point (b, a)
Tensor fmod(const Tensor& a, const Operand& b, INGOT_LOC);       ///< sign of a, as in C
Tensor remainder(const Tensor& a, const Operand& b, INGOT_LOC);  ///< sign of b, as % in Python
Tensor floor_divide(const Tensor& a, const Operand& b, INGOT_LOC);  ///< a / b rounded down
Tensor add(const Tensor& a, const Operand& b, const Scalar& alpha, INGOT_LOC);  ///< a + alpha * b
Tensor sub(const Tensor& a, const Operand& b, const Scalar& alpha, INGOT_LOC);  ///< a - alpha * b
Tensor rsub(const Tensor& a, const Operand& b, const Scalar& alpha = 1,
            INGOT_LOC);  ///< b - alpha * a
/// The quotient rounded: "floor" (floor_divide) or "trunc" (towards 0; integers stay integers).
/// Another word: Error(Value).
Tensor div(const Tensor& a, const Operand& b, std::string_view rounding_mode, INGOT_LOC);
Tensor true_divide(const Tensor& a, const Operand& b, INGOT_LOC);  ///< div(a, b)
/// sqrt(a^2 + b^2) without overflow.
Tensor hypot(const Tensor& a, const Operand& b, INGOT_LOC);
/// a's size with b's sign, -0.0 counting as negative.
Tensor copysign(const Tensor& a, const Operand& b, INGOT_LOC);
Tensor fmax(const Tensor& a, const Operand& b, INGOT_LOC);  ///< maximum, but a number beats NaN
Tensor fmin(const Tensor& a, const Operand& b, INGOT_LOC);  ///< minimum, but a number beats NaN
/// log(exp(a) + exp(b)) and log2(2^a + 2^b), stable. Error(DType) on integers.
Tensor logaddexp(const Tensor& a, const Operand& b, INGOT_LOC);
Tensor logaddexp2(const Tensor& a, const Operand& b, INGOT_LOC);
/// a * log(b), 0 where a is 0 (unless b is NaN).
Tensor xlogy(const Tensor& a, const Operand& b, INGOT_LOC);
Tensor xlogy(const Scalar& a, const Tensor& b, INGOT_LOC);
/// 0 below 0, 1 above, b at 0.
Tensor heaviside(const Tensor& a, const Operand& b, INGOT_LOC);
/// pow in float64.
Tensor float_power(const Tensor& a, const Operand& b, INGOT_LOC);
Tensor ldexp(const Tensor& a, const Operand& b, INGOT_LOC);               ///< a * 2^b
Tensor bitwise_and(const Tensor& a, const Operand& b, INGOT_LOC);         ///< integers and bool
Tensor bitwise_or(const Tensor& a, const Operand& b, INGOT_LOC);          ///< integers and bool
Tensor bitwise_xor(const Tensor& a, const Operand& b, INGOT_LOC);         ///< integers and bool
Tensor bitwise_left_shift(const Tensor& a, const Operand& b, INGOT_LOC);  ///< a * 2^b, integers
Tensor bitwise_right_shift(const Tensor& a, const Operand& b,
                           INGOT_LOC);  ///< a / 2^b rounded down, integers

// ---- Comparison

Tensor eq(const Tensor& a, const Operand& b, INGOT_LOC);           ///< bool: a == b
Tensor ne(const Tensor& a, const Operand& b, INGOT_LOC);           ///< bool: a != b
Tensor lt(const Tensor& a, const Operand& b, INGOT_LOC);           ///< bool: a < b
Tensor le(const Tensor& a, const Operand& b, INGOT_LOC);           ///< bool: a <= b
Tensor gt(const Tensor& a, const Operand& b, INGOT_LOC);           ///< bool: a > b
Tensor ge(const Tensor& a, const Operand& b, INGOT_LOC);           ///< bool: a >= b
Tensor logical_and(const Tensor& a, const Operand& b, INGOT_LOC);  ///< bool: both not 0
Tensor logical_or(const Tensor& a, const Operand& b, INGOT_LOC);   ///< bool: one not 0
Tensor logical_xor(const Tensor& a, const Operand& b, INGOT_LOC);  ///< bool: just one not 0
/// |a - b| <= atol + rtol * |b|, or equal; NaN equals NaN on demand. Error(Value) when rtol or atol
/// is negative, Error(DType) unless the types agree.
Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
               bool equal_nan = false, INGOT_LOC);
/// Are all elements close? Runs what is pending.
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false, INGOT_LOC);
/// Same shape and the same elements? Runs what is pending.
bool equal(const Tensor& a, const Tensor& b, INGOT_LOC);

// ---- Three operands

/// start + weight * (end - start).
Tensor lerp(const Tensor& start, const Tensor& end, const Operand& weight, INGOT_LOC);
/// x + value * a * b.
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value = 1,
               INGOT_LOC);
/// x + value * a / b. Error(DType) on integers.
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value = 1,
               INGOT_LOC);

// ---- Choice

/// a where condition (bool) is true, b elsewhere.
Tensor where(const Tensor& condition, const Operand& a, const Operand& b, INGOT_LOC);
/// lo where x < lo, hi where x > hi; NaN stays.
Tensor clamp(const Tensor& x, const Scalar& lo, const Scalar& hi, INGOT_LOC);
Tensor clamp(const Tensor& x, const Tensor& lo, const Tensor& hi, INGOT_LOC);
Tensor clamp_min(const Tensor& x, const Operand& lo, INGOT_LOC);  ///< lo where x < lo; NaN stays
Tensor clamp_max(const Tensor& x, const Operand& hi, INGOT_LOC);  ///< hi where x > hi; NaN stays
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Operand& value,
                   INGOT_LOC);  ///< value at mask

// ---- Type

Tensor cast(const Tensor& x, DType dtype, INGOT_LOC);  ///< the same values as another type
/// The type a binary operation of the two computes in.
DType result_type(const Tensor& a, const Operand& b, INGOT_LOC);

// ---- Other names of the same

inline Tensor absolute(const Tensor& x, INGOT_LOC) { return abs(x, loc); }
inline Tensor negative(const Tensor& x, INGOT_LOC) { return neg(x, loc); }
inline Tensor fix(const Tensor& x, INGOT_LOC) { return trunc(x, loc); }
inline Tensor sgn(const Tensor& x, INGOT_LOC) { return sign(x, loc); }
inline Tensor arcsin(const Tensor& x, INGOT_LOC) { return asin(x, loc); }
inline Tensor arccos(const Tensor& x, INGOT_LOC) { return acos(x, loc); }
inline Tensor arctan(const Tensor& x, INGOT_LOC) { return atan(x, loc); }
inline Tensor arcsinh(const Tensor& x, INGOT_LOC) { return asinh(x, loc); }
inline Tensor arccosh(const Tensor& x, INGOT_LOC) { return acosh(x, loc); }
inline Tensor arctanh(const Tensor& x, INGOT_LOC) { return atanh(x, loc); }
inline Tensor arctan2(const Tensor& a, const Operand& b, INGOT_LOC) { return atan2(a, b, loc); }
inline Tensor subtract(const Tensor& a, const Operand& b, INGOT_LOC) { return sub(a, b, loc); }
inline Tensor multiply(const Tensor& a, const Operand& b, INGOT_LOC) { return mul(a, b, loc); }
inline Tensor divide(const Tensor& a, const Operand& b, INGOT_LOC) { return div(a, b, loc); }
inline Tensor not_equal(const Tensor& a, const Operand& b, INGOT_LOC) { return ne(a, b, loc); }
inline Tensor clip(const Tensor& x, const Scalar& lo, const Scalar& hi, INGOT_LOC) {
  return clamp(x, lo, hi, loc);
}

}  // namespace ingot
