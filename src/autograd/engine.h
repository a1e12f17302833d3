// The walk of backward(): from the roots down, in reverse order of recording, so that a node's
// gradient is complete when the node is met. One walk serves backward(), grad() and the gradients
// inside checkpoints.
#pragma once
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "graph/node.h"
#include "ingot/tensor.h"

namespace ingot {

/// A gradient that does not come from the table of rules: a user's function, or a checkpoint. The
/// outputs are Alias nodes that share one of these; all their gradients are handed over at once.
struct CustomBackward {
  virtual ~CustomBackward() = default;
  /// Gradients (one per output, zeros where none arrived) to (node, its gradient) pairs.
  virtual std::vector<std::pair<NodeRef, Tensor>> backward(const std::vector<Tensor>& grads) = 0;

  std::string name;
  std::vector<NodeRef> inputs;  // what a gradient may be asked for through the outputs
  std::vector<Node*>
      outputs;  // not owned: compared, and read only while the walk holds the node; or null
  std::vector<uint64_t> output_seqs;  // tells an output from a later node at the same address
  std::vector<Dims> output_shapes;
  std::vector<std::pair<DType, Device>> output_types;
};

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
/// Takes a node's CustomBackward from it; the caller lets it go.
std::shared_ptr<CustomBackward> drop_custom(const Node& n);

}  // namespace autograd
}  // namespace ingot
