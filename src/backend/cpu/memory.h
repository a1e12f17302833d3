// Memory of the CPU devices: 64-byte aligned, huge pages for large blocks, freed blocks kept for the next
// request so that a training step meets no page faults. Each device has a pool of its own.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace ingot::cpu {

class MemoryPool {
 public:
  ~MemoryPool();
  void* allocate(size_t bytes);  // nullptr when there is none
  void deallocate(void* p, size_t bytes);
  /// Gives all kept blocks back to the system.
  void trim();

 private:
  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;  // by rounded size
  size_t kept_ = 0;
};

/// Bytes the system can still give.
size_t available_memory();
size_t total_memory();

}  // namespace ingot::cpu
