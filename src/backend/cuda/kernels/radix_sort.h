// A stable radix sort of (key, place) pairs, 8 bits a pass, shared by sort_long.cpp and
// scatter_sorted.cpp.
#pragma once
#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {

inline constexpr int64_t kRadixTile = 4096;  // keys that a block has

/// Device text: RadixLine<K>, radix_count(), radix_scan(), radix_move().
extern const char* const kRadixText;

/// Appends the three stages of each pass. `arguments` are the template arguments of the kernel's
/// NAME_count, NAME_scan and NAME_move; the number of the pass follows them.
void append_radix_passes(std::vector<KernelStage>& stages, const std::string& name,
                         const std::string& arguments, int passes, int64_t lines, int64_t tiles);

/// Offsets in scratch memory, one piece after the other.
class ScratchLayout {
 public:
  int64_t take(int64_t bytes) {
    const int64_t at = bytes_;
    bytes_ += (bytes + 255) / 256 * 256;
    return at;
  }
  size_t bytes() const { return static_cast<size_t>(bytes_); }

 private:
  int64_t bytes_ = 0;
};

}  // namespace ingot::cuda
