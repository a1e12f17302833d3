// Optimisers: step() records the update of every parameter that has a gradient and runs it together with all that is
// pending, forward and backward included, as one plan.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "ingot/state.h"
#include "ingot/tensor.h"

namespace ingot::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
};

struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;  ///< added to the gradient
  bool amsgrad = false;
  bool maximize = false;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< taken from the parameter itself
  bool amsgrad = false;
  bool maximize = false;
};

/// Parameters that share options.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params;
  Options options{};
};

/// What the optimisers have in common. Parameters and state are computed when the optimiser is made, so that the first
/// step has the plan of all others.
class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter that has a gradient and takes the gradients away, unless keep_gradients. When the run
  /// fails it throws, and parameters and state are as they were; the gradients too, unless it was a bad index that
  /// made them worthless.
  void step(bool keep_gradients = false, SourceLoc loc = SourceLoc::current());
  /// Takes all gradients away.
  void zero_grad(SourceLoc loc = SourceLoc::current());

  size_t group_count() const;
  /// Throws Error(Index) for a group that is not there, as set_lr does.
  double lr(size_t group = 0, SourceLoc loc = SourceLoc::current()) const;
  /// Takes effect with the next step, without another plan.
  void set_lr(double lr, SourceLoc loc = SourceLoc::current());
  void set_lr(double lr, size_t group, SourceLoc loc = SourceLoc::current());
  /// Multiplies every group's rate: what a schedule does.
  void scale_lr(double factor);
  /// The parameters of all groups, in order.
  std::vector<Tensor> params() const;
  /// Everything but parameters and rates that must be saved to resume: moments and step counts, in a fixed order. The
  /// tensors are the optimiser's own: copy_() into them (under NoGrad) restores it.
  std::vector<Tensor> state() const;
  /// The same under names, with the groups' rates. load_state_dict() throws Error(State) when the state is of another number of
  /// tensors or groups, Error(Shape) when one differs; then nothing has changed.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& state, SourceLoc loc = SourceLoc::current());

  struct Group;
  struct Update;
  /// For the library: records the update and returns it without running. A false element in `good` (0-d bool, or
  /// undefined) leaves everything as it is; gradients are multiplied by `factor` (0-d, or undefined).
  std::unique_ptr<Update> record(const Tensor& good, const Tensor& factor, SourceLoc loc);
  /// For the library: runs recorded updates in one go, or takes them all back and throws.
  static void run(const std::vector<Update*>& updates, bool keep_gradients, SourceLoc loc);

 protected:
  Optimizer();
  /// Throws Error(Value) for no parameters, Error(Autograd) for one that is not a leaf or named twice.
  void add_group(const std::vector<Tensor>& params, double lr, int states, bool third_state, SourceLoc loc);
  std::vector<std::unique_ptr<Group>> groups_;

 private:
  /// Records the update of one group.
  virtual void update_group(size_t index, Group& group, Update& update) = 0;
  struct Recording;
};

/// Stochastic gradient descent, as in PyTorch. Throws Error(Value) for a negative lr, momentum or weight_decay, or
/// nesterov without momentum or with dampening.
class SGD : public Optimizer {
 public:
  explicit SGD(const std::vector<Tensor>& params, const SGDOptions& options = {}, SourceLoc loc = SourceLoc::current());
  explicit SGD(const std::vector<ParamGroup<SGDOptions>>& groups, SourceLoc loc = SourceLoc::current());

 private:
  void update_group(size_t index, Group& group, Update& update) override;
  std::vector<SGDOptions> options_;
};

/// Adam, as in PyTorch; for 16-bit parameters the moments are float32. Throws Error(Value) for betas outside [0, 1), or
/// a negative lr, eps or weight_decay.
class Adam : public Optimizer {
 public:
  explicit Adam(const std::vector<Tensor>& params, const AdamOptions& options = {}, SourceLoc loc = SourceLoc::current());
  explicit Adam(const std::vector<ParamGroup<AdamOptions>>& groups, SourceLoc loc = SourceLoc::current());

 protected:
  Adam(const std::vector<ParamGroup<AdamOptions>>& groups, bool decoupled, SourceLoc loc);

 private:
  void update_group(size_t index, Group& group, Update& update) override;
  std::vector<AdamOptions> options_;
  bool decoupled_ = false;
};

/// Adam with decoupled weight decay.
class AdamW : public Adam {
 public:
  explicit AdamW(const std::vector<Tensor>& params, const AdamWOptions& options = {}, SourceLoc loc = SourceLoc::current());
  explicit AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups, SourceLoc loc = SourceLoc::current());
};

/// Scales all gradients so that their joint 2-norm is at most max_norm; returns the norm before, not yet computed
/// (0 when there are no gradients). Throws Error(Value) unless max_norm >= 0.
Tensor clip_grad_norm_(const std::vector<Tensor>& params, double max_norm, SourceLoc loc = SourceLoc::current());
/// Clamps every element of every gradient to [-limit, limit]. Throws Error(Value) unless limit >= 0.
void clip_grad_value_(const std::vector<Tensor>& params, double limit, SourceLoc loc = SourceLoc::current());

}  // namespace ingot::optim
