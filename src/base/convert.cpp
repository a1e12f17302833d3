#include "base/convert.h"

#include <cmath>
#include <cstring>

namespace ingot {
namespace {

uint32_t bits_of(float f) {
  uint32_t u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}
float from_bits(uint32_t u) {
  float f;
  std::memcpy(&f, &u, sizeof f);
  return f;
}

uint16_t float_to_bfloat(float f) {
  uint32_t u = bits_of(f);
  if (f != f) return static_cast<uint16_t>(u >> 16 | 0x40);
  return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

uint16_t float_to_half(float f) {
  uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, mag = u & 0x7fffffff;
  if (mag > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
  if (mag >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);  // 65536 and more
  if (mag <
      0x38800000) {  // below the smallest normal: the sum's last bit is the smallest subnormal
    float scaled = from_bits(mag) + from_bits(0x3f000000);  // + 0.5: ulp 2^-24
    return static_cast<uint16_t>(sign | (bits_of(scaled) - 0x3f000000));
  }
  uint32_t odd = mag >> 13 & 1;
  return static_cast<uint16_t>(sign | ((mag - 0x38000000 + 0xfff + odd) >> 13));
}

struct Half {
  uint16_t v;
};
struct BFloat {
  uint16_t v;
};

template <class T>
double widen(T x) {
  return static_cast<double>(x);
}
double widen(Half h) { return half_to_float(h.v); }
double widen(BFloat h) { return bfloat_to_float(h.v); }

template <class To>
To narrow(double x) {
  if constexpr (std::is_same_v<To, Half>)
    return Half{float_to_half(static_cast<float>(x))};
  else if constexpr (std::is_same_v<To, BFloat>)
    return BFloat{float_to_bfloat(static_cast<float>(x))};
  else if constexpr (std::is_same_v<To, bool>)
    return x != 0;
  else if constexpr (std::is_integral_v<To>)  // beyond int64 and for NaN, C++ leaves it undefined:
                                              // 0
    return std::fabs(x) < 9.2e18 ? static_cast<To>(static_cast<int64_t>(x)) : To(0);
  else
    return static_cast<To>(x);
}

template <class To, class From>
void convert(void* dst, const void* src, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    From x;
    std::memcpy(&x, static_cast<const char*>(src) + i * sizeof(From), sizeof x);
    To y;
    if constexpr (std::is_integral_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>)
      y = static_cast<To>(x);
    else
      y = narrow<To>(widen(x));
    std::memcpy(static_cast<char*>(dst) + i * sizeof(To), &y, sizeof y);
  }
}

template <class F>
void with_type(DType t, F f) {
  switch (t) {
    case DType::Float64:
      return f(double());
    case DType::Float32:
      return f(float());
    case DType::Float16:
      return f(Half());
    case DType::BFloat16:
      return f(BFloat());
    case DType::Int64:
      return f(int64_t());
    case DType::Int32:
      return f(int32_t());
    case DType::Int16:
      return f(int16_t());
    case DType::Int8:
      return f(int8_t());
    case DType::UInt8:
      return f(uint8_t());
    case DType::Bool:
      return f(bool());
  }
}

}  // namespace

float bfloat_to_float(uint16_t h) { return from_bits(static_cast<uint32_t>(h) << 16); }

float half_to_float(uint16_t h) {
  uint32_t sign = (h & 0x8000u) << 16, mag = h & 0x7fffu;
  if (mag >= 0x7c00) return from_bits(sign | 0x7f800000 | (mag & 0x3ff) << 13);
  float f = mag < 0x400 ? static_cast<float>(mag) * 0x1p-24f : from_bits((mag << 13) + 0x38000000);
  return from_bits(sign | bits_of(f));
}

void convert_elements(void* dst, DType to, const void* src, DType from, size_t n) {
  with_type(to, [&](auto t) {
    with_type(from, [&](auto f) { convert<decltype(t), decltype(f)>(dst, src, n); });
  });
}

}  // namespace ingot
