// See plan_cache.h. A use is a relaxed store into the plan, so that replays take no lock; when the
// limit is reached the oldest part goes at once, so that finding the oldest costs little per plan:
// a thirty-second, so that the memory of a full cache hardly moves.
#include "compile/plan_cache.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <unordered_map>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/env.h"
#include "base/fork.h"
#include "base/hash.h"
#include "compile/executor.h"
#include "graph/thread_state.h"
#include "ingot/error.h"
#include "ingot/runtime.h"

namespace ingot {
namespace {

struct Cache {
  ForkMutex<ForkOrder::Plans> mutex;
  std::unordered_multimap<uint64_t, std::shared_ptr<Plan>> plans;  // by the hash of the key
  size_t bytes = 0, limit = static_cast<size_t>(env::number("INGOT_PLAN_CACHE_MIB")) << 20;
  int64_t evicted = 0;
};
Cache& cache() {
  static Cache* c = new Cache;
  return *c;
}

uint64_t hash_of(const std::vector<uint64_t>& key) {
  Hasher h;
  for (uint64_t w : key) h.add(w);
  return h.value();
}

// A loop comes back to the plan it ran last: that one is compared before its key is hashed.
std::weak_ptr<Plan>& last_plan() { return thread_lists().last_plan; }

// Lets the oldest plans go until the others take at most `room` bytes; they are freed by the
// caller, outside the lock.
std::vector<std::shared_ptr<Plan>> evict(Cache& c, size_t room) {
  std::vector<std::shared_ptr<Plan>> gone;
  if (c.bytes <= room) return gone;
  using Entry = decltype(c.plans)::iterator;
  std::vector<Entry> entries;
  entries.reserve(c.plans.size());
  for (Entry it = c.plans.begin(); it != c.plans.end(); ++it) entries.push_back(it);
  std::sort(entries.begin(), entries.end(),
            [](Entry a, Entry b) { return a->second->used.load() < b->second->used.load(); });
  for (Entry it : entries) {
    if (c.bytes <= room) break;
    c.bytes -= it->second->bytes;
    gone.push_back(std::move(it->second));
    c.plans.erase(it);
  }
  c.evicted += static_cast<int64_t>(gone.size());
  if (env::debug("plan"))
    std::fprintf(stderr, "[ingot plan] %zu plans evicted; %zu plans hold %.1f of %.1f MiB\n",
                 gone.size(), c.plans.size(), static_cast<double>(c.bytes) / (1 << 20),
                 static_cast<double>(c.limit) / (1 << 20));
  return gone;
}

// Plans on their way out, freed after the cache's lock. Plans are many small blocks between
// longer-lived ones: without the trim a full cache would keep growing by what cannot be reused.
struct Evicted {
  std::vector<std::shared_ptr<Plan>> plans;
  ~Evicted() {
    if (plans.empty()) return;
    plans.clear();
#ifdef __GLIBC__
    malloc_trim(0);
#endif
  }
};

// --- What a plan holds

constexpr size_t kBlock = 16;  // what an allocation costs besides its bytes

template <class T>
size_t held(const std::vector<T>& v) {
  return v.capacity() ? v.capacity() * sizeof(T) + kBlock : 0;
}
size_t held(const std::string& s) { return s.capacity() > 15 ? s.capacity() + 1 + kBlock : 0; }

size_t held(const KernelSpec& k) {
  size_t n = held(k.extent) + held(k.buffers) + held(k.instrs) + held(k.stores) + held(k.label);
  for (const Instr& i : k.instrs) {
    n += held(i.map.stride) + held(i.bounds);
    for (const Bound& b : i.bounds) n += held(b.at.stride);
  }
  for (const Store& s : k.stores) n += held(s.map.stride);
  return n;
}

size_t held_by_refusals(const std::vector<Refusal>& refused) {
  size_t n = held(refused);
  for (const Refusal& r : refused) n += held(r.why);
  return n;
}

size_t held(const Step& s) {
  size_t n = held(s.buffers) + held(s.parts) + held(s.second) + held(s.library.operands) +
             held(s.vals) + held(s.label);
  for (const auto* specs : {&s.parts, &s.second})
    for (const KernelSpec& k : *specs) n += held(k);
  if (!s.exe) return n;
  return n + s.exe->host_bytes() + held_by_refusals(s.exe->refused) + kBlock;
}

}  // namespace

size_t bytes_of(const Plan& p) {
  size_t n = sizeof(Plan) + 4 * kBlock + held(p.key) + held(p.steps) + held(p.outputs) +
             held(p.arenas) + held(p.sites) + held(p.arena_values) + held(p.graph.vals) +
             held(p.graph.users) + held(p.decomposed);
  for (const Step& s : p.steps) n += held(s);
  for (const Plan::Value& v : p.arena_values) n += held(v.what);
  for (const DecomposedCall& d : p.decomposed) n += held(d.call) + held_by_refusals(d.refused);
  return n;
}

Plan::~Plan() {
  for (const PlanArena& a : arenas)
    if (Backend* b = backend_for(a.device.type())) b->forget(a.device.index(), id);
}

void touch(Plan& plan) {
  static std::atomic<uint64_t> now{0};
  plan.used.store(now.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

std::shared_ptr<Plan> find_plan(const std::vector<uint64_t>& key) {
  std::shared_ptr<Plan> found = last_plan().lock();
  if (!found || found->key != key) {
    found = nullptr;
    const uint64_t hash = hash_of(key);
    Cache& c = cache();
    std::lock_guard lock(c.mutex);
    auto [b, e] = c.plans.equal_range(hash);
    for (auto it = b; it != e && !found; ++it)
      if (it->second->key == key) found = it->second;
    if (!found) return nullptr;
    last_plan() = found;
  }
  touch(*found);
  return found;
}

void keep_plan(const std::shared_ptr<Plan>& plan) {
  plan->bytes = bytes_of(*plan);
  touch(*plan);
  Cache& c = cache();
  Evicted gone;
  std::lock_guard lock(c.mutex);
  if (plan->bytes > c.limit) {
    if (env::debug("plan"))
      std::fprintf(
          stderr, "[ingot plan] a plan of %.1f MiB is over the limit of %.1f MiB and is not kept\n",
          static_cast<double>(plan->bytes) / (1 << 20), static_cast<double>(c.limit) / (1 << 20));
    return;
  }
  if (c.bytes + plan->bytes > c.limit)
    gone.plans = evict(c, std::min(c.limit - plan->bytes, c.limit - c.limit / 32));
  c.plans.emplace(hash_of(plan->key), plan);
  c.bytes += plan->bytes;
  last_plan() = plan;
}

PlanCacheInfo plan_cache_info() {
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  return {static_cast<int64_t>(c.plans.size()), c.bytes, c.limit, c.evicted};
}

void set_plan_cache_limit(size_t bytes) {
  Cache& c = cache();
  Evicted gone;
  std::lock_guard lock(c.mutex);
  c.limit = bytes;
  gone.plans = evict(c, bytes);
}

void clear_plan_cache() {
  Cache& c = cache();
  Evicted gone;
  std::lock_guard lock(c.mutex);
  for (auto& [hash, plan] : c.plans) gone.plans.push_back(std::move(plan));
  c.plans.clear();
  c.bytes = 0;
}

}  // namespace ingot
