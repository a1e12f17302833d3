// See arena.h.
#include "backend/cuda/runtime/arena.h"

#include "base/env.h"

namespace ingot::cuda {
namespace {

bool all_there(const Driver& d) {
#define X(member, function) \
  if (!d.member) return false;
  INGOT_CUDA_VMM_FUNCTIONS(X)
#undef X
  return true;
}

}  // namespace

Arena::~Arena() {
  if (!base_) return;
  clear();
  driver().mem_address_free(base_, reserved_);
}

bool Arena::reserve(CUdevice device, size_t most) {
  if (can_ == Unasked) can_ = try_reserve(device, most) ? Yes : No;
  return can_ == Yes;
}

bool Arena::try_reserve(CUdevice device, size_t most) {
  Driver& d = driver();
  int able = 0;
  if (!env::flag("INGOT_CUDA_VMM") || !all_there(d) ||
      d.device_get_attribute(&able, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                             device) != CUDA_SUCCESS ||
      !able)
    return false;
  kind_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  kind_.location.id = device;
  if (d.mem_get_allocation_granularity(&step_, &kind_, CU_MEM_ALLOC_GRANULARITY_MINIMUM) !=
          CUDA_SUCCESS ||
      step_ == 0)
    return false;
  const size_t bytes = (most + step_ - 1) / step_ * step_;
  if (d.mem_address_reserve(&base_, bytes, 0, 0, 0) != CUDA_SUCCESS) return false;
  reserved_ = bytes;
  return true;
}

bool Arena::grow(size_t bytes) {
  if (bytes <= mapped_) return true;
  if (bytes > reserved_) return false;
  return map((bytes - mapped_ + step_ - 1) / step_ * step_);
}

// One more piece after the mapped ones.
bool Arena::map(size_t bytes) {
  Driver& d = driver();
  CUmemGenericAllocationHandle memory = 0;
  if (d.mem_create(&memory, bytes, &kind_, 0) != CUDA_SUCCESS) return false;
  const CUdeviceptr at = base_ + mapped_;
  const CUresult mapped = d.mem_map(at, bytes, 0, memory, 0);
  d.mem_release(memory);  // the mapping keeps it
  if (mapped != CUDA_SUCCESS) return false;
  CUmemAccessDesc access{};
  access.location = kind_.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (d.mem_set_access(at, bytes, &access, 1) != CUDA_SUCCESS) {
    d.mem_unmap(at, bytes);
    return false;
  }
  pieces_.push_back(bytes);
  mapped_ += bytes;
  return true;
}

void Arena::clear() {
  while (!pieces_.empty()) {
    mapped_ -= pieces_.back();
    driver().mem_unmap(base_ + mapped_, pieces_.back());
    pieces_.pop_back();
  }
}

}  // namespace ingot::cuda
