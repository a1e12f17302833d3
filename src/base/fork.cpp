// See fork.h.
#include "base/fork.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

namespace ingot {
namespace {

constexpr int kPatience = 30;  // seconds that a fork waits for all locks together

struct Table {
  std::mutex mutex;
  std::vector<ForkLock> locks;  // in the order in which they are taken
};
Table& table() {
  static Table* t = new Table;
  return *t;
}

void prepare() {
  ++detail::forks_waiting;
  Table& t = table();
  timespec deadline{};
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += kPatience;
  t.mutex.lock();
  for (ForkLock& l : t.locks) l.taken = l.take(l.object, deadline);
}

void parent() {
  Table& t = table();
  for (size_t i = t.locks.size(); i-- > 0;)
    if (t.locks[i].taken) t.locks[i].give(t.locks[i].object);
  t.mutex.unlock();
  --detail::forks_waiting;
}

// Not unlocked but recreated: a recursive mutex knows its owner by a thread id that the
// child's thread no longer has.
void child() {
  Table& t = table();
  for (const ForkLock& l : t.locks) l.renew(l.object);
  new (&t.mutex) std::mutex;
  detail::forks_waiting = 0;
}

}  // namespace

namespace detail {

std::atomic<int> forks_waiting{0};

// Not forever: the caller may hold a lock that the fork waits for.
void wait_for_forks() {
  for (int i = 0; i < 100 && forks_waiting.load(std::memory_order_acquire); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace detail

void add_fork_lock(const ForkLock& lock) {
  Table& t = table();
  std::lock_guard guard(t.mutex);
  static const int registered = pthread_atfork(prepare, parent, child);
  (void)registered;
  const auto at =
      std::upper_bound(t.locks.begin(), t.locks.end(), lock,
                       [](const ForkLock& a, const ForkLock& b) { return a.order < b.order; });
  t.locks.insert(at, lock);
}

void remove_fork_lock(void* object) {
  Table& t = table();
  std::lock_guard guard(t.mutex);
  std::erase_if(t.locks, [&](const ForkLock& l) { return l.object == object; });
}

bool lock_until(std::mutex& m, const timespec& deadline) {
  return pthread_mutex_timedlock(m.native_handle(), &deadline) == 0;
}
bool lock_until(std::recursive_mutex& m, const timespec& deadline) {
  return pthread_mutex_timedlock(m.native_handle(), &deadline) == 0;
}

}  // namespace ingot
