// The null backend computes nothing and counts everything: plans, kernels, launches and bytes are
// asserted on it.
#pragma once
#include <memory>

#include "runtime/backend.h"

namespace ingot {

struct NullCounts {
  int64_t generated = 0;  // generated kernels run
  int64_t library = 0;    // library calls run
  int64_t launches = 0;   // device launches (a two-stage reduce is two)
  int64_t compiled = 0;   // kernels compiled
};
NullCounts null_counts();
void reset_null_counts();

/// What its kernels for library calls take besides the defaults. Plans that were made before stay
/// in the cache: clear it after a change.
struct NullKernels {
  Epilogues epilogues{Epilogue::Bias, Epilogue::Residual, Epilogue::Relu};
  bool channels_last = false;  // convolutions want that layout
  bool attention = true;       // takes attention of 16 bits, for heads of common sizes
};
NullKernels null_kernels();
void set_null_kernels(const NullKernels& kernels);
std::unique_ptr<Backend> make_null_backend();

}  // namespace ingot
