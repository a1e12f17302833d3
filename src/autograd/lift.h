// From nodes to Tensors and back, for code that lies between graph/ and the public API.
#pragma once
#include "graph/handle.h"

namespace ingot::autograd {

/// A new handle on the node, with a cell of its own.
inline Tensor lift(NodeRef n) { return tensor_of(std::move(n)); }
inline Tensor lift(Node* n) { return tensor_of(NodeRef(n)); }
/// The node a defined tensor names now.
inline Node* node_of(const Tensor& t) { return t.cell()->current(); }

/// Result number `index` of an op that has several.
inline Tensor result_of(const Tensor& op, int index, const SourceLoc& loc) {
  return lift(record(Op::Result, {node_of(op)}, {ResultAttrs{index}}, loc));
}

/// Records a primitive at the place the innermost LocScope names.
inline Tensor make(Op op, std::initializer_list<Node*> inputs, const OpSpec& spec) {
  return lift(record(op, inputs, spec, user_loc(SourceLoc::current())));
}

}  // namespace ingot::autograd
