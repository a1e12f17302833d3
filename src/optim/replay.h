// The structure of a recorded step, kept without its values, to recompute it op by op when it went
// wrong.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/layer_log.h"
#include "graph/node.h"
#include "ingot/tensor.h"

namespace ingot::optim {

class Replay {
 public:
  /// What is pending below the roots. Parameters are kept by handle: a reference to their nodes
  /// would keep the step from overwriting them.
  Replay(const std::vector<Tensor>& roots, const std::vector<Tensor>& params,
         std::vector<LayerCall> layers);
  /// A description of the first op that produced infinity or NaN from finite operands, with line
  /// and layer; or of a leaf that was bad from the start; "" when nothing is bad now.
  std::string first_bad() const;
  /// Memory that is kept for it: leaves that are not parameters.
  size_t bytes() const { return bytes_; }

 private:
  struct Step {
    Op op;
    OpSpec spec;
    std::vector<int> inputs;  // steps: k, leaves: -1 - k
    SourceLoc loc;
    uint64_t number;
    int uses = 0;
  };
  struct Leaf {
    NodeRef node;  // or
    Tensor param;
  };
  std::string place(const Step& s) const;
  std::vector<Step> steps_;
  std::vector<Leaf> leaves_;
  std::vector<LayerCall> layers_;
  size_t bytes_ = 0;
};

}  // namespace ingot::optim
