#pragma once
#include <vector>

#include "codegen/kernel_spec.h"

namespace ingot::cpu {

/// The kernel in pieces of its space in which bounds are decided: padded and joined tensors become
/// plain loads and constants there. Only itself where that is not possible or not worthwhile.
/// least_work: elements of a kernel below which one piece is faster than several; least_row:
/// elements of the fastest axis that a piece must have.
std::vector<KernelSpec> pieces_of(const KernelSpec& spec, int64_t least_work = 16 << 10,
                                  int64_t least_row = 64);

}  // namespace ingot::cpu
