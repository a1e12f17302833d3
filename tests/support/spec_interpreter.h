// A naive interpreter of KernelSpecs: one outer point at a time, every instruction in order, in
// float64 and int64 with a rounding to the instruction's type. It shares no code with a backend;
// the scalar arithmetic is the oracle's.
#pragma once
#include "runtime/backend.h"

namespace ingot::test {

/// Runs the kernel on this machine's memory: buffers[b] holds spec.buffers[b].numel elements. Loads
/// see the memory as it was at the start. Throws std::runtime_error when an access leaves its
/// buffer.
void interpret(const KernelSpec& spec, void* const* buffers, const RunArgs& run);

/// Elements to and from memory; floating types in f, others in i.
struct Element {
  double f = 0;
  int64_t i = 0;
};
void write_element(DType t, void* data, int64_t at, Element e);
Element read_element(DType t, const void* data, int64_t at);

}  // namespace ingot::test
