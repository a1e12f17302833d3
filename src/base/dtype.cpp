// Names of the element types and PyTorch's promotion lattice.
#include "ingot/dtype.h"

namespace ingot {

std::string_view name_of(DType t) {
  static constexpr std::string_view names[kDTypeCount] = {
      "float64", "float32", "float16", "bfloat16", "int64",
      "int32",   "int16",   "int8",    "uint8",    "bool"};
  return names[static_cast<int>(t)];
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_float(a)) return is_half(a) && is_half(b) ? DType::Float32 : a < b ? a : b;
  // Integers: the larger wins; uint8 with int8 needs int16. The enum runs from large to small.
  if (a == DType::UInt8 || b == DType::UInt8) {
    DType other = a == DType::UInt8 ? b : a;
    return other == DType::Int8 ? DType::Int16 : other;
  }
  return a < b ? a : b;
}

}  // namespace ingot
