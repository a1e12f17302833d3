// What a run launches: a generated or hand-written kernel, or a library call.
#pragma once
#include <memory>

#include "backend/cuda/runtime/modules.h"
#include "backend/cuda/runtime/overlap.h"
#include "runtime/backend.h"

namespace ingot::cuda {

/// Everything one launch needs. `pointers` holds a word per buffer: its address or, for kernels
/// that follow pointers, kIndirectPointer and the place in device memory that holds the address.
struct LaunchSite {
  CUstream stream = nullptr;
  CudaHeader header;  // scratch and table of this launch included
  const int64_t* pointers = nullptr;
  bool capturing = false;
  bool after_kernel =
      false;  // what comes before it on the stream is a kernel, and nothing else is waited for

  void* address(int buffer) const { return reinterpret_cast<void*>(pointers[buffer]); }
};

class CudaExecutable : public Executable {
 public:
  Touches touches;  // what of its buffers a launch reads and writes
  /// Must every address be the buffer's own (library calls), so that a captured graph holds for
  /// these alone?
  virtual bool fixed_addresses() const { return true; }
  /// Words of device memory that say what each block works on, and how they follow from the
  /// pointers.
  virtual size_t table_words() const { return 0; }
  virtual void write_table(int64_t* table, const int64_t* pointers) const {
    (void)table, (void)pointers;
  }
  /// Waits for compilation, and throws what can fail, before the first launch of a run.
  virtual void ready() {}
  virtual void enqueue(const LaunchSite& site) = 0;
  /// Is a kernel the last thing it puts on the stream?
  virtual bool ends_with_kernel() const { return false; }
};

/// Text compiled by NVRTC: the compiler's kernels and our own.
/// Launches a kernel; `early` when it may start before the previous kernel has ended (it waits by
/// itself).
void launch(CUfunction function, unsigned blocks, unsigned threads, unsigned shared_bytes,
            CUstream stream, void* argument, bool early);

class KernelExecutable : public CudaExecutable {
 public:
  KernelExecutable(const CudaText& text, CudaLaunch launch, int parts, int buffers_per_part,
                   std::shared_ptr<Module> module);
  bool fixed_addresses() const override { return false; }
  size_t table_words() const override { return launch_.table.size(); }
  void write_table(int64_t* table, const int64_t* pointers) const override;
  void ready() override;
  void enqueue(const LaunchSite& site) override;
  bool ends_with_kernel() const override { return true; }

 private:
  CudaLaunch launch_;
  bool waits_;
  std::vector<unsigned> threads_;
  int parts_, buffers_;
  std::shared_ptr<Module> module_;
  std::vector<CUfunction> functions_;
};

/// Two generated kernels, one after the other.
class ChainExecutable : public CudaExecutable {
 public:
  ChainExecutable(std::unique_ptr<Executable> first, std::unique_ptr<Executable> second,
                  int buffers);
  bool fixed_addresses() const override {
    return first_->fixed_addresses() || second_->fixed_addresses();
  }
  size_t table_words() const override { return first_->table_words() + second_->table_words(); }
  void write_table(int64_t* table, const int64_t* pointers) const override;
  void ready() override;
  void enqueue(const LaunchSite& site) override;
  bool ends_with_kernel() const override { return second_->ends_with_kernel(); }

 private:
  std::unique_ptr<CudaExecutable> first_, second_;
  int buffers_;
  size_t scratch_;
};

}  // namespace ingot::cuda
