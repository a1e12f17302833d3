// The fake CUDA machine's memory: plain blocks, and virtual memory with the driver's rules.
// Addresses that are reserved but not mapped, or mapped but not made accessible, cannot be touched:
// whoever does is killed there and then. FAKE_CUDA_VMM=0 is a GPU without virtual memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

#include "plugin/fake_machine.h"

using namespace fake;

namespace {

constexpr size_t kStep = 2 << 20;  // granularity of virtual memory

size_t used = 0;
int failures_left = -1, access_failures = 0;
std::unordered_map<uint64_t, size_t> blocks;
std::mutex mutex;

/// Physical memory: a file in memory, that lives until its handle and all mappings are gone.
struct Physical {
  int file = -1;
  size_t bytes = 0;
  int mappings = 0;
  bool held = true;
};
struct Mapping {
  size_t bytes;
  uint64_t memory;
  bool accessible = false;
};
std::unordered_map<uint64_t, Physical> physical;
std::map<uint64_t, size_t> reserved;
std::map<uint64_t, Mapping> mappings;
uint64_t next_handle = 1;

bool there_is(size_t n) {
  if (failures_left == 0 || used + n > memory_bytes()) return false;
  if (failures_left > 0) --failures_left;
  return true;
}

void drop_if_unused(uint64_t handle) {
  Physical& p = physical[handle];
  if (p.held || p.mappings) return;
  close(p.file);
  used -= p.bytes;
  physical.erase(handle);
}

bool steps(uint64_t a, uint64_t b) { return a % kStep == 0 && b % kStep == 0 && b > 0; }

bool inside_a_reservation(uint64_t p, size_t n) {
  auto at = reserved.upper_bound(p);
  return at != reserved.begin() && p + n <= std::prev(at)->first + std::prev(at)->second;
}

bool touches_a_mapping(uint64_t p, size_t n) {
  auto at = mappings.lower_bound(p + n);
  return at != mappings.begin() && std::prev(at)->first + std::prev(at)->second.bytes > p;
}

/// Addresses that nobody may touch.
void* nobodys(void* at, size_t n) {
  return mmap(at, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0),
              -1, 0);
}

}  // namespace

extern "C" {

// --- What tests ask ---
size_t fake_cuda_used() { return used; }
void fake_cuda_fail_after(int allocations) { failures_left = allocations; }
/// The next n calls that make memory accessible fail.
void fake_cuda_fail_access(int n) { access_failures = n; }
size_t fake_cuda_mapped() {
  size_t n = 0;
  for (auto& [at, m] : mappings) n += m.bytes;
  return n;
}
size_t fake_cuda_reserved() {
  size_t n = 0;
  for (auto& [at, bytes] : reserved) n += bytes;
  return n;
}

// --- Blocks ---
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  return *free = memory_bytes() - used, *total = memory_bytes(), kOk;
}
int cuMemAlloc_v2(uint64_t* p, size_t n) {
  if (!has_context()) return 201;
  std::lock_guard lock(mutex);
  if (!there_is(n)) return kNoMemory;
  // An H200's memory is taken from the address space alone.
  void* m = nothing_runs() ? mmap(nullptr, n, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                           : std::aligned_alloc(512, (n + 511) / 512 * 512);
  if (!m || m == MAP_FAILED) return kNoMemory;
  if (!nothing_runs()) std::memset(m, 0x7f, n);
  *p = reinterpret_cast<uint64_t>(m);
  blocks[*p] = n;
  used += n;
  return kOk;
}
int cuMemFree_v2(uint64_t p) {
  std::lock_guard lock(mutex);
  auto at = blocks.find(p);
  if (at == blocks.end()) return kInvalid;
  used -= at->second;
  if (nothing_runs())
    munmap(reinterpret_cast<void*>(p), at->second);
  else
    std::free(reinterpret_cast<void*>(p));
  blocks.erase(at);
  return kOk;
}

// --- Virtual memory ---
int fake_cuda_has_vmm() {
  const char* e = std::getenv("FAKE_CUDA_VMM");
  return !(e && std::strcmp(e, "0") == 0);
}
int cuMemGetAllocationGranularity(size_t* n, const void*, int) { return *n = kStep, kOk; }
int cuMemAddressReserve(uint64_t* p, size_t n, size_t, uint64_t, unsigned long long flags) {
  std::lock_guard lock(mutex);
  if (n == 0 || n % kStep || flags) return kInvalid;
  // One step more, so that the range can begin at one; the rest stays unused.
  void* m = nobodys(nullptr, n + kStep);
  if (m == MAP_FAILED) return kNoMemory;
  *p = (reinterpret_cast<uint64_t>(m) + kStep - 1) / kStep * kStep;
  reserved[*p] = n;
  return kOk;
}
int cuMemAddressFree(uint64_t p, size_t n) {
  std::lock_guard lock(mutex);
  auto at = reserved.find(p);
  if (at == reserved.end() || at->second != n || touches_a_mapping(p, n)) return kInvalid;
  munmap(reinterpret_cast<void*>(p), n);
  reserved.erase(at);
  return kOk;
}
struct AllocationKind {  // CUmemAllocationProp, its beginning
  int type, handle_types, location, device;
};
int cuMemCreate(uint64_t* handle, size_t n, const AllocationKind* kind, unsigned long long flags) {
  std::lock_guard lock(mutex);
  if (n == 0 || n % kStep || flags || kind->type != 1 || kind->location != 1 || kind->device != 0)
    return kInvalid;
  if (!there_is(n)) return kNoMemory;
  Physical p;
  p.file = memfd_create("fake device memory", MFD_CLOEXEC);
  p.bytes = n;
  if (p.file < 0 || ftruncate(p.file, static_cast<off_t>(n)) != 0) return kNoMemory;
  *handle = next_handle++;
  physical[*handle] = p;
  used += n;
  return kOk;
}
int cuMemRelease(uint64_t handle) {
  std::lock_guard lock(mutex);
  auto at = physical.find(handle);
  if (at == physical.end() || !at->second.held) return kInvalid;
  at->second.held = false;
  drop_if_unused(handle);
  return kOk;
}
int cuMemMap(uint64_t p, size_t n, size_t offset, uint64_t handle, unsigned long long flags) {
  std::lock_guard lock(mutex);
  auto at = physical.find(handle);
  if (at == physical.end() || !at->second.held || n > at->second.bytes || offset || flags ||
      !steps(p, n) || !inside_a_reservation(p, n) || touches_a_mapping(p, n))
    return kInvalid;
  void* m = mmap(reinterpret_cast<void*>(p), n, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED | MAP_NORESERVE, at->second.file, 0);
  if (m == MAP_FAILED) return kNoMemory;
  if (!nothing_runs()) std::memset(m, 0x7f, n);
  mprotect(m, n, PROT_NONE);
  ++at->second.mappings;
  mappings[p] = {n, handle};
  return kOk;
}
int cuMemUnmap(uint64_t p, size_t n) {
  std::lock_guard lock(mutex);
  auto at = mappings.find(p);
  if (at == mappings.end() || at->second.bytes != n) return kInvalid;  // whole mappings alone
  nobodys(reinterpret_cast<void*>(p), n);
  uint64_t memory = at->second.memory;
  mappings.erase(at);
  --physical[memory].mappings;
  drop_if_unused(memory);
  return kOk;
}
struct Access {  // CUmemAccessDesc
  int location, device, flags;
};
int cuMemSetAccess(uint64_t p, size_t n, const Access* a, size_t count) {
  std::lock_guard lock(mutex);
  auto at = mappings.find(p);
  if (at == mappings.end() || at->second.bytes != n || count != 1 || a->location != 1 ||
      a->device != 0 || a->flags != 3)
    return kInvalid;
  if (access_failures > 0) return --access_failures, kNoMemory;
  mprotect(reinterpret_cast<void*>(p), n, PROT_READ | PROT_WRITE);
  at->second.accessible = true;
  return kOk;
}
}
