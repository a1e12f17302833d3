// See memory.h.
#include "backend/cuda/runtime/memory.h"

#include <algorithm>
#include <bit>

#include "backend/cuda/runtime/copiers.h"

namespace ingot::cuda {

size_t Memory::rounded(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  if (bytes > kSmall) return (bytes + kSlab - 1) / kSlab * kSlab;
  size_t power = std::bit_ceil(bytes), step = std::max<size_t>(power / 8, 256);
  return (bytes + step - 1) / step * step;
}

void* Memory::from_driver(size_t bytes) {
  CUdeviceptr p = 0;
  if (driver().mem_alloc(&p, bytes) != CUDA_SUCCESS) return nullptr;
  held_ += bytes;
  return reinterpret_cast<void*>(p);
}

void* Memory::from_slab(size_t bytes) {
  if (slab_left_ < bytes) {
    // What is left of the old slab is at most 1 MiB and stays unused.
    char* fresh = static_cast<char*>(from_driver(kSlab));
    if (!fresh) return nullptr;
    slab_ = fresh;
    slab_left_ = kSlab;
  }
  void* p = slab_;
  slab_ += bytes;
  slab_left_ -= bytes;
  return p;
}

void* Memory::reuse(size_t size) {
  size_t most = size >= kLarge ? size + size / 50 : size;
  for (auto at = free_.lower_bound(size); at != free_.end() && at->first <= most; ++at) {
    if (at->second.empty()) continue;
    Free f = at->second.back();
    at->second.pop_back();
    fresh_[f.p] = f.last_run;
    if (at->first != size) size_[f.p] = at->first;
    return f.p;
  }
  return nullptr;
}

void* Memory::allocate(size_t bytes) {
  size_t size = rounded(bytes);
  if (void* p = reuse(size)) return p;
  bool small = size <= kSmall;
  if (size >= kLarge) trim(kLarge);
  void* p = small ? from_slab(size) : from_driver(size);
  if (!p) {
    trim();
    p = small ? from_slab(size) : from_driver(size);
  }
  if (p) fresh_[p] = 0;
  return p;
}

void Memory::deallocate(void* p, size_t bytes, uint64_t last_run) {
  size_t size = rounded(bytes);
  fresh_.erase(p);
  if (auto at = size_.find(p); at != size_.end()) {
    size = at->second;
    size_.erase(at);
  }
  free_[size].push_back({p, last_run});
}

// The driver waits for the device before it takes a block.
void Memory::trim(size_t size) {
  for (auto at = free_.lower_bound(size); at != free_.end(); ++at) {
    for (Free& f : at->second) {
      driver().mem_free(reinterpret_cast<CUdeviceptr>(f.p));
      held_ -= at->first;
    }
    at->second.clear();
  }
}

bool Memory::quiet(void* p, uint64_t finished) const {
  auto at = fresh_.find(p);
  return at != fresh_.end() && at->second <= finished;
}

Staging::Buffer& Staging::next() {
  Buffer& b = buffers_[turn_];
  turn_ = (turn_ + 1) % kBuffers;
  if (!b.data) {
    void* p = nullptr;
    check(driver().mem_host_alloc(&p, kBytes, CU_MEMHOSTALLOC_PORTABLE),
          "allocating pinned memory");
    b.data = static_cast<char*>(p);
    check(driver().event_create(&b.done, CU_EVENT_DISABLE_TIMING), "making an event");
  }
  if (b.busy) check(driver().event_synchronize(b.done), "waiting for a copy");
  b.busy = false;
  return b;
}

void Staging::to_device(CUstream stream, void* dst, const void* src, size_t bytes) {
  // The first piece is small, so that the copy starts while the host still fills the rest.
  for (size_t at = 0, piece = 1 << 20; at < bytes; at += piece, piece = kBytes) {
    piece = std::min(piece, bytes - at);
    Buffer& b = next();
    Copiers::shared().copy(b.data, static_cast<const char*>(src) + at, piece);
    check(
        driver().memcpy_htod_async(reinterpret_cast<CUdeviceptr>(dst) + at, b.data, piece, stream),
        "copying to the GPU");
    check(driver().event_record(b.done, stream), "recording an event");
    b.busy = true;
  }
}

void Staging::to_host(CUstream stream, void* dst, const void* src, size_t bytes) {
  // One piece is on its way while the one before it is copied out.
  struct Piece {
    Buffer* buffer;
    size_t at, bytes;
  } last{nullptr, 0, 0};
  auto take = [&] {
    if (!last.buffer) return;
    check(driver().event_synchronize(last.buffer->done), "waiting for a copy");
    last.buffer->busy = false;
    Copiers::shared().copy(static_cast<char*>(dst) + last.at, last.buffer->data, last.bytes);
  };
  for (size_t at = 0; at < bytes;) {
    size_t piece = std::min(kBytes, bytes - at);
    Buffer& b = next();
    check(
        driver().memcpy_dtoh_async(b.data, reinterpret_cast<CUdeviceptr>(src) + at, piece, stream),
        "copying from the GPU");
    check(driver().event_record(b.done, stream), "recording an event");
    b.busy = true;
    take();
    last = {&b, at, piece};
    at += piece;
  }
  take();
}

}  // namespace ingot::cuda
