// Optimisers: step() records the update of every parameter that has a gradient and runs it together
// with all that is pending, forward and backward included, as one plan. Options have PyTorch's
// names, order and defaults; rates and what else a schedule changes are arguments of the plan.
#pragma once
#include <any>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ingot/state.h"
#include "ingot/tensor.h"

namespace ingot::optim {

// In every struct: weight_decay is added to the gradient unless the optimiser is set to decouple it
// (then it is subtracted from the parameter itself); maximize climbs instead; master_weights keeps
// a float32 copy of every 16-bit parameter, updates that and rounds it into the parameter, so that
// small steps are not lost. The copies are made with the optimiser: load weights into the model
// before.

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool master_weights = false;
};

struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
  bool decoupled_weight_decay = false;
  bool master_weights = false;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< decoupled
  bool amsgrad = false;
  bool maximize = false;
  bool master_weights = false;
};

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;
  bool master_weights = false;
};

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;
  bool master_weights = false;
};

struct AdadeltaOptions {
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;
  bool master_weights = false;
};

struct AdamaxOptions {
  double lr = 2e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;
  bool master_weights = false;
};

struct NAdamOptions {
  double lr = 2e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
  bool maximize = false;
  bool master_weights = false;
};

struct RAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;
  bool maximize = false;
  bool master_weights = false;
};

/// Not in PyTorch; the names are those of the paper's code.
struct LionOptions {
  double lr = 1e-4;
  std::pair<double, double> betas{0.9, 0.99};
  double weight_decay = 0;  ///< decoupled
  bool maximize = false;
  bool master_weights = false;
};

struct MuonOptions {
  double lr = 1e-3;
  double weight_decay = 0.1;  ///< decoupled
  double momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> ns_coefficients{3.4445, -4.775, 2.0315};
  double eps = 1e-7;
  int ns_steps = 5;
  std::string adjust_lr_fn = "original";  ///< or "match_rms_adamw"
  bool master_weights = false;
};

/// Parameters that share options.
template <class Options>
struct ParamGroup {
  std::vector<Tensor> params;
  Options options{};
};

/// Shared by all optimisers. Parameters and state are computed when the optimiser is made, so that
/// the first step has the plan of all others. Parameters that are frozen, or have no gradient, stay
/// as they are.
///
/// Your own optimiser derives from it, adds its groups of parameters in its constructor and writes
/// one step as a formula of tensors. Everything else (one plan with forward and backward, state
/// dicts, checkpoints, counts of steps, master weights, GradScaler, NanGuard, EMA) comes with it:
///   class Momentum : public optim::Optimizer {
///    public:
///     Momentum(const std::vector<Tensor>& params, double lr) {
///       add_group(params, {.lr = lr, .states = 1});
///     }
///    private:
///     void update(Step& step) const override {
///       for (Parameter& p : step.parameters) {
///         p.state[0] = p.state[0] * 0.9 + p.gradient;
///         p.weight = p.weight - p.state[0] * step.lr;
///       }
///     }
///   };
class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter that has a gradient and clears the gradients, unless keep_gradients.
  /// When the run fails it throws, and parameters and state are unchanged; the gradients too,
  /// unless a bad index made them invalid.
  void step(bool keep_gradients = false, SourceLoc loc = SourceLoc::current());
  /// Clears all gradients.
  void zero_grad(SourceLoc loc = SourceLoc::current());

  size_t group_count() const;
  /// Throws Error(Index) for an unknown group, as set_lr does.
  double lr(size_t group = 0, SourceLoc loc = SourceLoc::current()) const;
  /// Takes effect with the next step, without another plan.
  void set_lr(double lr, SourceLoc loc = SourceLoc::current());
  void set_lr(double lr, size_t group, SourceLoc loc = SourceLoc::current());
  /// Multiplies every group's rate.
  void scale_lr(double factor);
  /// The momentum, or the first beta, of a group; Error(State) in an optimiser without one, as
  /// set_momentum. The first set_momentum makes it an argument of the plan: one more plan, and no
  /// more after it.
  double momentum(size_t group = 0, SourceLoc loc = SourceLoc::current()) const;
  void set_momentum(double momentum, size_t group = 0, SourceLoc loc = SourceLoc::current());
  /// The parameters of all groups, in order.
  std::vector<Tensor> params() const;
  /// Everything but parameters and rates that must be saved to resume: moments, then step counts.
  /// Each parameter counts its own steps; those that have always stepped together share a count.
  /// The tensors are the optimiser's own.
  std::vector<Tensor> state() const;
  /// The same under names, with the groups' rates; the counts as one number per parameter,
  /// "steps.0" for the first group. load_state_dict() throws Error(State) when the state has
  /// another number of tensors or groups, Error(Shape) when one differs; then nothing changes.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& state, SourceLoc loc = SourceLoc::current());

  /// For the library: a parameter with its state. The tensors are the optimiser's own.
  struct ParameterState {
    Tensor param;
    std::vector<Tensor> state;
    Tensor master;   ///< undefined where there is none
    Tensor steps;    ///< 0-d float64, shared by parameters that have always stepped together
    Tensor product;  ///< NAdam's product of momenta, or undefined
  };
  std::vector<ParameterState> parameter_states() const;
  /// For the library: the steps done by each parameter, and NAdam's products (any number
  /// elsewhere).
  void set_steps(const std::vector<double>& steps, const std::vector<double>& products,
                 SourceLoc loc = SourceLoc::current());
  /// For the library: takes over the state of all parameters that another optimiser of this kind
  /// has too.
  void adopt(const Optimizer& other);
  /// For the library: should the next step keep gradients, as PyTorch does? Yes in the first two
  /// steps, and for good once the program has used a gradient after a step: read it (gradient_of),
  /// added to it, or stepped again. Throws Error(State) when a gradient was consumed and not
  /// cleared since.
  bool keeps_gradients(SourceLoc loc = SourceLoc::current());

  struct Group;
  struct Update;
  struct Average;
  /// For the library: records the update and returns it without running. A false element in `good`
  /// (0-d bool, or undefined) leaves everything as it is; gradients are multiplied by `factor`
  /// (0-d, or undefined).
  std::shared_ptr<Update> record(const Tensor& good, const Tensor& factor, SourceLoc loc);
  /// For the library: runs recorded updates together, or undoes them all and throws.
  static void run(const std::vector<Update*>& updates, bool keep_gradients, SourceLoc loc);
  /// For the library: the rate a group had when the first schedule was made over it.
  double initial_lr(size_t group);
  /// For the library: updated with the parameters in every step, until nothing else holds it.
  void follow(const std::shared_ptr<Average>& average);

  // ---- What a formula sees

  /// A number in the plan or, from the first set_momentum() on, an argument of it.
  class Momentum {
   public:
    Tensor times(const Tensor& x) const;       ///< momentum * x
    Tensor rest_times(const Tensor& x) const;  ///< (1 - momentum) * x
    Tensor power(const Tensor& count) const;   ///< momentum^count, of 0-d float64
    Tensor on(const Device& device) const;     ///< 0-d float64
    double number = 0;
    Tensor argument;  ///< undefined: it is the number
  };

  /// A parameter's state tensors; Error(Index) for one that add_group() did not make.
  class States {
   public:
    size_t size() const { return tensors_.size(); }
    Tensor& operator[](size_t i);
    const Tensor& operator[](size_t i) const;

   private:
    friend class Optimizer;
    std::vector<Tensor> tensors_;
  };

  /// A parameter before the step; the formula replaces weight and state by what they are after it.
  /// All have the type the update computes in: float32 for 16-bit parameters, else the parameter's.
  struct Parameter {
    Tensor weight;
    Tensor gradient;
    States state;
    /// A 0-d value in that type. Only a 0-d parameter needs it: its update would be computed in
    /// float64, rate and count being float64.
    Tensor scalar(const Tensor& value) const;
  };

  /// Parameters of one group that have always stepped together, so that what depends on the count
  /// of steps is computed once for all of them.
  class Step {
   public:
    Tensor lr;     ///< 0-d float64, as count: arguments of the plan, not constants
    Tensor count;  ///< 1 in the first step
    Momentum momentum;
    Tensor product;  ///< where the group asked for it; replaced like a weight
    std::vector<Parameter> parameters;
    size_t group = 0;

    /// What add_group() was given; Error(State) where that had another type.
    template <class Options>
    const Options& options() const {
      const Options* o = std::any_cast<Options>(options_);
      if (!o) refuse_options();
      return *o;
    }

   private:
    friend class Optimizer;
    [[noreturn]] void refuse_options() const;
    const std::any* options_ = nullptr;
  };

 protected:
  Optimizer();

  struct GroupOptions {
    double lr = 1e-3;
    int states = 0;  ///< tensors like the parameter
    double initial_state = 0;
    /// Given, it returns a parameter's state instead, of any number and shapes.
    std::function<std::vector<Tensor>(const Tensor& param)> make_state = {};
    /// What momentum() and set_momentum() refer to, for schedules that cycle it; the formula finds
    /// it as Step::momentum.
    std::optional<double> momentum = {};
    bool master_weights = false;
    /// A further number per parameter, kept as its count of steps is: Step::product, 1 at first.
    bool product = false;
  };
  /// A further group of parameters. `options` is for the formula: Step::options(). Throws
  /// Error(Value) for no parameters, Error(Autograd) for one that is not a leaf or named twice.
  void add_group(const std::vector<Tensor>& params, const GroupOptions& group,
                 std::any options = {}, SourceLoc loc = SourceLoc::current());

  /// An option that the formula reads has changed: the next step records it anew.
  void formula_changed();

 private:
  /// One step as a formula. It is recorded once for many steps, so it computes with tensors and
  /// reads no values: what differs from step to step comes from the rate, the count, the momentum
  /// and state. Throws Error(Shape) in step() for a result of another shape, Error(Device) for one
  /// on another device, Error(State) for an undefined one; then nothing changes.
  virtual void update(Step& step) const = 0;
  void record_formula(size_t group, Update& update) const;

  std::vector<std::shared_ptr<Group>> groups_;
  std::vector<std::weak_ptr<Average>> averages_;
  int kept_steps_ = 0;
  bool keep_ = false;
};

/// For the library: grad() that records a read after step(), and throws Error(Autograd) when step()
/// consumed the gradient.
Tensor gradient_of(const Tensor& leaf, SourceLoc loc = SourceLoc::current());

/// An optimiser with options of one kind. Each is made over parameters and options, or over groups
/// of both:
///   optim::SGD opt(model.parameters(), {.lr = 0.1, .momentum = 0.9});
///   optim::AdamW opt({{decayed, {.lr = 1e-3}}, {norms, {.lr = 1e-3, .weight_decay = 0}}});
/// They throw Error(Value) for invalid options, naming them.
#define INGOT_OPTIMIZER(Name)                                                           \
  class Name : public Optimizer {                                                       \
   public:                                                                              \
    explicit Name(const std::vector<Tensor>& params, const Name##Options& options = {}, \
                  SourceLoc loc = SourceLoc::current());                                \
    explicit Name(const std::vector<ParamGroup<Name##Options>>& groups,                 \
                  SourceLoc loc = SourceLoc::current());                                \
                                                                                        \
   private:                                                                             \
    void update(Step& step) const override;                                             \
  };

/// Stochastic gradient descent with momentum and Nesterov's variant. nesterov needs momentum and no
/// dampening.
INGOT_OPTIMIZER(SGD)
INGOT_OPTIMIZER(RMSprop)
INGOT_OPTIMIZER(Adagrad)
INGOT_OPTIMIZER(Adadelta)
INGOT_OPTIMIZER(Adamax)
INGOT_OPTIMIZER(NAdam)
INGOT_OPTIMIZER(RAdam)
/// The sign of an average of gradients: one state tensor per parameter.
INGOT_OPTIMIZER(Lion)
/// Momentum made orthogonal by Newton and Schulz's iteration, for matrices only: Error(Shape) for
/// another rank. Computes in float32, where PyTorch takes bfloat16.
INGOT_OPTIMIZER(Muon)
#undef INGOT_OPTIMIZER

/// Adam; for 16-bit parameters the moments are float32. Throws Error(Value) for betas outside [0,
/// 1), or a negative lr, eps or weight_decay.
class Adam : public Optimizer {
 public:
  explicit Adam(const std::vector<Tensor>& params, const AdamOptions& options = {},
                SourceLoc loc = SourceLoc::current());
  explicit Adam(const std::vector<ParamGroup<AdamOptions>>& groups,
                SourceLoc loc = SourceLoc::current());

 protected:
  Adam(const std::vector<ParamGroup<AdamOptions>>& groups, const char* name, SourceLoc loc);

 private:
  void update(Step& step) const override;
};

/// Adam with decoupled weight decay.
class AdamW : public Adam {
 public:
  explicit AdamW(const std::vector<Tensor>& params, const AdamWOptions& options = {},
                 SourceLoc loc = SourceLoc::current());
  explicit AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups,
                 SourceLoc loc = SourceLoc::current());
};

/// Scales all gradients so that their joint norm (of the kind norm_type; infinity: the largest
/// element) is at most max_norm; returns the norm before, not yet computed (0 when there are no
/// gradients). Throws Error(Value) unless max_norm >= 0 and norm_type > 0.
Tensor clip_grad_norm_(const std::vector<Tensor>& params, double max_norm, double norm_type = 2,
                       SourceLoc loc = SourceLoc::current());
/// The joint norm of tensors, such as the gradients of parameters; undefined ones are skipped.
Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type = 2,
                      SourceLoc loc = SourceLoc::current());
/// Gradients that exist, or did before a step consumed them, become zeros.
void zero_gradients(const std::vector<Tensor>& params, SourceLoc loc = SourceLoc::current());
/// Clamps every element of every gradient to [-limit, limit]. Throws Error(Value) unless limit >=
/// 0.
void clip_grad_value_(const std::vector<Tensor>& params, double limit,
                      SourceLoc loc = SourceLoc::current());

struct EMAOptions {
  double decay = 0.999;
};
/// Running averages of an optimiser's parameters, updated in the plan of
/// every step: average += (1 - decay) * (parameter - average). A step that
/// is skipped does not change them. Throws Error(Value) unless 0 <= decay <=
/// 1.
class EMA {
 public:
  explicit EMA(Optimizer& optimizer, const EMAOptions& options = {},
               SourceLoc loc = SourceLoc::current());
  /// The averages, in the order of optimizer.params().
  std::vector<Tensor> averages() const;
  /// Swaps the parameters with their averages, and back the next time: before an evaluation, and
  /// again after it. Between the two, step() throws Error(State).
  void swap(SourceLoc loc = SourceLoc::current());
  StateDict state_dict() const;
  void load_state_dict(const StateDict& state, SourceLoc loc = SourceLoc::current());

 private:
  std::shared_ptr<Optimizer::Average> average_;
};

}  // namespace ingot::optim
