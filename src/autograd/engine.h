// The walk of backward(): from the roots down, in reverse order of recording, so that a node's
// gradient is complete when the node is met. One walk serves backward(), grad() and the gradients
// inside checkpoints.
#pragma once
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "graph/custom_backward.h"

namespace ingot {

namespace autograd {

struct WalkOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool accumulate = true;  // add to the leaves' .grad
  std::span<Node* const> wanted =
      {};  // return the gradients of these nodes; only ways to them are walked
};

/// Walks from roots with their gradients. Returns a gradient (or an undefined Tensor) per wanted
/// node. Throws Error(Autograd) where a graph was freed by an earlier walk; the leaves' gradients
/// are then as they were.
std::vector<Tensor> walk(std::span<const std::pair<NodeRef, Tensor>> roots, const WalkOptions& o,
                         const SourceLoc& loc);

/// The nodes that a gradient of n continues to.
void next_nodes(const Node& n, std::vector<NodeRef>& next);
/// Takes a node's CustomBackward from it; the caller releases it.
std::shared_ptr<CustomBackward> drop_custom(const Node& n);

}  // namespace autograd
}  // namespace ingot
