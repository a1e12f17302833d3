#include "autograd/leaves.h"

#include "graph/leaf.h"
#include "graph/lift.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"

namespace ingot::autograd {

void add_to(CellRef& sum, const Tensor& grad, const void* guarded_by,
            const std::function<bool()>& wanted) {
  CellRef first, found;
  for (;;) {
    {
      std::lock_guard lock(side_mutex(guarded_by));
      if (!wanted()) return;
      if (!sum) sum = first;
      found = sum;
    }
    if (found) break;
    first = make_cell(node_of(grad));
  }
  if (found == first) return;
  for (;;) {
    const NodeRef before = found->current();
    if (found->rebind_if(before, node_of(lift(before) + grad))) return;
  }
}

void set_requires_grad(Cell& cell, bool on, const SourceLoc& loc) {
  if (!on && !cell.meta) return;
  if (!cell.meta) cell.meta.set(new LeafMeta);
  const NodeRef node = cell.current();
  cell.leave_base();  // a leaf is nobody's view: the optimiser rebinds it
  cell.meta->requires_grad = on;
  if (node->leaf.get() != cell.meta.get()) {
    // Another tensor or a recorded operation may name the same node: it must not become a parameter
    // with this one.
    bool alone = node->refs.load() == 2 && !node->leaf;  // the cell's reference and the one above
    NoGrad guard;
    rebind_leaf(cell, alone ? node : record(Op::Alias, {node}, {}, loc));
  }
  cell.current()->requires_grad = on;
}

}  // namespace ingot::autograd
