// Cell: what copies of a Tensor share. In-place calls rebind the cell to another node, so all copies see it.
// A cell made by a movement op remembers its base cell: writing to the view writes through to the base.
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
  NodeRef node;  // never null
  CellRef base;  // view of this cell ...
  NodeRef
      base_node;  // ... taken when its node was this one: node reaches it by one movement op, or by two ...
  NodeRef via;    // ... with this one between (a computed node may have dropped its inputs)
  Ref<LeafMeta> meta;  // leaves that require gradients

  void rebind(NodeRef n);
};
CellRef make_cell(NodeRef n);

}  // namespace ingot
