// The two halves of x[...].
#pragma once
#include "ingot/tensor.h"

namespace ingot {

/// x[...] without tensors among the items: a view.
Tensor basic_index(const Tensor& x, const Indices& index, const SourceLoc& loc);
/// x[...] with tensors among the items: a new tensor that remembers where it was read.
IndexedTensor picked(const Tensor& x, const Indices& index, const SourceLoc& loc);

}  // namespace ingot
