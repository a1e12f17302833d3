// See threads.h. A job is published under a ticket number that workers watch. Each thread has
// a share of the range, the same one in every run, takes pieces of it in order, and then helps
// the others with theirs: a thread that gets the same memory again finds part of it in its
// caches (a sum over 64 MiB takes half the time that way). The caller waits until every worker
// that joined has left, so the job may live on its stack. The two atomics `ticket` and
// `active` order everything. An exception stays in the job until all threads have left it, and
// is rethrown in the caller.
#include "backend/cpu/support/threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cpu/support/memory.h"
#include "base/env.h"
#include "base/fork.h"
#include "ingot/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ingot::cpu {
namespace {

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

thread_local bool inside_job = false;  // a job started inside a job runs on its thread alone
thread_local ThreadMemory own_memory;
thread_local ThreadMemory* worker_memory =
    nullptr;  // a worker's belongs to the pool, whose callers let it grow

struct Job {
  static constexpr int kShares = 64;
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };

  RangeFn fn;
  void* context;
  int64_t count, grain;
  int shares = 1;
  Share share[kShares];
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // of the thread that set `failed`; read when all have left

  Job(RangeFn f, void* c, int64_t n, int64_t g, int threads)
      : fn(f), context(c), count(n), grain(g) {
    const int64_t pieces = (count + grain - 1) / grain;
    shares = static_cast<int>(std::min<int64_t>(std::min(threads, kShares), pieces));
    for (int s = 0; s < shares; ++s) {
      share[s].next.store(pieces * s / shares * grain, std::memory_order_relaxed);
      share[s].end = std::min(pieces * (s + 1) / shares * grain, count);
    }
  }

  void work(int thread) noexcept {
    const bool before = std::exchange(inside_job, true);
    try {
      for (int s = 0; s < shares; ++s) take_pieces(share[(thread + s) % shares]);
    } catch (...) {
      if (!failed.exchange(true, std::memory_order_relaxed)) error = std::current_exception();
    }
    inside_job = before;
  }
  void take_pieces(Share& s) const {
    while (s.next.load(std::memory_order_relaxed) < s.end &&
           !failed.load(std::memory_order_relaxed)) {
      const int64_t b = s.next.fetch_add(grain, std::memory_order_relaxed);
      if (b < s.end) fn(context, b, std::min(b + grain, s.end));
    }
  }
  void rethrow() {
    if (error) std::rethrow_exception(std::move(error));
  }
};

class Pool {
 public:
  Pool() : wanted_(initial_threads()) {
    add_fork_lock(
        {ForkOrder::Threads, this,
         [](void* p, const timespec& t) { return lock_until(static_cast<Pool*>(p)->use_, t); },
         [](void* p) { static_cast<Pool*>(p)->use_.unlock(); },
         [](void* p) { static_cast<Pool*>(p)->forget_workers(); }});
  }
  ~Pool() { stop(); }

  int threads() const { return wanted_.load(std::memory_order_relaxed); }
  int workers() {
    std::lock_guard<std::mutex> lock(use_);
    return static_cast<int>(workers_.size());
  }

  size_t required() const { return required_.load(std::memory_order_relaxed); }
  void require(size_t bytes) {
    if (bytes <= required()) return;
    std::lock_guard<std::mutex> lock(use_);  // no thread computes with it now
    for (const auto& m : memory_) m->at_least(bytes);
    required_.store(std::max(bytes, required()), std::memory_order_relaxed);
  }
  int refused_from = 0;

  void resize(int n) {
    std::lock_guard<std::mutex> lock(use_);
    stop();
    wanted_.store(n, std::memory_order_relaxed);
  }

  void run(Job& job) {
    std::unique_lock<std::mutex> lock(use_, std::try_to_lock);
    if (!lock.owns_lock()) return job.work(0);
    if (!started_) start();
    // Publish: workers may enter while `open` is set; each entry is counted.
    job_.store(&job, std::memory_order_relaxed);
    active_.store(kOpen, std::memory_order_release);
    ticket_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      std::lock_guard<std::mutex> s(sleep_);
      wake_.notify_all();
    }
    job.work(0);
    // Close: no worker may enter any more; wait for those inside.
    active_.fetch_sub(kOpen, std::memory_order_acq_rel);
    for (int spins = 0; active_.load(std::memory_order_acquire) != 0; ++spins) {
      if (spins < 20000)
        relax();
      else
        std::this_thread::yield();
    }
  }

 private:
  static constexpr int64_t kOpen = int64_t{1} << 32;

  static int initial_threads() {
    if (const int64_t n = env::number("INGOT_NUM_THREADS"); n > 0) return static_cast<int>(n);
    const int n = static_cast<int>(std::thread::hardware_concurrency());
    return n > 0 ? n : 1;
  }

  // With the workers that could be started: each takes part in every share, so fewer of them are
  // only slower.
  void start() noexcept {
    started_ = true;
    quit_.store(false, std::memory_order_relaxed);
    const uint64_t seen = ticket_.load(std::memory_order_relaxed);
    try {
      workers_.reserve(static_cast<size_t>(threads()));
      for (int i = 1; i < threads(); ++i) start_worker(i, seen);
    } catch (const std::exception& e) {  // std::system_error, std::bad_alloc
      std::fprintf(stderr,
                   "ingot: only %d of %d threads could be started (%s): computing with these\n",
                   static_cast<int>(workers_.size()) + 1, threads(), e.what());
    }
  }

  void start_worker(int i, uint64_t seen) {
    const auto k = static_cast<size_t>(i) - 1;
    if (memory_.size() <= k) memory_.push_back(std::make_unique<ThreadMemory>());
    memory_[k]->at_least(required_.load(std::memory_order_relaxed));
    if (refused_from && i >= refused_from)
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    workers_.emplace_back([this, seen, i, memory = memory_[k].get()] {
      worker_memory = memory;
      loop(i, seen);
    });
  }

  void stop() {
    started_ = false;
    if (workers_.empty()) return;
    quit_.store(true, std::memory_order_relaxed);
    ticket_.fetch_add(1, std::memory_order_seq_cst);
    {
      std::lock_guard<std::mutex> s(sleep_);
      wake_.notify_all();
    }
    for (std::thread& t : workers_) t.join();
    workers_.clear();
  }

  // In the child of a fork. The threads do not exist there: their handles must not be destroyed,
  // which would join them or end the process, nor may anything they slept on be used again.
  void forget_workers() {
    new (&workers_) std::vector<std::thread>;
    new (&use_) std::mutex;
    new (&sleep_) std::mutex;
    new (&wake_) std::condition_variable;
    started_ = false;
    active_.store(0, std::memory_order_relaxed);
    sleepers_.store(0, std::memory_order_relaxed);
  }

  /// Joins the published job if it is still open.
  bool enter() {
    int64_t a = active_.load(std::memory_order_relaxed);
    while (a >= kOpen)
      if (active_.compare_exchange_weak(a, a + 1, std::memory_order_acq_rel)) return true;
    return false;
  }

  void wait_for_ticket(uint64_t seen) {
    for (int spins = 0; spins < kSpins; ++spins) {
      if (ticket_.load(std::memory_order_acquire) != seen) return;
      relax();
    }
    std::unique_lock<std::mutex> s(sleep_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(s, [&] { return ticket_.load(std::memory_order_seq_cst) != seen; });
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

  void loop(int thread, uint64_t seen) {
    for (;;) {
      wait_for_ticket(seen);
      seen = ticket_.load(std::memory_order_acquire);
      if (quit_.load(std::memory_order_relaxed)) return;
      if (!enter()) continue;
      job_.load(std::memory_order_relaxed)->work(thread);
      active_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  static constexpr int kSpins = 2000;  // some 30-50 microseconds
  std::mutex use_;                     // one job at a time; later callers compute alone
  std::atomic<int> wanted_;
  std::vector<std::thread> workers_;
  std::vector<std::unique_ptr<ThreadMemory>> memory_;  // per worker; outlives it
  std::atomic<size_t> required_{0};                    // bytes that each of them has at least
  bool started_ = false;
  std::atomic<bool> quit_{false};
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<int64_t> active_{0};
  std::atomic<Job*> job_{nullptr};
  std::mutex sleep_;
  std::condition_variable wake_;
  std::atomic<int> sleepers_{0};
};

Pool& pool() {
  static Pool* p =
      new Pool;  // never destroyed: static destructors of other libraries may still compute
  return *p;
}

}  // namespace

void parallel_range(int64_t count, int64_t grain, RangeFn fn, void* context) {
  if (grain < 1) grain = 1;
  if (count <= grain || inside_job || pool().threads() == 1) {
    if (count > 0) fn(context, 0, count);
    return;
  }
  Job job(fn, context, count, grain, pool().threads());
  pool().run(job);
  job.rethrow();
}

char* thread_memory(size_t bytes) {
  return (worker_memory ? *worker_memory : own_memory).at_least(bytes);
}
const void* thread_zeros(size_t bytes) {
  thread_local std::vector<char> zeros;
  if (zeros.size() < bytes) zeros.assign(bytes, 0);
  return zeros.data();
}
void require_thread_memory(size_t bytes) {
  pool().require(bytes);
  take_required_memory();
}
void take_required_memory() { thread_memory(pool().required()); }

int pool_workers() { return pool().workers(); }
void refuse_workers_from(int n) { pool().refused_from = n; }

}  // namespace ingot::cpu

namespace ingot {

void set_num_threads(int n) {
  if (n < 1)
    throw Error(ErrorKind::Value, "set_num_threads",
                "there must be at least one thread, not " + std::to_string(n));
  cpu::pool().resize(n);
}
int get_num_threads() { return cpu::pool().threads(); }

}  // namespace ingot
