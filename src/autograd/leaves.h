// Leaves: tensors whose gradient is kept. The LeafMeta belongs to the cell; the node the cell names carries
// it too, so that a walk finds it.
#pragma once
#include <mutex>

#include "graph/cell.h"
#include "ingot/source.h"

namespace ingot::autograd {

/// Turns a cell's tensor into a leaf that requires gradients, or back. A node with other uses is not changed:
/// the cell gets a node of its own.
void set_requires_grad(Cell& cell, bool on, const SourceLoc& loc);

/// Guards the gradient of a leaf, to which several threads may add. Never held while anything is run.
std::mutex& grad_mutex(const LeafMeta& leaf);

}  // namespace ingot::autograd
