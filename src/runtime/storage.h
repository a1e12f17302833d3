// Makes buffers: the allocator with its statistics and limits, and the arenas.
#pragma once
#include <cstddef>
#include <functional>

#include "graph/storage.h"

namespace ingot {

/// A fresh buffer. Throws OutOfMemory naming the largest live tensors when the device or its limit
/// has no room.
Ref<Storage> allocate_storage(Device device, size_t bytes, const char* why = "");
/// Memory of the caller's, not copied and not freed.
Ref<Storage> wrap_storage(Device device, void* data, size_t bytes,
                          std::function<void()> on_release);

/// Copies between host memory and a buffer, and waits for it.
void copy_from_host(Storage& to, const void* from, size_t bytes);
void copy_to_host(void* to, const Storage& from, size_t bytes);

/// The arena that all plans of a device share grows to the largest request and never holds what
/// survives a run. A lease holds it for one run; runs on one device follow each other.
class ArenaLease {
 public:
  ArenaLease(Device device, size_t bytes);
  ~ArenaLease();
  ArenaLease(const ArenaLease&) = delete;
  ArenaLease& operator=(const ArenaLease&) = delete;
  void* data() const { return data_; }

 private:
  Device device_;
  void* data_ = nullptr;
};
/// Gives the arena's memory back (tests, and before reporting out of memory).
void release_arena(Device device);

}  // namespace ingot
