// Device memory and copies of one GPU.
//
// Freed blocks are kept by size and reused at once: everything runs on one
// compute stream, so whoever writes a block next comes after whoever read it last. Requests up to 1
// MiB are rounded up to a quarter of their power of two and cut from slabs; larger ones to 2 MiB.
// Kept blocks of 64 MiB and more serve a request up to a fiftieth smaller; if none fits, they all
// go back to the driver before it is asked for more, so that what is held at the peak is what is
// used there.
//
// Host copies go through pinned staging. A copy into a block that nothing on the device touches any
// more runs on the copy stream, beside the kernels; any other one waits its turn on the compute
// stream.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "backend/cuda/runtime/driver.h"

namespace ingot::cuda {

class Memory {
 public:
  static constexpr size_t kSlab = 2 << 20, kSmall = 1 << 20, kLarge = size_t{64} << 20;
  static size_t rounded(size_t bytes);

  /// nullptr when there is none, after everything unused was returned to the driver.
  void* allocate(size_t bytes);
  /// `last_run`: the newest run that may still use it.
  void deallocate(void* p, size_t bytes, uint64_t last_run);
  /// Gives unused blocks of that size and larger ones back to the driver. (Small ones are parts of
  /// slabs.)
  void trim(size_t size = kSmall + 1);

  /// Was p handed out since the last run began, and is everything that used it before run
  /// `finished` or earlier?
  bool quiet(void* p, uint64_t finished) const;
  /// A run begins: from now on blocks handed out before it may be in use.
  void run_begins() { fresh_.clear(); }
  size_t held() const { return held_; }  // bytes taken from the driver

 private:
  struct Free {
    void* p;
    uint64_t last_run;
  };
  void* reuse(size_t size);
  void* from_driver(size_t bytes);
  void* from_slab(size_t bytes);
  std::map<size_t, std::vector<Free>> free_;
  std::unordered_map<void*, uint64_t> fresh_;
  std::unordered_map<void*, size_t> size_;  // of blocks that serve a smaller request
  char* slab_ = nullptr;
  size_t slab_left_ = 0, held_ = 0;
};

/// A few pinned buffers, used in turn; each is waited for before it is filled again.
class Staging {
 public:
  static constexpr size_t kBytes = 8 << 20;
  static constexpr int kBuffers = 3;
  /// Copies in pieces; returns when src may be changed.
  void to_device(CUstream stream, void* dst, const void* src, size_t bytes);
  /// Returns when dst is filled.
  void to_host(CUstream stream, void* dst, const void* src, size_t bytes);

 private:
  struct Buffer {
    char* data = nullptr;
    CUevent done = nullptr;
    bool busy = false;
  };
  Buffer& next();
  Buffer buffers_[kBuffers];
  int turn_ = 0;
};

}  // namespace ingot::cuda
