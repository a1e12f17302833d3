// Between Tensor, the public handle, and the cells and nodes underneath.
#pragma once
#include "graph/cell.h"
#include "ingot/tensor.h"

namespace ingot {

/// Throws Error(State): `op` was given Tensor().
[[noreturn]] void throw_undefined(const char* op, const SourceLoc& loc);

/// The node a tensor names now; Error(State) when it is undefined.
inline NodeRef node_of(const Tensor& t, const char* op, const SourceLoc& loc) {
  if (!t.cell()) throw_undefined(op, loc);
  return t.cell()->current();
}

/// INGOT_EAGER=1 or set_eager(true): every operation runs at its line, so that a debugger and an
/// error find it there.
bool is_eager();

/// What that means for a tensor that was just recorded.
void run_at_its_line(const Tensor& t);

/// A new tensor over a node.
inline Tensor tensor_of(NodeRef n) {
  Tensor t = Tensor::adopt(make_cell(std::move(n)).leak());
  if (is_eager()) [[unlikely]]
    run_at_its_line(t);
  return t;
}
/// A tensor over a cell.
inline Tensor tensor_of(CellRef c) { return Tensor::adopt(c.leak()); }

/// A view of base: n reaches `from`, a node of base's, by one or two movement ops (or Alias).
/// Writing to the view writes to base, and what is written to base is seen through the view.
inline Tensor view_of(const Tensor& base, NodeRef from, NodeRef n) {
  NodeRef via = n->in[0] == from.get() ? NodeRef() : NodeRef(n->in[0]);
  CellRef c = make_cell(std::move(n));
  c->become_view(*base.cell(), std::move(from), std::move(via));
  return Tensor::adopt(c.leak());
}

}  // namespace ingot
