// Kernels that write over what they read, and change little of it.
#pragma once
#include <span>

#include "codegen/kernel_spec.h"

namespace ingot {

/// What a store of where(c, x, old) writes over and nobody else reads: the load of old, or -1.
int overwritten_load(std::span<const KernelSpec> parts, int store);

/// A kernel whose only store is where(index along an axis == number, x, old) over old changes one
/// index along that axis, and need not visit the others.
struct SingleIndex {
  int axis = -1;                // none
  int index = -1, number = -1;  // instructions; the number is made of constants and arguments
};
SingleIndex find_single_index(std::span<const KernelSpec> parts);

}  // namespace ingot
