// Tensors from bytes of a file.
#pragma once
#include <cstring>
#include <vector>

#include "graph/handle.h"
#include "ingot/ops.h"
#include "io/file.h"
#include "runtime/storage.h"

namespace ingot::io {

/// A tensor whose bytes fill(to) writes, in row-major order: straight into its memory on the CPU.
/// Bools of a file may be any byte: they become 0 or 1.
template <class F>
Tensor tensor_from(F&& fill, DType dtype, const Dims& shape, const Options& options,
                   const SourceLoc& loc) {
  const Device device = options.device.value_or(Device(DeviceType::CPU, 0));
  const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  auto clean = [&](void* data) {
    if (dtype == DType::Bool)
      for (auto* p = static_cast<uint8_t*>(data); p < static_cast<uint8_t*>(data) + bytes; ++p)
        *p = *p != 0;
  };
  if (!device.is_cpu()) {
    std::vector<uint8_t> host(bytes);
    fill(host.data());
    clean(host.data());
    return from_data(host.data(), dtype, shape, Options(options.dtype.value_or(dtype), device),
                     loc);
  }
  Ref<Storage> s = allocate_storage(device, bytes, "a tensor of a file");
  fill(s->data);
  clean(s->data);
  Tensor t = tensor_of(make_leaf(std::move(s), dtype, shape, device));
  return options.dtype && *options.dtype != dtype ? t.to(*options.dtype) : t;
}

/// The same from bytes in memory that hold all of it.
inline Tensor tensor_from_bytes(const void* data, DType dtype, const Dims& shape,
                                const Options& options, const SourceLoc& loc) {
  const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  auto copy = [&](void* to) {
    if (bytes) std::memcpy(to, data, bytes);
  };
  return tensor_from(copy, dtype, shape, options, loc);
}

/// Element count times element size, or false when the sizes cannot fit into memory.
inline bool byte_count(const Dims& shape, size_t element, size_t& bytes) {
  bytes = element;
  bool fits = true, none = false;
  // A zero anywhere makes the count zero, whatever the other sizes are; those must fit all the
  // same.
  for (int64_t d : shape) {
    none = none || d == 0;
    fits = fits && d >= 0 &&
           !__builtin_mul_overflow(bytes, static_cast<size_t>(d > 1 ? d : 1), &bytes);
  }
  fits = fits && bytes <= size_t{1} << 60;
  if (none) bytes = 0;
  return fits;
}

}  // namespace ingot::io
