// Elementwise functions besides those of ops.h, mostly composed from them so that they fuse. Shapes
// broadcast and types promote as everywhere (ops.h says what is checked). NaN, infinities and -0.0
// come out as PyTorch's.
#pragma once
#include "ingot/ops.h"

namespace ingot {

// ---- One operand. Those that only make sense on floating types convert integers to float32.

#define INGOT_FUNCTION(name) Tensor name(const Tensor& x, INGOT_LOC);
#include "ingot/methods.def"
/// The n-th derivative of digamma. Error(Value) when n is negative.
Tensor polygamma(int64_t n, const Tensor& x, INGOT_LOC);
/// log(x / (1 - x)); with eps x is first clamped to [eps, 1 - eps].
Tensor logit(const Tensor& x, std::optional<double> eps = {}, INGOT_LOC);
/// Rounded to this many decimals (halves to even), or to a multiple of 10^-decimals when negative.
Tensor round(const Tensor& x, int64_t decimals, INGOT_LOC);
Tensor signbit(const Tensor& x, INGOT_LOC);   ///< bool: negative, or -0.0
Tensor isposinf(const Tensor& x, INGOT_LOC);  ///< bool: is it +inf?
Tensor isneginf(const Tensor& x, INGOT_LOC);  ///< bool: is it -inf?
/// NaN and infinities replaced; the infinities by the type's largest and smallest values when not
/// given. Integers as they are.
Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = {},
                  std::optional<double> neginf = {}, INGOT_LOC);

// ---- Two operands

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
Tensor ldexp(const Tensor& a, const Operand& b, INGOT_LOC);  ///< a * 2^b
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

// ---- Other names of the same

inline Tensor absolute(const Tensor& x, INGOT_LOC) { return abs(x, loc); }
inline Tensor negative(const Tensor& x, INGOT_LOC) { return neg(x, loc); }
inline Tensor fix(const Tensor& x, INGOT_LOC) { return trunc(x, loc); }
inline Tensor sgn(const Tensor& x, INGOT_LOC) { return sign(x, loc); }
inline Tensor expit(const Tensor& x, INGOT_LOC) { return sigmoid(x, loc); }
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
