// Scalar conversions between float32 and the 16-bit floats, rounding to nearest even.
#pragma once
#include <bit>
#include <cstdint>

namespace ingot::cpu {

inline uint16_t bf16_from_f32(float f) {
  uint32_t u = std::bit_cast<uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
inline float f32_from_bf16(uint16_t h) {
  return std::bit_cast<float>(static_cast<uint32_t>(h) << 16);
}

inline uint16_t f16_from_f32(float f) {
  const uint32_t u = std::bit_cast<uint32_t>(f), sign = (u >> 16) & 0x8000u, x = u & 0x7fffffffu;
  if (x > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((x >> 13) & 0x3ffu));
  if (x >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (x < 0x38800000u) {  // subnormal: adding 0.5 leaves the rounded bits at the bottom
    const float r = std::bit_cast<float>(x) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(r) - 0x3f000000u));
  }
  return static_cast<uint16_t>(sign | ((x + 0xfffu + ((x >> 13) & 1u) - 0x38000000u) >> 13));
}
inline float f32_from_f16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, m = h & 0x7fffu;
  if (m >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((m & 0x3ffu) << 13));
  if (m < 0x400u)
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(m) * 0x1p-24f));
  return std::bit_cast<float>(sign | ((m << 13) + 0x38000000u));
}

}  // namespace ingot::cpu
