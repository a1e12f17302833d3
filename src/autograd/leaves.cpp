#include "autograd/leaves.h"

#include "base/fork.h"
#include "graph/leaf.h"
#include "ingot/autograd.h"

namespace ingot::autograd {

// A few mutexes for all leaves: one per leaf would cost more than the rare wait.
std::mutex& grad_mutex(const LeafMeta& leaf) {
  static auto* mutexes = new ForkMutex<ForkOrder::Gradients>[16];
  return mutexes[reinterpret_cast<uintptr_t>(&leaf) / 64 % 16];
}

void set_requires_grad(Cell& cell, bool on, const SourceLoc& loc) {
  if (!on && !cell.meta) return;
  if (!cell.meta) cell.meta = Ref<LeafMeta>(new LeafMeta);
  NodeRef node(cell.current());
  cell.leave_base();  // a leaf is nobody's view: the optimiser rebinds it
  cell.meta->requires_grad = on;
  if (node->leaf != cell.meta) {
    // Another tensor or a recorded operation may name the same node: it must not become a parameter with this
    // one.
    bool alone = node->refs.load() == 2 && !node->leaf;  // the cell's reference and the one above
    NoGrad guard;
    rebind_leaf(cell, alone ? node : record(Op::Alias, {node.get()}, {}, loc));
  }
  cell.node->requires_grad = on;
}

}  // namespace ingot::autograd
