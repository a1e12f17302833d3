// A naive interpreter of KernelSpecs: every instruction over every point, in float64 or int64,
// rounded to its type. It shares no code with the CPU backend but the scalar definitions of the
// ops.
#pragma once
#include <cstdint>
#include <vector>

#include "codegen/kernel_spec.h"
#include "runtime/backend.h"

namespace ingot::test {

/// One number of any type: f for floating types, i for the others.
struct Number {
  double f = 0;
  int64_t i = 0;
};
/// Memory as stored.
using Bytes = std::vector<char>;

Number read_number(const Bytes& b, DType t, int64_t at);
void write_number(Bytes& b, DType t, int64_t at, Number v);
/// Rounded or wrapped to what the type can hold.
Number to_type(Number v, DType t);
Number convert(Number v, DType from, DType to);
Number compute(Op op, DType in, DType out, Number a, Number b, Number c);

/// Runs the kernel on these buffers (buffers[k] is the spec's buffer k).
void interpret(const KernelSpec& k, std::vector<Bytes*> buffers, const RunArgs& run);

}  // namespace ingot::test
