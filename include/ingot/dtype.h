// Element types, their names and PyTorch's promotion rules.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ingot {

enum class DType : uint8_t {
  Float64,
  Float32,
  Float16,
  BFloat16,
  Int64,
  Int32,
  Int16,
  Int8,
  UInt8,
  Bool
};
inline constexpr int kDTypeCount = 10;

inline constexpr DType float64 = DType::Float64;
inline constexpr DType float32 = DType::Float32;
inline constexpr DType float16 = DType::Float16;
inline constexpr DType bfloat16 = DType::BFloat16;
inline constexpr DType int64 = DType::Int64;
inline constexpr DType int32 = DType::Int32;
inline constexpr DType int16 = DType::Int16;
inline constexpr DType int8 = DType::Int8;
inline constexpr DType uint8 = DType::UInt8;
inline constexpr DType bool_ = DType::Bool;

/// Bytes of one element.
constexpr size_t size_of(DType t) {
  constexpr uint8_t sizes[kDTypeCount] = {8, 4, 2, 2, 8, 4, 2, 1, 1, 1};
  return sizes[static_cast<int>(t)];
}
/// "float32", "bool", ...
std::string_view name_of(DType t);
constexpr bool is_float(DType t) { return t <= DType::BFloat16; }
constexpr bool is_integer(DType t) { return t >= DType::Int64 && t <= DType::UInt8; }
constexpr bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }
/// The type an operation of two tensors of dimension >= 1 computes in (PyTorch's lattice).
DType promote(DType a, DType b);

}  // namespace ingot
