// A gradient that does not come from the table of rules: a user's function, or a checkpoint.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "graph/node.h"
#include "ingot/tensor.h"

namespace ingot {

/// The outputs are Alias nodes (or the Assign of an in-place call) that share one of these; all
/// their gradients are handed over at once.
struct CustomBackward {
  virtual ~CustomBackward() = default;
  /// Gradients (one per output, zeros where none arrived) to (node, its gradient) pairs.
  virtual std::vector<std::pair<NodeRef, Tensor>> backward(const std::vector<Tensor>& grads) = 0;

  std::string name;
  std::vector<NodeRef> inputs;  // what a gradient may be asked for through the outputs
  std::vector<Node*>
      outputs;  // not owned: compared, and read only while the walk holds the node; or null
  std::vector<uint64_t> output_seqs;  // distinguish an output from a later node at the same address
  std::vector<Dims> output_shapes;
  std::vector<std::pair<DType, Device>> output_types;
};

}  // namespace ingot
