// memcpy by several threads. One thread fills pinned memory at a fifth of what the bus takes, and
// fresh pages of the destination are slower still.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ingot::cuda {

class Copiers {
 public:
  static constexpr size_t kPart = 512 << 10;
  explicit Copiers(int workers) : wanted_(workers) {}
  ~Copiers();
  /// Those of the process: a quarter of its hardware threads, six at most. They are never stopped.
  static Copiers& shared();
  /// As memcpy. Large copies are done together with the workers, which start at the first of them;
  /// while they work for another thread, the caller copies alone.
  void copy(void* dst, const void* src, size_t bytes);

 private:
  struct Job {
    char* to = nullptr;
    const char* from = nullptr;
    size_t bytes = 0, parts = 0;
    std::atomic<size_t> next{0}, done{0};
    void work();
  };
  void run();

  const int wanted_;
  std::vector<std::thread> threads_;
  std::mutex busy_;  // held through a copy
  std::mutex mutex_;
  std::condition_variable came_;
  std::shared_ptr<Job> job_;  // the latest
  bool stop_ = false;
};

}  // namespace ingot::cuda
