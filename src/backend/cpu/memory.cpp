// See memory.h.
#include "backend/cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ingot::cpu {

namespace {
constexpr size_t kHuge = size_t{2} << 20;
constexpr size_t kKeep = size_t{2} << 30;  // bytes of free blocks kept

/// Small sizes to multiples of 64, larger ones to an eighth of their power of two, so that sizes meet again.
size_t rounded(size_t bytes) {
  if (bytes <= 4096) return (bytes + 63) / 64 * 64 + (bytes == 0 ? 64 : 0);
  const size_t step = std::max<size_t>(64, std::bit_floor(bytes) / 8);
  const size_t n = (bytes + step - 1) / step * step;
  return n >= kHuge ? (n + kHuge - 1) / kHuge * kHuge : n;
}

void* fresh(size_t bytes) {
  if (bytes < kHuge) return std::aligned_alloc(64, bytes);
  // Mapped with room to start on a huge page; the rest is given back at once.
  char* p = static_cast<char*>(
      mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (p == MAP_FAILED) return nullptr;
  char* at = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(p) + kHuge - 1) / kHuge * kHuge);
  if (at > p) munmap(p, static_cast<size_t>(at - p));
  munmap(at + bytes, static_cast<size_t>(p + kHuge - at));
  madvise(at, bytes, MADV_HUGEPAGE);
  return at;
}

void release(void* p, size_t bytes) {
  if (bytes < kHuge)
    std::free(p);
  else
    munmap(p, bytes);
}
}  // namespace

void* MemoryPool::allocate(size_t bytes) {
  const size_t n = rounded(bytes);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = free_.find(n);
    if (it != free_.end() && !it->second.empty()) {
      void* p = it->second.back();
      it->second.pop_back();
      kept_ -= n;
      return p;
    }
  }
  // The system hands out pages it does not have and kills later: ask before taking much.
  if (n >= (size_t{256} << 20) && n > available_memory()) trim();
  if (n >= (size_t{256} << 20) && n > available_memory()) return nullptr;
  if (void* p = fresh(n)) return p;
  trim();
  return fresh(n);
}

void MemoryPool::deallocate(void* p, size_t bytes) noexcept {
  if (!p) return;
  const size_t n = rounded(bytes);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (kept_ + n <= kKeep && keep(p, n)) return;
  }
  release(p, n);
}

bool MemoryPool::keep(void* p, size_t bytes) noexcept {
  try {
    free_[bytes].push_back(p);
  } catch (const std::bad_alloc&) {  // no room to note it down: the system gets it
    return false;
  }
  kept_ += bytes;
  return true;
}

void MemoryPool::trim() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [n, blocks] : free_)
    for (void* p : blocks) release(p, n);
  free_.clear();
  kept_ = 0;
}

MemoryPool::~MemoryPool() { trim(); }

namespace {

size_t from_meminfo(const char* format) {
  size_t kb = 0;
  if (FILE* f = std::fopen("/proc/meminfo", "r")) {
    char line[128];
    while (std::fgets(line, sizeof line, f))
      if (std::sscanf(line, format, &kb) == 1) break;
    std::fclose(f);
  }
  return kb * 1024;
}

}  // namespace

size_t available_memory() { return from_meminfo("MemAvailable: %zu"); }
size_t total_memory() { return from_meminfo("MemTotal: %zu"); }

ThreadMemory::~ThreadMemory() { std::free(p_); }

char* ThreadMemory::at_least(size_t bytes) {
  if (bytes > size_) {
    std::free(p_);
    size_ = (bytes + 4095) / 4096 * 4096;
    p_ = static_cast<char*>(std::aligned_alloc(4096, size_));
    if (!p_) {
      size_ = 0;
      throw std::bad_alloc();
    }
  }
  return p_;
}

}  // namespace ingot::cpu
