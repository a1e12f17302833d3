// LoweredLaunch: a lowered kernel or library call before it is scheduled.
#pragma once
#include <vector>

#include "codegen/kernel_spec.h"
#include "compile/ir.h"

namespace ingot {

struct LoweredLaunch {
  Device device{DeviceType::CPU, 0}, from{DeviceType::CPU, 0};
  bool library_call = false, copy = false;
  std::vector<KernelSpec> parts;
  std::vector<KernelSpec>
      second;  // at most one: the second stage, whose buffers follow those of the parts
  LibrarySpec library;
  std::vector<int> vals;   // what each buffer is, part after part
  std::vector<int> after;  // values that must be there before, though nothing is read (fences)
  int last = 0;            // largest value computed here: recording order
  int region = -1;         // SliceAssign computed here
};

/// Is buffer b of a kernel or library call written (rather than read)?
bool written(const LoweredLaunch& w, size_t b);
/// Kernels of one structure that do not depend on each other become parts of one launch, where that
/// does not keep much memory alive for longer; those that read leaves alone come first of all, up
/// to some bytes.
void merge_horizontally(const Graph& g, std::vector<LoweredLaunch>& lowered);
/// A reduction of what a kernel with reductions gives for each of its outer points (a loss summed
/// up over the rows) becomes that kernel's second stage.
void join_stages(const Graph& g, std::vector<LoweredLaunch>& lowered);
/// A topological order, close to the recording order; what writes parameters comes last.
std::vector<int> order_launches(const Graph& g, const std::vector<LoweredLaunch>& lowered);

}  // namespace ingot
