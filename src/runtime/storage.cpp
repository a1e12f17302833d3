// Device memory: allocation with statistics, limits and a typed error; one arena per device.
#include "runtime/storage.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_set>

#include "base/fork.h"
#include "graph/thread_state.h"
#include "ingot/error.h"
#include "ingot/profile.h"
#include "runtime/backend.h"
#include "runtime/require_device.h"

namespace ingot {
namespace {

constexpr int kMaxDevices = 64;

struct DeviceMemory {
  ForkMutex<ForkOrder::Statistics> mutex;
  MemoryStats stats;
  std::unordered_set<Storage*>
      large;  // live buffers of 1 MiB and more, for the out-of-memory message
  ForkMutex<ForkOrder::Arenas, std::recursive_mutex> arena_mutex;
  ArenaBlock arena;  // under both mutexes
};

DeviceMemory& memory_of(Device d) {
  static DeviceMemory* all =
      new DeviceMemory[3 * kMaxDevices];  // never destroyed: tensors may outlive main
  return all[static_cast<int>(d.type()) * kMaxDevices + d.index()];
}

std::string human(size_t bytes) {
  char buf[32];
  const char* unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double v = static_cast<double>(bytes);
  int u = 0;
  while (v >= 1024 && u < 4) {
    v /= 1024;
    ++u;
  }
  std::snprintf(buf, sizeof buf, u ? "%.2f %s" : "%.0f %s", v, unit[u]);
  return buf;
}

[[noreturn]] void out_of_memory(Device d, DeviceMemory& m, size_t bytes, const char* why) {
  std::vector<size_t> sizes;
  for (Storage* s : m.large) sizes.push_back(s->bytes);
  std::sort(sizes.rbegin(), sizes.rend());
  std::string what = d.name() + " has no room for " + human(bytes) +
                     (*why ? std::string(" (") + why + ")" : "") + ": " + human(m.stats.in_use) +
                     " in use" + (m.stats.limit ? " of a limit of " + human(m.stats.limit) : "") +
                     ", " + human(m.stats.arena) + " of it in the arena, " +
                     human(backend_for(d.type())->free_memory(d.index())) + " free";
  if (!sizes.empty()) {
    what += "; largest live tensors:";
    for (size_t i = 0; i < std::min<size_t>(sizes.size(), 5); ++i)
      what += (i ? ", " : " ") + human(sizes[i]);
  }
  throw OutOfMemory(what, bytes, m.stats.in_use, m.stats.limit);
}

// Counts the bytes in, or throws. The caller holds no lock.
void* take(Device d, size_t bytes, const char* why) {
  Backend& backend = require_device(d);
  DeviceMemory& m = memory_of(d);
  std::lock_guard lock(m.mutex);
  if (m.stats.limit && m.stats.in_use + bytes > m.stats.limit) out_of_memory(d, m, bytes, why);
  void* p = backend.allocate(d.index(), std::max<size_t>(bytes, 1));
  if (!p) out_of_memory(d, m, bytes, why);
  m.stats.in_use += bytes;
  m.stats.peak = std::max(m.stats.peak, m.stats.in_use);
  ++m.stats.allocations;
  return p;
}

void give(Device d, void* p, size_t bytes) {
  DeviceMemory& m = memory_of(d);
  std::lock_guard lock(m.mutex);
  backend_for(d.type())->deallocate(d.index(), p, std::max<size_t>(bytes, 1));
  m.stats.in_use -= bytes;
}

constexpr size_t kLarge = 1 << 20;

void free_storage(Storage& s) {
  if (s.bytes >= kLarge) {
    DeviceMemory& m = memory_of(s.device);
    std::lock_guard lock(m.mutex);
    m.large.erase(&s);
  }
  give(s.device, s.data, s.bytes);
}

}  // namespace

// An arena that an earlier plan needed is freed before memory is reported as exhausted; the next
// run takes what it needs.
static void* take_or_shrink(Device device, size_t bytes, const char* why) {
  try {
    return take(device, bytes, why);
  } catch (const OutOfMemory&) {
    if (this_thread.leases_held || !device.memory().arena) throw;
  }
  release_arena(device);
  return take(device, bytes, why);
}

Ref<Storage> allocate_storage(Device device, size_t bytes, const char* why) {
  Ref<Storage> s(new Storage);
  s->data = take_or_shrink(device, bytes, why);
  s->bytes = bytes;
  s->device = device;
  s->free = free_storage;
  if (bytes >= kLarge) {
    DeviceMemory& m = memory_of(device);
    std::lock_guard lock(m.mutex);
    m.large.insert(s.get());
  }
  return s;
}

void copy_from_host(Storage& to, const void* from, size_t bytes) {
  backend_for(to.device.type())->copy_from_host(to.device.index(), to.data, from, bytes);
}

void copy_to_host(void* to, const Storage& from, size_t bytes) {
  backend_for(from.device.type())->copy_to_host(from.device.index(), to, from.data, bytes);
}

Ref<Storage> wrap_storage(Device device, void* data, size_t bytes,
                          std::function<void()> on_release) {
  Ref<Storage> s(new Storage);
  s->data = data;
  s->bytes = bytes;
  s->device = device;
  s->on_release = on_release ? std::move(on_release) : [] {};
  return s;
}

// The caller holds the arena's mutex.
static void resize_arena(Device device, DeviceMemory& m, size_t bytes) {
  const char* why = "the arena of temporaries";
  std::lock_guard lock(m.mutex);
  const size_t others = m.stats.in_use - m.arena.bytes;
  if (bytes && m.stats.limit && others + bytes > m.stats.limit)
    out_of_memory(device, m, bytes, why);
  m.arena = backend_for(device.type())->resize_arena(device.index(), m.arena, bytes);
  m.stats.arena = m.arena.bytes;
  m.stats.in_use = others + m.arena.bytes;
  if (m.arena.bytes < bytes) out_of_memory(device, m, bytes, why);
  if (bytes == 0) return;
  m.stats.peak = std::max(m.stats.peak, m.stats.in_use);
  ++m.stats.allocations;
}

ArenaLease::ArenaLease(Device device, size_t bytes) : device_(device) {
  DeviceMemory& m = memory_of(device);
  m.arena_mutex.lock();
  try {
    if (bytes > m.arena.bytes) resize_arena(device, m, bytes);
  } catch (...) {
    m.arena_mutex.unlock();
    throw;
  }
  data_ = m.arena.data;
  ++this_thread.leases_held;
}

ArenaLease::~ArenaLease() {
  --this_thread.leases_held;
  memory_of(device_).arena_mutex.unlock();
}

void release_arena(Device device) {
  DeviceMemory& m = memory_of(device);
  std::lock_guard lock(m.arena_mutex);
  if (m.arena.data) resize_arena(device, m, 0);
}

void empty_cache(const Device& device) { release_arena(device); }

MemoryStats Device::memory() const {
  DeviceMemory& m = memory_of(*this);
  std::lock_guard lock(m.mutex);
  return m.stats;
}

void Device::reset_peak_memory() const {
  DeviceMemory& m = memory_of(*this);
  std::lock_guard lock(m.mutex);
  m.stats.peak = m.stats.in_use;
}

void Device::set_memory_limit(size_t bytes) const {
  DeviceMemory& m = memory_of(*this);
  std::lock_guard lock(m.mutex);
  m.stats.limit = bytes;
}

}  // namespace ingot
