// CUDA C text from KernelSpecs.
//
// emit_cuda() turns the parts of one generated kernel (one structure, many sizes) into a
// header-free program and all that is needed to launch it. The text depends on the structure and on
// a few buckets (lanes per thread, threads per row, ...), never on a size: equal `key`, equal text,
// one compilation. Every number (extents, strides, offsets, magic divisors) arrives at launch.
//
// A kernel takes one argument by value, so that its numbers are in the constant bank:
//   struct { const double* args; const uint64_t* seeds; const uint64_t* offsets; RunStatus* status;
//            char* scratch; const int64_t* table; int64_t n[K]; }
// For one part, n holds the part's words. For several parts n[0] is their number, and `table`, in
// device memory, holds for each stage the first block of each part, then the parts' words. A part's
// words begin with one word per buffer: its address, or, with kIndirectPointer set, the address of
// the word that holds its address. That is how a replayed CUDA graph sees new external buffers
// without being patched.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_spec.h"

namespace ingot {

/// What of the device matters to the choice of schedule. The same text runs on any chip from sm_80
/// on.
struct CudaTarget {
  int multiprocessors = 132;
  size_t shared_per_block = 227 * 1024;  // with the opt-in attribute set
  size_t cache_bytes = 50 << 20;         // larger kernels use streaming loads and stores
};

inline constexpr uint64_t kIndirectPointer = uint64_t{1} << 63;

/// The words before n[] in the kernel's argument, in this order.
struct CudaHeader {
  const double* args = nullptr;
  const uint64_t* seeds = nullptr;
  const uint64_t* offsets = nullptr;
  void* status = nullptr;
  void* scratch = nullptr;
  const int64_t* table = nullptr;
};

/// The numbers of one set of parts.
struct CudaLaunch {
  struct Stage {
    unsigned grid = 0;  // blocks, along x
    unsigned shared_bytes =
        0;  // dynamic; above 48 KB the function's attribute must be raised first
  };
  std::vector<Stage> stages;   // launched one after the other with the same argument
  std::vector<int64_t> words;  // n[]
  std::vector<int64_t> table;  // for device memory; empty for one part
  size_t scratch_bytes = 0;
  int first_part = 0;  // where part 0's words begin, in table or, when that is empty, in words
  int part_words = 0;  // words per part; the first of them are the buffers' addresses

  /// The word that takes the address of a buffer.
  int64_t& pointer(int part, int buffer) {
    auto& v = table.empty() ? words : table;
    return v[static_cast<size_t>(first_part) + static_cast<size_t>(part) * part_words + buffer];
  }
  /// The kernel's argument: header and words.
  std::vector<int64_t> argument(const CudaHeader& header) const;
};

struct CudaStage {
  std::string entry;      // name of the kernel in the text
  unsigned threads = 0;   // per block
  bool barriers = false;  // do its threads wait for one another?
};

namespace cuda {
struct Plan;  // the schedule and the list of numbers
}

struct CudaText {
  std::string body;  // to be compiled after cuda_prelude()
  std::string key;   // equal for equal text
  std::vector<CudaStage> stages;
  bool waits = false;    // every kernel begins with ig_wait(): it may be launched before the one in
                         // front of it has ended
  std::string schedule;  // for people: "row, 4 lanes, 512 threads per row, 4 groups in registers"
  std::shared_ptr<const cuda::Plan> plan;

  std::string source() const;  // prelude and body
  /// Geometry and numbers for parts that have this text: those given to emit_cuda, or others of the
  /// same key.
  CudaLaunch launch(std::span<const KernelSpec> parts) const;
};

CudaText emit_cuda(std::span<const KernelSpec> parts, const CudaTarget& target = {});
/// The key alone: kernels of equal key share their compiled code.
std::string cuda_structure_key(std::span<const KernelSpec> parts, const CudaTarget& target = {});
/// Types, conversions, ig_* functions, Philox: what every kernel's text begins with.
const std::string& cuda_prelude();

}  // namespace ingot
