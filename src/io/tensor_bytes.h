// Tensors from bytes of a file.
#pragma once
#include "ingot/ops.h"
#include "io/file.h"

namespace ingot::io {

/// Copies a tensor out of `data`, which holds it whole, in row-major order. Bools of a file may be any byte:
/// they become 0 or 1.
inline Tensor tensor_from_bytes(const void* data, DType dtype, const Dims& shape, const Options& options,
                                const SourceLoc& loc) {
  Options o(options.dtype.value_or(dtype), options.device.value_or(Device(DeviceType::CPU, 0)));
  if (dtype != DType::Bool) return from_data(data, dtype, shape, o, loc);
  std::vector<uint8_t> clean(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < clean.size(); ++i) clean[i] = static_cast<const uint8_t*>(data)[i] != 0;
  return from_data(clean.data(), dtype, shape, o, loc);
}

/// Element count times element size, or false when sizes do not fit into memory at all.
inline bool byte_count(const Dims& shape, size_t element, size_t& bytes) {
  bytes = element;
  bool fits = true, none = false;
  // A zero anywhere makes the count zero, whatever the other sizes are; those must fit all the same.
  for (int64_t d : shape) {
    none = none || d == 0;
    fits = fits && d >= 0 && !__builtin_mul_overflow(bytes, static_cast<size_t>(d > 1 ? d : 1), &bytes);
  }
  fits = fits && bytes <= size_t{1} << 60;
  if (none) bytes = 0;
  return fits;
}

}  // namespace ingot::io
