// Locks across fork(). The child has one thread; a lock that another thread holds at that
// moment would stay locked in it forever, and what it guards might be half changed. So
// fork() takes the locks named here first, in one order, and both processes find them free.
// It waits for running plans.
#pragma once
#include <atomic>
#include <ctime>
#include <mutex>
#include <new>

namespace ingot {

/// Outer locks first: whoever holds one takes only later ones.
enum class ForkOrder {
  Gradients,
  Recorders,
  Runs,
  Plans,
  Arenas,
  Threads,
  Statistics,
  Memory,
  Small,
  Lists
};

/// One lock, or something that acts as one. `take` may give up at the deadline (CLOCK_REALTIME)
/// and return false: better a fork that might go wrong than one that never comes back. `renew`
/// makes it free in the child.
struct ForkLock {
  ForkOrder order;
  void* object;
  bool (*take)(void* object, const timespec& deadline);
  void (*give)(void* object);
  void (*renew)(void* object);
  bool taken = false;
};
void add_fork_lock(const ForkLock& lock);
void remove_fork_lock(void* object);

bool lock_until(std::mutex& m, const timespec& deadline);
bool lock_until(std::recursive_mutex& m, const timespec& deadline);

/// A mutex that fork() takes.
template <ForkOrder order, class M = std::mutex>
class ForkMutex : public M {
 public:
  ForkMutex() {
    add_fork_lock({order, static_cast<M*>(this),
                   [](void* m, const timespec& t) { return lock_until(*static_cast<M*>(m), t); },
                   [](void* m) { static_cast<M*>(m)->unlock(); }, [](void* m) { new (m) M; }});
  }
  ~ForkMutex() { remove_fork_lock(static_cast<M*>(this)); }
};

namespace detail {
extern std::atomic<int> forks_waiting;
void wait_for_forks();
}  // namespace detail

/// Called before a long lock is taken again, so that a fork that waits for it gets its turn.
inline void let_forks_pass() {
  if (detail::forks_waiting.load(std::memory_order_relaxed)) detail::wait_for_forks();
}

}  // namespace ingot
