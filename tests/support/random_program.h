// A generator of random programs over tensors: views, elementwise ops, reductions, products,
// broadcasts, shared subexpressions, in-place writes, several outputs, gradients. A seed is a
// program; the data has a separate seed, so that one program runs on different numbers (and finds
// its plan again).
#pragma once
#include <string>
#include <vector>

#include "support/op_check.h"

namespace ingot::check {

struct ProgramOptions {
  uint64_t seed = 0;
  uint64_t data_seed = 0;
  /// false: nothing is computed by the library; values come from the oracle.
  bool run = true;
  Device device;  // the default one
  /// At most this many steps: the beginning of the same program, for finding a small one that
  /// fails.
  int64_t max_steps = 1000;
};

struct ProgramResult {
  std::string text;                   ///< the program, one line per step
  std::vector<std::string> names;     ///< of the values
  std::vector<oracle::Value> values;  ///< outputs, values read on the way, gradients
  DType dtype = DType::Float64;
};

ProgramResult run_program(const ProgramOptions& options);

}  // namespace ingot::check
