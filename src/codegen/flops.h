// How many operations a library call takes, by the formulas that graph/ops.def names.
#pragma once
#include "codegen/kernel_spec.h"

namespace ingot {

/// 0 for ops that are not counted.
double flops_of(const LibrarySpec& l);

}  // namespace ingot
