// Memory of the CPU devices: 64-byte aligned, huge pages for large blocks, freed blocks kept for
// the next request so that a training step has no page faults. Each device has its own pool.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/fork.h"

namespace ingot::cpu {

class MemoryPool {
 public:
  ~MemoryPool();
  void* allocate(size_t bytes);  // nullptr when there is none
  void deallocate(void* p, size_t bytes) noexcept;
  /// Returns all kept blocks to the system.
  void trim();

 private:
  void* find(size_t bytes);
  bool keep(void* p, size_t bytes) noexcept;

  ForkMutex<ForkOrder::Memory> mutex_;
  std::map<size_t, std::vector<void*>> free_;  // by rounded size
  size_t kept_ = 0;
  std::atomic<size_t> unasked_{0};
};

/// The root where pools look for /proc and /sys (tests); "": the machine's.
void set_memory_root(const std::string& root);

/// What a thread keeps from call to call (see thread_memory() in threads.h), on whole pages.
class ThreadMemory {
 public:
  ThreadMemory() = default;
  ~ThreadMemory();
  ThreadMemory(const ThreadMemory&) = delete;
  ThreadMemory& operator=(const ThreadMemory&) = delete;
  /// Room for this many bytes; when it grows, its content is lost. Throws std::bad_alloc.
  char* at_least(size_t bytes);

 private:
  char* p_ = nullptr;
  size_t size_ = 0;
};

/// The start of the next cache line: calls that align their scratch request 64 bytes more.
inline char* line_aligned(void* p) {
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(p) + 63) / 64 * 64);
}

}  // namespace ingot::cpu
