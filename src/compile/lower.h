// Lowering: a group of values becomes a KernelSpec.
#pragma once
#include "codegen/kernel_spec.h"
#include "compile/group.h"

namespace ingot {

struct Lowered {
  KernelSpec spec;
  std::vector<int> buffer_vals;  // which value each buffer of the spec is
  std::vector<int> sites;  // values whose index tensors may be wrong; Instr::site counts these
};

/// The kernel of group gi. On failure returns false and names the edge whose index map does not
/// fit.
bool lower_group(const Graph& g, const Grouping& r, int gi, Lowered& out, int& bad_user,
                 int& bad_producer);
/// A library call with its further results (Op::Result) in order; buffer_vals[k] is operand k.
LibrarySpec lower_library(const Graph& g, int v, std::span<const int> sides,
                          std::vector<int>& buffer_vals);

}  // namespace ingot
