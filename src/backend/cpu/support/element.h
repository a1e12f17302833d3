// One element of any type, read and written as an accumulator's type.
#pragma once
#include "backend/cpu/support/half.h"
#include "ingot/dtype.h"

namespace ingot::cpu {

/// Elements of a strided operand as accumulator type A.
template <class A>
inline A read(const void* p, DType t, int64_t i) {
  switch (t) {
    case DType::Float64:
      return static_cast<A>(static_cast<const double*>(p)[i]);
    case DType::Float32:
      return static_cast<A>(static_cast<const float*>(p)[i]);
    case DType::Float16:
      return static_cast<A>(f32_from_f16(static_cast<const uint16_t*>(p)[i]));
    case DType::BFloat16:
      return static_cast<A>(f32_from_bf16(static_cast<const uint16_t*>(p)[i]));
    case DType::Int64:
      return static_cast<A>(static_cast<const int64_t*>(p)[i]);
    case DType::Int32:
      return static_cast<A>(static_cast<const int32_t*>(p)[i]);
    case DType::Int16:
      return static_cast<A>(static_cast<const int16_t*>(p)[i]);
    case DType::Int8:
      return static_cast<A>(static_cast<const int8_t*>(p)[i]);
    default:
      return static_cast<A>(static_cast<const uint8_t*>(p)[i]);
  }
}
template <class A>
inline void write(void* p, DType t, int64_t i, A v) {
  switch (t) {
    case DType::Float64:
      static_cast<double*>(p)[i] = static_cast<double>(v);
      return;
    case DType::Float32:
      static_cast<float*>(p)[i] = static_cast<float>(v);
      return;
    case DType::Float16:
      static_cast<uint16_t*>(p)[i] = f16_from_f32(static_cast<float>(v));
      return;
    case DType::BFloat16:
      static_cast<uint16_t*>(p)[i] = bf16_from_f32(static_cast<float>(v));
      return;
    case DType::Int64:
      static_cast<int64_t*>(p)[i] = static_cast<int64_t>(v);
      return;
    case DType::Int32:
      static_cast<int32_t*>(p)[i] = static_cast<int32_t>(v);
      return;
    case DType::Int16:
      static_cast<int16_t*>(p)[i] = static_cast<int16_t>(v);
      return;
    case DType::Bool:
      static_cast<uint8_t*>(p)[i] = v != A(0);
      return;
    default:
      static_cast<uint8_t*>(p)[i] = static_cast<uint8_t>(static_cast<int64_t>(v));
  }
}

}  // namespace ingot::cpu
