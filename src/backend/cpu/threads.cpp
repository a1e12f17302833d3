// See threads.h. A job is published under a ticket number that workers watch. Each thread has a share of the
// range, the same one in every run, takes pieces of it in order, and then helps the others with theirs: a
// thread that meets the same memory again finds part of it in its caches (a sum over 64 MiB takes half the
// time that way). The caller waits until every worker that joined has left, so the job may live on its stack.
// Everything is ordered by the two atomics `ticket` and `active`: nothing is guarded by luck.
#include "backend/cpu/threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

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

  Job(RangeFn f, void* c, int64_t n, int64_t g, int threads) : fn(f), context(c), count(n), grain(g) {
    const int64_t pieces = (count + grain - 1) / grain;
    shares = static_cast<int>(std::min<int64_t>(std::min(threads, kShares), pieces));
    for (int s = 0; s < shares; ++s) {
      share[s].next.store(pieces * s / shares * grain, std::memory_order_relaxed);
      share[s].end = std::min(pieces * (s + 1) / shares * grain, count);
    }
  }

  void work(int thread) {
    inside_job = true;
    for (int s = 0; s < shares; ++s) take_pieces(share[(thread + s) % shares]);
    inside_job = false;
  }
  void take_pieces(Share& s) const {
    while (s.next.load(std::memory_order_relaxed) < s.end) {
      const int64_t b = s.next.fetch_add(grain, std::memory_order_relaxed);
      if (b < s.end) fn(context, b, std::min(b + grain, s.end));
    }
  }
};

class Pool {
 public:
  Pool() : wanted_(initial_threads()) {}
  ~Pool() { stop(); }

  int threads() const { return wanted_.load(std::memory_order_relaxed); }

  void resize(int n) {
    std::lock_guard<std::mutex> lock(use_);
    stop();
    wanted_.store(n, std::memory_order_relaxed);
  }

  void run(Job& job) {
    std::unique_lock<std::mutex> lock(use_, std::try_to_lock);
    if (!lock.owns_lock()) return job.work(0);
    if (workers_.empty()) start();
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
    if (const char* e = std::getenv("INGOT_NUM_THREADS")) {
      const int n = std::atoi(e);
      if (n > 0) return n;
    }
    const int n = static_cast<int>(std::thread::hardware_concurrency());
    return n > 0 ? n : 1;
  }

  void start() {
    quit_.store(false, std::memory_order_relaxed);
    const uint64_t seen = ticket_.load(std::memory_order_relaxed);
    for (int i = 1; i < threads(); ++i) workers_.emplace_back([this, seen, i] { loop(i, seen); });
  }

  void stop() {
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
  std::atomic<bool> quit_{false};
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<int64_t> active_{0};
  std::atomic<Job*> job_{nullptr};
  std::mutex sleep_;
  std::condition_variable wake_;
  std::atomic<int> sleepers_{0};
};

Pool& pool() {
  static Pool* p = new Pool;  // never destroyed: static destructors of other libraries may still compute
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
}

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
