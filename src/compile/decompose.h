// Composites that no kernel runs in one call -> what they stand for.
#pragma once
#include <string>
#include <vector>

#include "codegen/offer.h"
#include "compile/ir.h"

namespace ingot {

/// What tells one call of a composite from another, its operands' strides aside.
struct CompositeCall {
  Op op = Op::Composite;
  DType dtype = DType::Float32;
  Device device{DeviceType::CPU, 0};
  Attributes attrs;
  std::vector<Dims> operands;
  bool operator==(const CompositeCall&) const = default;
};
CompositeCall composite_call(const Graph& g, int v);

/// A call that was decomposed, for explain: its text, and why no kernel runs it.
struct DecomposedCall {
  std::string call;
  std::vector<Refusal> refused;
};

/// May a kernel run it in one call?
bool is_composite_call(const Val& v);
/// Decomposes the calls that no kernel offers to run, and those that were refused when a plan was
/// made; with `fuse`, GELU is kept, since a product may take it as an epilogue. The result: what a
/// kernel might have run.
std::vector<DecomposedCall> decompose_unclaimed(Graph& g, const std::vector<CompositeCall>& refused,
                                                bool fuse);
/// Decomposes every named function that is left.
void decompose_functions(Graph& g);

}  // namespace ingot
