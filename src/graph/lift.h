// From nodes to Tensors and back, for code between graph/ and the public API.
#pragma once
#include "graph/handle.h"

namespace ingot {

/// A new handle on the node, with a new cell.
inline Tensor lift(NodeRef n) { return tensor_of(std::move(n)); }
/// The node a defined tensor names now.
inline NodeRef node_of(const Tensor& t) { return t.cell()->current(); }

/// Result number `index` of an op that has several and no handle yet: nobody computes it before all
/// its results are asked for.
inline Tensor result_of(const NodeRef& op, int index, const SourceLoc& loc) {
  return lift(record(Op::Result, {op}, {ResultAttrs{index}}, loc));
}

/// Records a primitive with the location that the innermost LocScope names.
template <size_t N>
Tensor make(Op op, NodeRef (&&inputs)[N], const OpSpec& spec) {
  return lift(record_taking(op, inputs, spec, user_loc(SourceLoc::current())));
}

}  // namespace ingot
