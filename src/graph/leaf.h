// LeafMeta: what a leaf that requires gradients carries, shared by its cell and by the node the
// cell names now.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph/cell.h"

namespace ingot {

class Tensor;

struct LeafMeta {
  std::atomic<uint32_t> refs{0};
  Flag requires_grad = true;
  // Under side_mutex(this):
  CellRef grad;  // accumulated gradient, or null
  // What optimisers and those who read gradients leave for each other (Optimizer::keeps_gradients).
  bool stepped = false;     // a step has used the gradient since it was last set or cleared ...
  bool taken = false;       // ... and took it away
  bool used_after = false;  // the program read, or added to, a gradient that a step had used
  bool named =
      true;          // false once the leaf's cell is gone: nobody can ask for the gradient any more
  std::string name;  // parameter path
  HookList hooks;
};

/// Gives a leaf another value (an update): the new node carries the leaf's meta, and no history.
void rebind_leaf(Cell& cell, NodeRef value);
/// What rebind_leaf() makes of the value.
void become_leaf_of(const Cell& cell, Node& value);

}  // namespace ingot
