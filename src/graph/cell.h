// Cell: what copies of a Tensor share. In-place calls rebind the cell to another node, so all copies see it.
// A cell made by a movement op remembers its base cell: writing to the view writes through to the base, and
// a view whose base has moved on is recorded anew when it is read.
#pragma once
#include <atomic>

#include "graph/node.h"

namespace ingot {

struct Cell;
void retain(Cell* c);
void release(Cell* c);
using CellRef = Ref<Cell>;

struct Cell {
  std::atomic<uint32_t> refs{0};
  NodeRef node;  // never null; a view's may be out of date: current() is what readers ask
  CellRef base;  // view of this cell ...
  NodeRef
      base_node;  // ... taken when its node was this one: node reaches it by one movement op, or by two ...
  NodeRef via;    // ... with this one between (a computed node may have dropped its inputs)
  Ref<LeafMeta> meta;    // leaves that require gradients
  uint64_t checked = 0;  // a view: how many writes to viewed cells there had been when it was compared last
  bool viewed = false;   // some cell has, or had, this one as its base

  /// The node this cell names now. A view whose base was written to is taken anew.
  Node* current() {
    if (base) [[unlikely]]
      follow_base();
    return node.get();
  }
  void rebind(NodeRef n);
  void become_view(Cell& of);
  /// From now on a tensor of its own: what is written to the former base is not seen here.
  void leave_base();

 private:
  void follow_base();
};
/// What records the node's op once more.
OpSpec spec_of(const Node& n);
CellRef make_cell(NodeRef n);

}  // namespace ingot
