// Reduce kernels that run along columns (a weight's gradient from activations row by row) as
// machine code: a few rows at a time are worked on and summed in registers, then added to float64
// accumulators that stay in the L1 cache. The boxes, splits and merges are those of the tiles
// (exec.h); only the visit of a tile is replaced.
#pragma once
#include <memory>
#include <span>

#include "backend/cpu/jit/code_memory.h"
#include "backend/cpu/kernel/layout.h"

namespace ingot::cpu {

/// Can column code process the tiles of this kernel? Called before their sizes are chosen.
bool suits_column_code(const Analysis& an);

class ColumnCode {
 public:
  /// nullptr where there is no such code.
  static std::shared_ptr<ColumnCode> make(const Analysis& an);

  struct Pointer {
    int buffer;
    Access at;
    int64_t row_step;  // elements from row to row
    bool along;        // runs along the columns; else one value per row
  };
  const std::vector<Pointer>& pointers() const { return pointers_; }
  /// The Reduce instructions, in the order in which run() takes their accumulators.
  const std::vector<int>& reduces() const { return reduces_; }
  size_t host_bytes() const {
    return sizeof *this + code_.bytes() + pointers_.capacity() * sizeof(Pointer) +
           reduces_.capacity() * sizeof(int);
  }
  /// addresses: of each pointer in this tile, then of each accumulator.
  void run(std::span<char* const> addresses, int64_t rows, int64_t columns) const;

 private:
  Code code_;
  std::vector<Pointer> pointers_;
  std::vector<int> reduces_;
};

}  // namespace ingot::cpu
