// Leaves: tensors whose gradient is kept. The LeafMeta belongs to the cell; the node the cell names
// carries it too, so that a walk finds it.
#pragma once
#include <functional>

#include "graph/cell.h"
#include "ingot/source.h"
#include "ingot/tensor.h"

namespace ingot::autograd {

/// Makes a cell's tensor a leaf that requires gradients, or one that does not. A node with other
/// uses is not changed: the cell gets a new node.
void set_requires_grad(Cell& cell, bool on, const SourceLoc& loc);

/// Adds a gradient to a sum, null before the first, which side_mutex(guarded_by) guards; not if
/// `wanted`, asked under it, says no. Recording may run what is pending, so the lock is not held
/// meanwhile: where another thread was quicker, it is its sum that is added to.
void add_to(CellRef& sum, const Tensor& grad, const void* guarded_by,
            const std::function<bool()>& wanted);

}  // namespace ingot::autograd
