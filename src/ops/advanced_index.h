// What functions with results of data-dependent shape share.
#pragma once
#include "ops/common.h"

namespace ingot {

/// Error(State) inside a captured function: op would have to read the values of x.
void check_not_captured(const Tensor& x, const char* op, const SourceLoc& loc);
/// Places of the true elements of a bool tensor in row-major order: int64 [count]. Runs what is
/// pending and waits for it.
Tensor true_places(const Tensor& mask);

}  // namespace ingot
