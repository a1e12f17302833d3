// Hooks on gradients: kept on the node of a non-leaf, on the LeafMeta of a leaf.
#pragma once
#include <functional>
#include <optional>

#include "graph/cell.h"
#include "ingot/tensor.h"

namespace ingot::autograd {

using Hook = std::function<Tensor(const Tensor&)>;

/// What a hook list's shared_ptr<void> points to. The entry with number kRetain has no function of
/// the user's: it keeps the gradient of a non-leaf.
struct HookEntry {
  Hook fn;
  CellRef retained;  // under side_mutex(this)
};
inline constexpr int kRetain = 0;

/// Calls the hooks of n in order of registration; each may replace the gradient. Throws
/// Error(Autograd) when a hook returns another shape or type.
void run_hooks(Node* n, Tensor& grad);
/// Makes a non-leaf keep its gradient.
void retain_grad(Node* n);
/// The gradient it kept, null before there is one; nothing where none is kept.
std::optional<CellRef> retained_gradient(const Node* n);

}  // namespace ingot::autograd
