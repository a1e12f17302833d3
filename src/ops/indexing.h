// What the files of indexing share: the two halves of x[...], and how values of indices are read.
#pragma once
#include "ops/common.h"

namespace ingot {

/// x[...] without tensors among the items: a view.
Tensor basic_index(const Tensor& x, const Indices& index, const SourceLoc& loc);
/// x[...] with tensors among the items: a new tensor that remembers its place.
IndexedTensor picked(const Tensor& x, const Indices& index, const SourceLoc& loc);

/// Error(State) inside a captured function: op would have to read the values of x.
void check_not_captured(const Tensor& x, const char* op, const SourceLoc& loc);
/// Places of the true elements of a bool tensor in row-major order: int64 [count]. Runs what is
/// pending and waits for it.
Tensor true_places(const Tensor& mask);

}  // namespace ingot
