// One GPU: its facts, streams, memory, compiled kernels and library handles.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "backend/cuda/runtime/arena.h"
#include "backend/cuda/runtime/memory.h"
#include "backend/cuda/runtime/modules.h"
#include "backend/cuda/runtime/runner.h"
#include "runtime/backend.h"

namespace ingot::cuda {

class BlasLt;
class Dnn;

class Gpu {
 public:
  explicit Gpu(int ordinal);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// The GPU becomes the one this thread's driver calls mean.
  void make_current() const;
  /// The compute stream sees what the copy stream has copied.
  void join_copies();
  void synchronize();

  void* allocate(size_t bytes);
  void deallocate(void* p, size_t bytes);
  /// Is the arena memory mapped at reserved addresses? Else it is a block like any other.
  bool maps_arena();
  /// See Backend::resize_arena.
  ArenaBlock resize_arena(ArenaBlock now, size_t bytes);
  void copy_from_host(void* dst, const void* src, size_t bytes);
  void copy_to_host(void* dst, const void* src, size_t bytes);
  void copy_on_device(void* dst, const void* src, size_t bytes);

  BlasLt& blas();
  /// nullptr when there is no cuDNN.
  Dnn* dnn();

  // Facts
  int ordinal = 0;
  std::string name;
  int major = 0, minor = 0, multiprocessors = 0, clock_khz = 0, memory_clock_khz = 0, bus_bits = 0;
  size_t memory_bytes = 0, cache_bytes = 0, shared_per_block = 0;
  std::string architecture;  // "sm_90"

  std::mutex mutex;  // held by whoever uses the streams
  CUstream compute = nullptr, copy = nullptr;
  CUstream captured[3] = {};  // graphs are captured here: as many launches may run side by side
  Staging staging;
  std::unique_ptr<ModuleCache> modules;
  std::unique_ptr<Runner> runner;

  // Memory has a separate lock, so that buffers come and go while another thread waits for the
  // device.
  std::mutex memory_mutex;
  Memory memory;
  Arena arena;
  std::atomic<uint64_t> started_run{0};
  std::atomic<bool> loose_work{
      false};  // something but a run was put on the compute stream since the last run

 private:
  int attribute(CUdevice_attribute a) const;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUevent copied_ = nullptr;
  bool copies_pending_ = false;
  std::unique_ptr<BlasLt> blas_;
  std::unique_ptr<Dnn> dnn_;
  std::once_flag blas_once_, dnn_once_;
};

}  // namespace ingot::cuda
