// Host memory of tensors, for code that creates and reads samples byte by byte.
#pragma once
#include <functional>

#include "graph/handle.h"
#include "ingot/tensor.h"
#include "runtime/storage.h"

namespace ingot::data {

/// The elements of a computed CPU tensor, row-major; they live as long as it does.
inline const void* host_data(const Tensor& t) { return t.cell()->current()->storage->data; }

/// A tensor on the CPU, computed.
inline Tensor on_host(const Tensor& t) {
  Tensor h = t.detach().cpu();
  h.eval_();
  return h;
}

/// A new CPU tensor whose elements `fill` writes, all of them.
template <class F>
Tensor make_tensor(DType dtype, const Dims& shape, F&& fill) {
  Device cpu(DeviceType::CPU, 0);
  Ref<Storage> s =
      allocate_storage(cpu, static_cast<size_t>(shape.numel()) * size_of(dtype), "a batch");
  fill(s->data);
  return tensor_of(make_leaf(std::move(s), dtype, shape, cpu));
}

}  // namespace ingot::data
