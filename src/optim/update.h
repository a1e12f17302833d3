// What an optimiser's step is made of: groups of parameters with their state, and the list of values the step gives
// them. Nothing a step changes is lost until its run has succeeded.
#pragma once
#include <memory>
#include <vector>

#include "graph/handle.h"
#include "ingot/optim.h"

namespace ingot::optim {

/// One parameter and its state (momentum; first and second moment), on its device.
struct Slot {
  Tensor param;
  std::vector<Tensor> state;
};

struct Optimizer::Group {
  std::vector<Slot> slots;
  /// Shared with the recorded steps, so that a captured step reads the rate of the day.
  std::shared_ptr<double> lr = std::make_shared<double>(0.0);
  /// Steps done, on every device that has parameters: float64, counted by the plan itself, so that a skipped step
  /// does not count.
  std::vector<Tensor> counts;

  Tensor& count_on(const Device& d);
  /// The rate as an argument of the plan: 0-d float64.
  Tensor lr_on(const Device& d) const;
};

/// A recorded step. Cells already name their new values. No handle on an old value or a gradient is held while it runs
/// (a handle would make the plan keep the value): the pending new nodes lead back to the old ones.
struct Optimizer::Update {
  struct Change {
    CellRef cell;
    NodeRef after;  // Assign(before, value)
    bool parameter;
  };
  struct Gradient {
    Tensor param;
    Node* grad;    // alive while its parameter's Change is pending; a reference would keep the parameter from being written over
    CellRef cell;  // set when the program holds the gradient too
  };
  std::vector<Change> changes;
  std::vector<Gradient> gradients;
  Tensor good, factor;
  SourceLoc loc;

  /// target := value, unless the step turns out bad. Both have the same shape; value is cast to target's type.
  void assign(Tensor& target, const Tensor& value, bool parameter);
  /// Takes the gradients from the parameters.
  void consume_gradients();
  /// Undoes what has not been computed.
  void take_back();
};

/// The gradient of p in the type its update computes in: float32 for 16-bit floats, else p's own; multiplied by the
/// update's factor. Undefined when p has none.
Tensor gradient_for_update(Optimizer::Update& update, const Tensor& p);
/// The type an update of p computes in.
DType compute_type(const Tensor& p);
/// A 0-d value in the type and on the device of a parameter's update.
Tensor as_scalar_of(const Tensor& value, const Tensor& p);

}  // namespace ingot::optim
