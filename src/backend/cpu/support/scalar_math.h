// The ig_* functions that the expressions of elementwise.def are written with, for the scalar types
// of the CPU: float, double, the integers and bool. Rare ones are plain libm; the hot float32 ones
// have SIMD loops elsewhere.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ingot::cpu {

template <class T>
inline constexpr bool is_fp = std::is_floating_point_v<T>;

template <class T>
inline T ig_abs(T a) {
  if constexpr (is_fp<T>)
    return std::fabs(a);
  else if constexpr (std::is_unsigned_v<T>)
    return a;
  else
    return static_cast<T>(a < 0 ? -a : a);
}
template <class T>
inline T ig_add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a | b;
  else
    return static_cast<T>(a + b);
}
template <class T>
inline T ig_not(T a) {
  if constexpr (std::is_same_v<T, bool>)
    return !a;
  else
    return static_cast<T>(~a);
}

#define INGOT_LIBM(name, f) \
  template <class T>        \
  inline T name(T a) {      \
    return f(a);            \
  }
INGOT_LIBM(ig_exp, std::exp)
INGOT_LIBM(ig_exp2, std::exp2)
INGOT_LIBM(ig_expm1, std::expm1)
INGOT_LIBM(ig_log, std::log)
INGOT_LIBM(ig_log2, std::log2)
INGOT_LIBM(ig_log10, std::log10)
INGOT_LIBM(ig_log1p, std::log1p)
INGOT_LIBM(ig_sqrt, std::sqrt)
INGOT_LIBM(ig_sin, std::sin)
INGOT_LIBM(ig_cos, std::cos)
INGOT_LIBM(ig_tan, std::tan)
INGOT_LIBM(ig_asin, std::asin)
INGOT_LIBM(ig_acos, std::acos)
INGOT_LIBM(ig_atan, std::atan)
INGOT_LIBM(ig_sinh, std::sinh)
INGOT_LIBM(ig_cosh, std::cosh)
INGOT_LIBM(ig_tanh, std::tanh)
INGOT_LIBM(ig_asinh, std::asinh)
INGOT_LIBM(ig_acosh, std::acosh)
INGOT_LIBM(ig_atanh, std::atanh)
INGOT_LIBM(ig_erf, std::erf)
INGOT_LIBM(ig_erfc, std::erfc)
INGOT_LIBM(ig_floor, std::floor)
INGOT_LIBM(ig_ceil, std::ceil)
INGOT_LIBM(ig_round, std::nearbyint)
INGOT_LIBM(ig_trunc, std::trunc)
#undef INGOT_LIBM

template <class T>
inline T ig_atan2(T a, T b) {
  return std::atan2(a, b);
}

template <class T>
inline T ig_hypot(T a, T b) {
  return std::hypot(a, b);
}
template <class T>
inline T ig_copysign(T a, T b) {
  return std::copysign(a, b);
}
// Not std::lgamma, which writes the sign to a variable that all threads share.
inline float ig_lgamma(float a) {
  int sign;
  return ::lgammaf_r(a, &sign);
}
inline double ig_lgamma(double a) {
  int sign;
  return ::lgamma_r(a, &sign);
}

template <class T>
inline T ig_pow(T a, T b) {
  if constexpr (is_fp<T>) {
    return std::pow(a, b);
  } else {
    if (b < T(0)) return a == T(1) ? T(1) : a == T(-1) ? (b % 2 ? T(-1) : T(1)) : T(0);
    using U = std::make_unsigned_t<T>;
    uint64_t r = 1, x = static_cast<U>(a);
    for (uint64_t n = static_cast<U>(b); n; n >>= 1, x *= x)
      if (n & 1) r *= x;
    return static_cast<T>(r);
  }
}

#define INGOT_SHARED(...) __VA_ARGS__
#define IG_FN inline
#include "graph/special_math.def"
#undef IG_FN
#undef INGOT_SHARED

// Integer division by 0 gives 0 and the most negative number by -1 wraps: neither may trap.
template <class T>
inline bool no_division(T b) {
  if constexpr (std::is_unsigned_v<T>)
    return b == 0;
  else
    return b == 0 || b == T(-1);
}
template <class T>
inline T ig_fmod(T a, T b) {
  if constexpr (is_fp<T>)
    return std::fmod(a, b);
  else
    return no_division(b) ? T(0) : static_cast<T>(a % b);
}
template <class T>
inline T ig_remainder(T a, T b) {
  if constexpr (is_fp<T>) {
    T r = std::fmod(a, b);
    return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
  } else {
    if (no_division(b)) return T(0);
    T r = static_cast<T>(a % b);
    return r != 0 && ((r < 0) != (b < 0)) ? static_cast<T>(r + b) : r;
  }
}
template <class T>
inline T ig_floordiv(T a, T b) {
  if constexpr (is_fp<T>) {  // as Python and PyTorch: exact where a / b would round up
    if (b == 0) return a / b;
    T mod = std::fmod(a, b), div = (a - mod) / b;
    if (mod != 0 && ((b < 0) != (mod < 0))) div -= 1;
    if (div == 0) return std::copysign(T(0), a / b);
    T fl = std::floor(div);
    return div - fl > T(0.5) ? fl + 1 : fl;
  } else {
    if (b == 0) return T(0);
    if (!std::is_unsigned_v<T> && b == T(-1)) return static_cast<T>(-a);
    T q = static_cast<T>(a / b);
    return a % b != 0 && ((a < 0) != (b < 0)) ? static_cast<T>(q - 1) : q;
  }
}
template <class T>
inline T ig_shl(T a, T b) {
  constexpr int bits = sizeof(T) * 8;
  return b < T(0) || static_cast<int64_t>(b) >= bits
             ? T(0)
             : static_cast<T>(static_cast<uint64_t>(a) << b);
}
template <class T>
inline T ig_shr(T a, T b) {
  constexpr int bits = sizeof(T) * 8;
  if (b < T(0) || static_cast<int64_t>(b) >= bits) return a < T(0) ? T(-1) : T(0);
  return static_cast<T>(a >> b);
}

/// Casts as PyTorch on x86: truncation; out-of-range floats give some value, never undefined
/// behaviour.
template <class To, class From>
inline To ig_cast(From a) {
  if constexpr (std::is_same_v<To, bool>) {
    return a != From(0);
  } else if constexpr (is_fp<From> && !is_fp<To>) {
    if constexpr (sizeof(To) < 4) return static_cast<To>(ig_cast<int32_t>(a));
    // The limits are powers of two, exact in both floating types; NaN fails the comparison.
    constexpr From top = sizeof(To) == 8 ? From(9223372036854775808.0) : From(2147483648.0);
    return a >= -top && a < top ? static_cast<To>(a) : std::numeric_limits<To>::min();
  } else {
    return static_cast<To>(a);
  }
}

}  // namespace ingot::cpu
