// See memory.h.
#include "backend/cpu/support/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "ingot/devices.h"

namespace ingot::cpu {

namespace {
constexpr size_t kHuge = size_t{2} << 20;
constexpr size_t kKeep = size_t{2} << 30;  // bytes of free blocks kept
constexpr size_t kUnasked = size_t{16}
                            << 20;   // bytes taken from the system without checking what it has
constexpr size_t kSpare = kUnasked;  // left for small blocks and the rest of the program

/// Small sizes to multiples of 64, larger ones to an eighth of their power of two, so
/// that blocks can be reused.
size_t rounded(size_t bytes) {
  if (bytes <= 4096) return (bytes + 63) / 64 * 64 + (bytes == 0 ? 64 : 0);
  const size_t step = std::max<size_t>(64, std::bit_floor(bytes) / 8);
  const size_t n = (bytes + step - 1) / step * step;
  return n >= kHuge ? (n + kHuge - 1) / kHuge * kHuge : n;
}

void* fresh(size_t bytes) {
  if (bytes < kHuge) return std::aligned_alloc(64, bytes);
  // Mapped with room to start on a huge page; the rest is unmapped at once.
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

namespace {
std::atomic<size_t> handed_out{0};  // of all pools
std::string memory_root;

/// Resident private bytes of this process: memory handed out but not written to yet is not
/// included.
size_t resident() {
  size_t all = 0, kept = 0, shared = 0;
  if (FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%zu %zu %zu", &all, &kept, &shared) != 3) kept = shared = 0;
    std::fclose(f);
  }
  return (kept - shared) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

bool has_room(size_t bytes) {
  const size_t promised = handed_out.load(std::memory_order_relaxed), there = resident();
  const size_t spare = bytes < (1 << 20) ? 0 : kSpare;
  return bytes + (promised > there ? promised - there : 0) + spare <=
         host_memory(memory_root).available;
}
}  // namespace

void set_memory_root(const std::string& root) { memory_root = root; }

void* MemoryPool::allocate(size_t bytes) {
  void* p = find(bytes);
  if (p) handed_out.fetch_add(bytes, std::memory_order_relaxed);
  return p;
}

void* MemoryPool::find(size_t bytes) {
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
  // The system overcommits pages and kills later: check before much has been taken.
  if (unasked_.fetch_add(n, std::memory_order_relaxed) + n >= kUnasked) {
    if (!has_room(n)) trim();
    if (!has_room(n)) return nullptr;
    unasked_.store(0, std::memory_order_relaxed);
  }
  if (void* p = fresh(n)) return p;
  trim();
  return fresh(n);
}

void MemoryPool::deallocate(void* p, size_t bytes) noexcept {
  if (!p) return;
  handed_out.fetch_sub(bytes, std::memory_order_relaxed);
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
  } catch (const std::bad_alloc&) {  // no memory to record it: return it to the system
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
