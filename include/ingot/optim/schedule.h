// Schedules of the learning rate, after torch.optim.lr_scheduler: names, arguments, defaults and
// values are PyTorch's. A schedule sets the optimiser's rates when it is made and at every step();
// no step() compiles a plan.
//
//   optim::CosineAnnealingLR schedule(opt, 100);
//   for (...) { ...; opt.step(); schedule.step(); }
//
// A schedule is a handle, as a Tensor is. It must not outlive its optimiser.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ingot/optim/optimizer.h"

namespace ingot::optim {

/// A schedule of your own: derive from it, write rate(), and make an LRScheduler over it:
///   struct Triangle : optim::Schedule {
///     double rate(int64_t step, double base) override {
///       return base * (1 - std::abs(step % 20 - 10) / 10.0);
///     }
///   };
///   optim::LRScheduler schedule(opt, Triangle());
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// The rate after `step` steps (0: of the first one) of a group whose initial rate is `base`.
  virtual double rate(int64_t step, double base) = 0;
  /// The same for a schedule that changes the present rate: in a ChainedScheduler it continues from
  /// what the one before it has set. By default rate().
  virtual double next(int64_t step, double base, double now);
  /// ReduceLROnPlateau's kind of schedule: the value given to step(metric), before rate() of that
  /// step. By default Error(State): it takes no metric.
  virtual void metric(double value, SourceLoc loc);
  /// What its state dict is recognised by.
  virtual std::string name() const { return "Schedule"; }
  /// What it remembers from step to step; the count of steps and initial rates are saved anyway.
  virtual void save(StateDict& state) const;
  virtual void load(const StateDict& state, SourceLoc loc);
};

class LRScheduler {
 public:
  LRScheduler(Optimizer& optimizer, std::shared_ptr<Schedule> schedule,
              SourceLoc loc = SourceLoc::current());
  template <class S>
  requires std::is_base_of_v<Schedule, S> LRScheduler(Optimizer& optimizer, S schedule,
                                                      SourceLoc loc = SourceLoc::current())
      : LRScheduler(optimizer, std::shared_ptr<Schedule>(std::make_shared<S>(std::move(schedule))),
                    loc) {}

  /// Sets the rates of the next step. Throws Error(State) for a schedule that needs a metric, as
  /// step(metric) does for the others.
  void step(SourceLoc loc = SourceLoc::current());
  /// ReduceLROnPlateau: the value it watches.
  void step(double metric, SourceLoc loc = SourceLoc::current());
  /// Steps so far.
  int64_t last_epoch() const;
  /// The rates it has set, one per group.
  std::vector<double> get_last_lr() const;
  /// The rates themselves are the optimiser's to save. load_state_dict() throws Error(State) for
  /// the state of another kind.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& state, SourceLoc loc = SourceLoc::current());

  struct Impl;

 protected:
  explicit LRScheduler(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
  friend class SequentialLR;
  friend class ChainedScheduler;
};

/// The initial rate times lr_lambda(step).
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> lr_lambda,
           SourceLoc loc = SourceLoc::current());
  /// One function per group; Error(Value) for another number.
  LambdaLR(Optimizer& optimizer, std::vector<std::function<double(int64_t)>> lr_lambda,
           SourceLoc loc = SourceLoc::current());
};
/// Each step multiplies by lr_lambda(step).
class MultiplicativeLR : public LRScheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, std::function<double(int64_t)> lr_lambda,
                   SourceLoc loc = SourceLoc::current());
};
/// Times gamma every step_size steps. Error(Value) unless step_size >= 1.
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1,
         SourceLoc loc = SourceLoc::current());
};
/// Times gamma at each milestone (twice where it is listed twice).
class MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1,
              SourceLoc loc = SourceLoc::current());
};
/// factor times the rate for total_iters steps. Error(Value) unless 0 <= factor <= 1.
class ConstantLR : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5,
                      SourceLoc loc = SourceLoc::current());
};
/// From start_factor to end_factor times the rate in total_iters steps: a warm-up. Error(Value)
/// unless 0 < start_factor <= 1 and 0 <= end_factor <= 1.
class LinearLR : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1,
                    int64_t total_iters = 5, SourceLoc loc = SourceLoc::current());
};
/// Times gamma at every step.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma, SourceLoc loc = SourceLoc::current());
};
/// (1 - step / total_iters)^power times the rate.
class PolynomialLR : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1,
                        SourceLoc loc = SourceLoc::current());
};
/// Half a cosine from the rate down to eta_min in T_max steps. Error(Value) unless T_max >= 1.
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0,
                    SourceLoc loc = SourceLoc::current());
};
/// The same repeatedly: over T_0 steps, then T_mult times as many each time. Error(Value) unless
/// both are at least 1.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1,
                              double eta_min = 0, SourceLoc loc = SourceLoc::current());
};

struct OneCycleOptions {
  int64_t total_steps = 0;  ///< or epochs and steps_per_epoch
  int64_t epochs = 0;
  int64_t steps_per_epoch = 0;
  double pct_start = 0.3;               ///< share of the steps that rise
  std::string anneal_strategy = "cos";  ///< or "linear"
  bool cycle_momentum = true;           ///< momentum (or the first beta) falls while the rate rises
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
};
/// Up from max_lr / div_factor to max_lr, and down to max_lr / div_factor / final_div_factor.
/// Throws Error(Value) without a number of steps, Error(State) when momentum should cycle and the
/// optimiser has none, and when it is stepped past the end.
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, double max_lr, const OneCycleOptions& options = {},
             SourceLoc loc = SourceLoc::current());
};

struct PlateauOptions {
  std::string mode = "min";  ///< or "max"
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  std::string threshold_mode = "rel";  ///< or "abs"
  int64_t cooldown = 0;
  double min_lr = 0;
  double eps = 1e-8;
};
/// Times factor when the metric has not improved for more than `patience` steps. Error(Value)
/// unless factor < 1.
class ReduceLROnPlateau : public LRScheduler {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {},
                             SourceLoc loc = SourceLoc::current());
};

/// One schedule after another: schedulers[i] takes over at milestones[i - 1]. Error(Value) unless
/// there is one milestone fewer than schedules.
class SequentialLR : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<LRScheduler> schedulers,
               std::vector<int64_t> milestones, SourceLoc loc = SourceLoc::current());
};
/// All of them at every step, each on the result of the previous one. Error(Value) for none.
class ChainedScheduler : public LRScheduler {
 public:
  explicit ChainedScheduler(std::vector<LRScheduler> schedulers,
                            SourceLoc loc = SourceLoc::current());
};

}  // namespace ingot::optim
