// See copiers.h.
#include "backend/cuda/runtime/copiers.h"

#include <algorithm>
#include <cstring>

namespace ingot::cuda {

Copiers& Copiers::shared() {
  static auto* all =
      new Copiers(static_cast<int>(std::min(std::thread::hardware_concurrency() / 4, 6U)));
  return *all;
}

Copiers::~Copiers() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  came_.notify_all();
  for (std::thread& t : threads_) t.join();
}

// Parts are taken until none is left; a thread that comes late finds none.
void Copiers::Job::work() {
  for (size_t i = next++; i < parts; i = next++) {
    const size_t at = i * kPart;
    std::memcpy(to + at, from + at, std::min(kPart, bytes - at));
    done.fetch_add(1, std::memory_order_release);
  }
}

void Copiers::run() {
  std::shared_ptr<Job> last;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      came_.wait(lock, [&] { return stop_ || job_ != last; });
      if (stop_) return;
      last = job_;
    }
    last->work();
  }
}

void Copiers::copy(void* dst, const void* src, size_t bytes) {
  std::unique_lock alone(busy_, std::defer_lock);
  if (wanted_ <= 0 || bytes < 4 * kPart || !alone.try_lock()) {
    std::memcpy(dst, src, bytes);
    return;
  }
  while (static_cast<int>(threads_.size()) < wanted_) threads_.emplace_back([this] { run(); });
  auto job = std::make_shared<Job>();
  job->to = static_cast<char*>(dst);
  job->from = static_cast<const char*>(src);
  job->bytes = bytes;
  job->parts = (bytes + kPart - 1) / kPart;
  {
    std::lock_guard lock(mutex_);
    job_ = job;
  }
  came_.notify_all();
  job->work();
  while (job->done.load(std::memory_order_acquire) < job->parts) std::this_thread::yield();
}

}  // namespace ingot::cuda
