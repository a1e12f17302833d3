// From nodes to Tensors and back, for code that lies between graph/ and the public API.
#pragma once
#include "graph/handle.h"

namespace ingot::autograd {

/// A new handle on the node, with a cell of its own.
inline Tensor lift(NodeRef n) { return tensor_of(std::move(n)); }
/// The node a defined tensor names now.
inline NodeRef node_of(const Tensor& t) { return t.cell()->current(); }

/// Records a primitive at the place the innermost LocScope names.
template <size_t N>
Tensor make(Op op, NodeRef (&&inputs)[N], const Attrs& attrs) {
  return lift(record_taking(op, inputs, attrs, user_loc(SourceLoc::current())));
}

}  // namespace ingot::autograd
