// Recorder: the pending nodes of one thread, in recording order. A run holds run_mutex; the list
// itself is guarded by a spin lock, since handles may be dropped in other threads.
#pragma once
#include <atomic>
#include <mutex>

#include "base/fork.h"
#include "graph/node.h"

namespace ingot {

class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

class Recorder {
 public:
  Recorder();
  /// This thread's recorder.
  static Recorder& current();

  void link(Node* n);
  void unlink(Node* n);
  /// The same for a caller that holds list_lock.
  void unlink_locked(Node* n);
  size_t size() const { return count_.load(std::memory_order_relaxed); }

  ForkMutex<ForkOrder::Runs, std::recursive_mutex> run_mutex;
  /// Locks run_mutex for a thread that needs what this one recorded. The mutex alone is not fair: a
  /// thread that records and runs in a loop would take it again before the guest is awake.
  void lock_as_guest();
  /// Called by the recorder's own thread before it locks run_mutex: lets a guest that waits go
  /// first.
  void let_guests_pass() const;
  SpinLock list_lock;
  Node* head = nullptr;  // oldest
  Node* tail = nullptr;
  /// backward() was called and no step() followed: the next differentiable op begins a new segment.
  std::atomic<bool> segment_open{false};
  std::atomic<bool> running{false};
  /// Bytes of leaves that were read for the first time since the last run: batches, say, of a loop
  /// that adds results up and reads none of them.
  std::atomic<size_t> leaf_bytes{0};
  static constexpr size_t kMostNodes = 400000, kMostLeafBytes = size_t{256} << 20;
  bool is_full() const {
    return size() >= kMostNodes || leaf_bytes.load(std::memory_order_relaxed) >= kMostLeafBytes;
  }

 private:
  std::atomic<size_t> count_{0};
  std::atomic<int> guests_{0};         // that wait
  std::atomic<uint64_t> received_{0};  // that have waited, and got the lock
};

/// A recorder for what is recorded apart from the thread's own program, and the way to return it
/// when its nodes are released.
Recorder& take_side_recorder();
void leave_side_recorder(Recorder& r);

/// Releases a computed node's inputs (iteratively), unless a gradient can still be asked through
/// it.
void drop_inputs(Node* n);

}  // namespace ingot
