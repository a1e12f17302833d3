// The parts of an optimiser's step: groups of parameters with their state, and the list of values
// the step assigns to them. Nothing a step changes is lost until its run has succeeded.
#pragma once
#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "graph/handle.h"
#include "ingot/optim.h"

namespace ingot::optim {

/// One parameter and its state (momentum; first and second moment), on its device.
struct Slot {
  Tensor param;
  std::vector<Tensor> state;
  Tensor
      master;  // float32; undefined unless the parameter is in 16 bits and the group keeps masters
  size_t count = 0;  // which of the group's counts is its own
};

/// The steps done by parameters of one device that have always stepped together: usually all of a
/// group.
struct Count {
  Tensor steps;    // 0-d float64, counted by the plan itself, so that a skipped step does not count
  Tensor product;  // NAdam's product of momenta
  bool moved = false;  // false: no step was ever recorded
};

struct StepFunction;  // step_function.cpp

struct Optimizer::Group {
  std::any options;  // what add_group() was given for the formula
  std::vector<Slot> slots;
  /// Shared with the recorded steps, so that a captured step reads the current rate.
  std::shared_ptr<double> lr = std::make_shared<double>(0.0);
  std::shared_ptr<double> momentum;  // null: this optimiser has none
  bool momentum_moves = false;       // it was set: an argument of the plan
  std::optional<double> initial_lr;
  std::vector<Count> counts;
  bool product = false;                // counts have products
  bool masters = false;                // 16-bit parameters have masters
  std::shared_ptr<StepFunction> step;  // the last plain step, recorded as one node

  /// The index of a count, created where this device has none.
  size_t count_on(const Device& d);
  /// State follows parameters that were converted or moved since the last step, and parameters that
  /// step separately from here on get separate counts.
  void follow_parameters();
  bool on_one_device() const;
};

/// Averages that follow the parameters of one optimiser.
struct Optimizer::Average {
  double decay;
  std::vector<Tensor> params, averages;
  std::vector<Tensor> saved;  // the parameters, while their averages replace them
};

/// A recorded step. Cells already refer to their new values. No handle on an old value or a
/// gradient is held while it runs (a handle would make the plan keep the value): the pending new
/// nodes lead back to the old ones.
struct Optimizer::Update {
  struct Change {
    CellRef cell;
    NodeRef after;  // Assign(before, value)
    bool parameter;
  };
  struct Gradient {
    Tensor param;
    Node* grad;    // alive while its parameter's Change is pending; a reference would keep the
                   // parameter from being overwritten
    CellRef cell;  // set when the program holds the gradient too
  };
  std::vector<Change> changes;
  std::vector<Gradient> gradients;
  std::vector<std::shared_ptr<Average>> averages;
  bool keep_gradients = false;
  Tensor good, factor;
  SourceLoc loc;

  /// target := value, unless the step is bad. Both have the same shape; value is cast to target's
  /// type.
  void assign(Tensor& target, const Tensor& value, bool parameter);
  /// The parameter's new value, and its master's and averages'.
  void set_weight(Slot& slot, const Tensor& value);
  /// Takes the gradients from the parameters.
  void consume_gradients();
  /// Undoes what has not been computed.
  void take_back();
};

/// A number as an argument of the plan: 0-d float64.
Tensor argument_on(const std::shared_ptr<double>& source, const Device& d);

/// Records a group's step: as the function recorded before, or by `op_by_op`.
void record_group(Optimizer::Group& group, Optimizer::Update& update,
                  const std::function<void(Optimizer::Update&)>& op_by_op);

/// The gradient of p in the type its update computes in: float32 for 16-bit floats, else p's own;
/// multiplied by the update's factor. Undefined when p has none.
Tensor gradient_for_update(Optimizer::Update& update, const Tensor& p);
/// The gradients of parameters, undefined where there is none.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& params, const SourceLoc& loc);
/// The type an update of p computes in.
DType compute_type(const Tensor& p);
/// A 0-d value in the type and on the device of a parameter's update.
Tensor as_scalar_of(const Tensor& value, const Tensor& p);
/// The parameter in the type its update computes in: its master, if it has one.
Tensor weight_of(const Slot& slot);
/// 1 - beta^t, exact for small t too.
Tensor bias_correction(double beta, const Tensor& t);

/// Throws Error(Value) with `wrong` as the reason unless it is null.
void refuse(const char* name, const char* wrong, const SourceLoc& loc);
/// What is wrong with the options that nearly all optimisers have, or null.
template <class O>
const char* common_mistake(const O& o) {
  if (!(o.lr >= 0)) return "lr is negative";
  if (!(o.weight_decay >= 0)) return "weight_decay is negative";
  if constexpr (requires { o.eps; })
    if (!(o.eps >= 0)) return "eps is negative";
  if constexpr (requires { o.betas; })
    for (double b : {o.betas.first, o.betas.second})
      if (!(b >= 0 && b < 1)) return "betas must be in [0, 1)";
  if constexpr (requires { o.momentum; })
    if (!(o.momentum >= 0)) return "momentum is negative";
  return nullptr;
}

}  // namespace ingot::optim
