// When things run: nothing does until a value is needed. eval() asks for it.
#pragma once
#include "ingot/tensor.h"

namespace ingot {

/// Computes these tensors, and whatever else is pending on this thread and still named by a handle, as one plan.
/// Throws what the run throws; then everything stays pending.
void eval(const std::vector<Tensor>& tensors, SourceLoc loc = SourceLoc::current());
inline void eval(const Tensor& tensor, SourceLoc loc = SourceLoc::current()) { tensor.eval_(loc); }
/// Runs what is pending on this thread and waits for all devices; raises device errors that have not been seen yet.
void synchronize(SourceLoc loc = SourceLoc::current());

/// Threads the CPU devices use; Error(Value) unless n >= 1. At start: as many as the machine has cores.
void set_num_threads(int n);
int get_num_threads();

}  // namespace ingot
