// The arena of one GPU: addresses reserved once, as many as the GPU has bytes of memory, and memory
// mapped there as plans need it. Growing moves nothing and does not wait for the device, so that a
// captured graph stays valid whatever other plans need.
#pragma once
#include <cstddef>
#include <vector>

#include "backend/cuda/runtime/driver.h"

namespace ingot::cuda {

class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Reserves room for `most` bytes at the first call. False where the driver or the GPU cannot, or
  /// INGOT_CUDA_VMM=0 is set: the arena is then a plain block.
  bool reserve(CUdevice device, size_t most);
  /// Maps memory until there are `bytes`. False when there is none: the arena is then as it was.
  bool grow(size_t bytes);
  /// Gives the memory back and keeps the addresses. Nothing on the device may use it any more.
  void clear();

  void* data() const { return reinterpret_cast<void*>(base_); }
  size_t mapped() const { return mapped_; }

 private:
  bool try_reserve(CUdevice device, size_t most);
  bool map(size_t bytes);

  enum { Unasked, No, Yes } can_ = Unasked;
  CUmemAllocationProp kind_{};
  CUdeviceptr base_ = 0;
  size_t reserved_ = 0, mapped_ = 0, step_ = 0;
  std::vector<size_t> pieces_;  // as they were mapped: the driver unmaps whole pieces alone
};

}  // namespace ingot::cuda
