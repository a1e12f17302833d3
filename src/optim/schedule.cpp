// Schedules. Each kind defines the first rate and how the next one follows from it, so that
// several may act on one optimiser (ChainedScheduler); sequences restart each of their
// parts from the initial rate.
#include "ingot/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>

namespace ingot::optim {

using std::numbers::pi;

struct LRScheduler::Impl {
  Impl(Optimizer& optimizer, std::string name) : o(optimizer), kind(std::move(name)) {
    for (size_t g = 0; g < o.group_count(); ++g) base.push_back(o.initial_lr(g));
  }
  virtual ~Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  virtual double first(size_t, double now) { return now; }
  virtual double next(size_t, double now) = 0;  // epoch already counts this step
  virtual void start() {
    epoch = 0;
    set([&](size_t g, double now) { return first(g, now); });
  }
  /// From the initial rates, whatever they are now.
  virtual void restart() {
    epoch = 0;
    set([&](size_t g, double) { return first(g, base[g]); });
  }
  virtual void step(const SourceLoc&) {
    ++epoch;
    set([&](size_t g, double now) { return next(g, now); });
  }
  virtual void metric(double, const SourceLoc& loc) {
    throw Error(ErrorKind::State, kind, "takes no metric", loc, "call step()");
  }
  virtual void save(StateDict& d, const std::string& prefix) const {
    d.set(prefix + "kind", kind);
    d.set(prefix + "last_epoch", epoch);
    for (size_t g = 0; g < base.size(); ++g)
      d.set(prefix + "base_lr." + std::to_string(g), base[g]);
  }
  virtual void load(const StateDict& d, const std::string& prefix, const SourceLoc& loc) {
    if (d.text(prefix + "kind", loc) != kind)
      throw Error(ErrorKind::State, "load_state_dict",
                  "the state belongs to a " + d.text(prefix + "kind", loc) + ", not to a " + kind,
                  loc);
    epoch = count_in(d, prefix + "last_epoch", loc);
    for (size_t g = 0; g < base.size(); ++g)
      base[g] = d.number(prefix + "base_lr." + std::to_string(g), loc);
  }

  // Counts that continue must not overflow.
  static int64_t count_in(const StateDict& d, const std::string& name, const SourceLoc& loc) {
    const int64_t n = d.integer(name, loc);
    if (n < 0 || n > int64_t{1} << 53)
      throw Error(ErrorKind::State, "load_state_dict",
                  "\"" + name + "\" is " + std::to_string(n) + ", which is not a valid count", loc);
    return n;
  }
  template <class F>
  void set(F&& f) {
    for (size_t g = 0; g < base.size(); ++g) o.set_lr(f(g, o.lr(g)), g);
  }

  Optimizer& o;
  const std::string kind;
  int64_t epoch = 0;
  std::vector<double> base;
};

namespace {

using Impl = LRScheduler::Impl;

void refuse(bool wrong, const std::string& kind, const char* what, const SourceLoc& loc) {
  if (wrong) throw Error(ErrorKind::Value, kind, what, user_loc(loc));
}

// A rate that is a function of the step alone.
struct Closed : Impl {
  std::function<double(size_t, int64_t)> rate;
  Closed(Optimizer& optimizer, const char* name, std::function<double(size_t, int64_t)> f)
      : Impl(optimizer, name), rate(std::move(f)) {}
  double first(size_t g, double) override { return rate(g, 0); }
  double next(size_t g, double) override { return rate(g, epoch); }
};

// A rate that is the previous one times a factor, which depends on the step.
struct Factors : Impl {
  double start_factor;
  std::function<double(int64_t)> factor;
  Factors(Optimizer& optimizer, const char* name, double at_start, std::function<double(int64_t)> f)
      : Impl(optimizer, name), start_factor(at_start), factor(std::move(f)) {}
  double first(size_t, double now) override { return now * start_factor; }
  double next(size_t, double now) override { return now * factor(epoch); }
};

// The program's own.
struct Own : Impl {
  std::shared_ptr<Schedule> schedule;
  Own(Optimizer& optimizer, std::shared_ptr<Schedule> s)
      : Impl(optimizer, s->name()), schedule(std::move(s)) {}
  double first(size_t g, double now) override { return schedule->next(0, base[g], now); }
  double next(size_t g, double now) override { return schedule->next(epoch, base[g], now); }
  void metric(double value, const SourceLoc& loc) override {
    schedule->metric(value, loc);
    Impl::step(loc);
  }
  void save(StateDict& d, const std::string& prefix) const override {
    Impl::save(d, prefix);
    StateDict own;
    schedule->save(own);
    for (const auto& [name, value] : own.values) d.set(prefix + kOwn + name, value);
    for (const auto& [name, value] : own.tensors)
      d.tensors.emplace_back(prefix + kOwn + name, value);
  }
  void load(const StateDict& d, const std::string& prefix, const SourceLoc& loc) override {
    StateDict own;
    const std::string start = prefix + kOwn;
    for (const auto& [name, value] : d.values)
      if (name.starts_with(start)) own.set(name.substr(start.size()), value);
    for (const auto& [name, value] : d.tensors)
      if (name.starts_with(start)) own.tensors.emplace_back(name.substr(start.size()), value);
    Impl::load(d, prefix, loc);
    schedule->load(own, loc);
  }

 private:
  static constexpr const char* kOwn = "own.";
};

struct Cosine : Impl {
  int64_t half;
  double low;
  Cosine(Optimizer& optimizer, int64_t t_max, double eta_min)
      : Impl(optimizer, "CosineAnnealingLR"), half(t_max), low(eta_min) {}
  double next(size_t g, double now) override {
    const double t = static_cast<double>(half), e = static_cast<double>(epoch);
    // On the way up again the factor would be a division by 0: the first step from the
    // bottom is set by its size.
    if ((epoch - 1 - half) % (2 * half) == 0)
      return now + (base[g] - low) * (1 - std::cos(pi / t)) / 2;
    return (1 + std::cos(pi * e / t)) / (1 + std::cos(pi * (e - 1) / t)) * (now - low) + low;
  }
};

double restarts(int64_t epoch, int64_t period, int64_t mult) {  // share of the running period
  while (epoch >= period) {
    epoch -= period;
    period *= mult;
  }
  return static_cast<double>(epoch) / static_cast<double>(period);
}

struct OneCycle : Impl {
  struct Phase {
    double end, lr[2], momentum[2];
  };
  OneCycleOptions c;
  std::vector<Phase> phases;
  int64_t total;

  OneCycle(Optimizer& optimizer, double max_lr, const OneCycleOptions& options,
           const SourceLoc& loc)
      : Impl(optimizer, "OneCycleLR"),
        c(options),
        total(c.total_steps > 0 ? c.total_steps : c.epochs * c.steps_per_epoch) {
    refuse(total < 1, kind, "needs total_steps, or epochs and steps_per_epoch", loc);
    refuse(!(c.pct_start >= 0 && c.pct_start <= 1), kind, "pct_start must be in [0, 1]", loc);
    refuse(c.anneal_strategy != "cos" && c.anneal_strategy != "linear", kind,
           "anneal_strategy must be \"cos\" or \"linear\"", loc);
    const double low = max_lr / c.div_factor, lowest = low / c.final_div_factor,
                 n = static_cast<double>(total);
    const double m = c.max_momentum, b = c.base_momentum;
    phases.push_back({c.pct_start * n - 1, {low, max_lr}, {m, b}});
    if (c.three_phase) phases.push_back({2 * c.pct_start * n - 2, {max_lr, low}, {b, m}});
    if (c.three_phase)
      phases.push_back({n - 1, {low, lowest}, {m, m}});
    else
      phases.push_back({n - 1, {max_lr, lowest}, {b, m}});
    for (double& v : base) v = low;
  }
  double between(double from, double to, double share) const {
    return c.anneal_strategy == "cos" ? to + (from - to) / 2 * (1 + std::cos(pi * share))
                                      : (to - from) * share + from;
  }
  double first(size_t g, double now) override { return next(g, now); }
  double next(size_t g, double) override {
    double begin = 0;
    size_t i = 0;
    const double at = static_cast<double>(epoch);
    for (; i + 1 < phases.size() && at > phases[i].end; ++i) begin = phases[i].end;
    const Phase& p = phases[i];
    const double share = (at - begin) / (p.end - begin);
    if (c.cycle_momentum) o.set_momentum(between(p.momentum[0], p.momentum[1], share), g);
    return between(p.lr[0], p.lr[1], share);
  }
  void step(const SourceLoc& loc) override {
    if (epoch >= total)
      throw Error(ErrorKind::State, kind, "was created for " + std::to_string(total) + " steps",
                  loc, "create it with more total_steps");
    Impl::step(loc);
  }
};

struct Plateau : Impl {
  PlateauOptions p;
  double best;
  int64_t bad = 0, cooling = 0;
  Plateau(Optimizer& optimizer, const PlateauOptions& options)
      : Impl(optimizer, "ReduceLROnPlateau"), p(options) {
    best = p.mode == "min" ? std::numeric_limits<double>::infinity()
                           : -std::numeric_limits<double>::infinity();
  }
  double next(size_t, double now) override { return now; }
  void step(const SourceLoc& loc) override {
    throw Error(ErrorKind::State, kind, "needs a metric", loc, "call step(metric)");
  }
  bool better(double v) const {
    const bool relative = p.threshold_mode == "rel";
    if (p.mode == "min") return v < (relative ? best * (1 - p.threshold) : best - p.threshold);
    return v > (relative ? best * (1 + p.threshold) : best + p.threshold);
  }
  void metric(double v, const SourceLoc&) override {
    ++epoch;
    if (better(v))
      best = v, bad = 0;
    else
      ++bad;
    if (cooling > 0) --cooling, bad = 0;
    if (bad <= p.patience) return;
    cooling = p.cooldown;
    bad = 0;
    set([&](size_t, double now) {
      const double lower = std::max(now * p.factor, p.min_lr);
      return now - lower > p.eps ? lower : now;
    });
  }
  void save(StateDict& d, const std::string& prefix) const override {
    Impl::save(d, prefix);
    d.set(prefix + "best", best);
    d.set(prefix + "num_bad_epochs", bad);
    d.set(prefix + "cooldown_counter", cooling);
  }
  void load(const StateDict& d, const std::string& prefix, const SourceLoc& loc) override {
    Impl::load(d, prefix, loc);
    best = d.number(prefix + "best", loc);
    bad = count_in(d, prefix + "num_bad_epochs", loc);
    cooling = count_in(d, prefix + "cooldown_counter", loc);
  }
};

// Several schedules of one optimiser.
struct Several : Impl {
  std::vector<std::shared_ptr<Impl>> parts;
  Several(Optimizer& optimizer, const char* name, std::vector<std::shared_ptr<Impl>> p)
      : Impl(optimizer, name), parts(std::move(p)) {}
  double next(size_t, double now) override { return now; }
  void save(StateDict& d, const std::string& prefix) const override {
    Impl::save(d, prefix);
    for (size_t i = 0; i < parts.size(); ++i) parts[i]->save(d, prefix + std::to_string(i) + ".");
  }
  void load(const StateDict& d, const std::string& prefix, const SourceLoc& loc) override {
    Impl::load(d, prefix, loc);
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i]->load(d, prefix + std::to_string(i) + ".", loc);
  }
};

struct Sequence : Several {
  std::vector<int64_t> milestones;
  Sequence(Optimizer& optimizer, std::vector<std::shared_ptr<Impl>> p, std::vector<int64_t> at)
      : Several(optimizer, "SequentialLR", std::move(p)), milestones(std::move(at)) {}
  void start() override { restart(); }
  void restart() override {
    epoch = 0;
    set([&](size_t g, double) { return base[g]; });
    parts[running()]->restart();
  }
  void step(const SourceLoc& loc) override {
    ++epoch;
    const size_t i = running();
    if (i > 0 && milestones[i - 1] == epoch)
      parts[i]->restart();
    else
      parts[i]->step(loc);
  }
  size_t running() const {
    return static_cast<size_t>(std::upper_bound(milestones.begin(), milestones.end(), epoch) -
                               milestones.begin());
  }
};

struct Chain : Several {
  using Several::Several;
  void start() override {}  // its parts have set each other's initial rates already
  void restart() override {
    epoch = 0;
    set([&](size_t g, double) { return base[g]; });
    for (auto& p : parts) p->start();
  }
  void step(const SourceLoc& loc) override {
    ++epoch;
    for (auto& p : parts) p->step(loc);
  }
};

std::function<double(size_t, int64_t)> times_base(Optimizer& o, std::function<double(int64_t)> f) {
  std::vector<double> base;
  for (size_t g = 0; g < o.group_count(); ++g) base.push_back(o.initial_lr(g));
  return [base, f = std::move(f)](size_t g, int64_t epoch) { return base[g] * f(epoch); };
}

std::function<double(size_t, int64_t)> times_base(Optimizer& o,
                                                  std::vector<std::function<double(int64_t)>> f,
                                                  const SourceLoc& loc) {
  refuse(f.size() != o.group_count(), "LambdaLR", "needs one function per group of the optimiser",
         loc);
  std::vector<double> base;
  for (size_t g = 0; g < o.group_count(); ++g) base.push_back(o.initial_lr(g));
  return [base, f = std::move(f)](size_t g, int64_t epoch) { return base[g] * f[g](epoch); };
}

}  // namespace

// ---- A schedule of the program's own

double Schedule::next(int64_t step, double base, double) { return rate(step, base); }
void Schedule::metric(double, SourceLoc loc) {
  throw Error(ErrorKind::State, name(), "takes no metric", user_loc(loc), "call step()");
}
void Schedule::save(StateDict&) const {}
void Schedule::load(const StateDict&, SourceLoc) {}

// ---- The handle

static std::shared_ptr<Impl> own(Optimizer& o, std::shared_ptr<Schedule> s, const SourceLoc& loc) {
  refuse(!s, "LRScheduler", "the schedule is null", loc);
  return std::make_shared<Own>(o, std::move(s));
}
LRScheduler::LRScheduler(Optimizer& o, std::shared_ptr<Schedule> schedule, SourceLoc loc)
    : LRScheduler(own(o, std::move(schedule), loc)) {}

LRScheduler::LRScheduler(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) { impl_->start(); }
void LRScheduler::step(SourceLoc loc) { impl_->step(user_loc(loc)); }
void LRScheduler::step(double metric, SourceLoc loc) { impl_->metric(metric, user_loc(loc)); }
int64_t LRScheduler::last_epoch() const { return impl_->epoch; }
std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> rates;
  for (size_t g = 0; g < impl_->o.group_count(); ++g) rates.push_back(impl_->o.lr(g));
  return rates;
}
StateDict LRScheduler::state_dict() const {
  StateDict d;
  impl_->save(d, "");
  return d;
}
void LRScheduler::load_state_dict(const StateDict& d, SourceLoc loc) {
  impl_->load(d, "", user_loc(loc));
}

// ---- The kinds

LambdaLR::LambdaLR(Optimizer& o, std::function<double(int64_t)> f, SourceLoc)
    : LRScheduler(std::make_shared<Closed>(o, "LambdaLR", times_base(o, std::move(f)))) {}
LambdaLR::LambdaLR(Optimizer& o, std::vector<std::function<double(int64_t)>> f, SourceLoc loc)
    : LRScheduler(std::make_shared<Closed>(o, "LambdaLR", times_base(o, std::move(f), loc))) {}
MultiplicativeLR::MultiplicativeLR(Optimizer& o, std::function<double(int64_t)> f, SourceLoc)
    : LRScheduler(std::make_shared<Factors>(o, "MultiplicativeLR", 1, std::move(f))) {}

StepLR::StepLR(Optimizer& o, int64_t step_size, double gamma, SourceLoc loc)
    : LRScheduler((refuse(step_size < 1, "StepLR", "step_size must be at least 1", loc),
                   std::make_shared<Factors>(o, "StepLR", 1, [=](int64_t e) {
                     return e % step_size == 0 ? gamma : 1;
                   }))) {}

MultiStepLR::MultiStepLR(Optimizer& o, std::vector<int64_t> milestones, double gamma, SourceLoc)
    : LRScheduler(std::make_shared<Factors>(
          o, "MultiStepLR", 1, [milestones = std::move(milestones), gamma](int64_t e) {
            return std::pow(
                gamma, static_cast<double>(std::count(milestones.begin(), milestones.end(), e)));
          })) {}

ConstantLR::ConstantLR(Optimizer& o, double factor, int64_t total_iters, SourceLoc loc)
    : LRScheduler(
          (refuse(!(factor > 0 && factor <= 1), "ConstantLR", "factor must be in (0, 1]", loc),
           std::make_shared<Factors>(o, "ConstantLR", factor, [=](int64_t e) {
             return e == total_iters ? 1 / factor : 1;
           }))) {}

LinearLR::LinearLR(Optimizer& o, double start_factor, double end_factor, int64_t total_iters,
                   SourceLoc loc)
    : LRScheduler((refuse(!(start_factor > 0 && start_factor <= 1), "LinearLR",
                          "start_factor must be in (0, 1]", loc),
                   refuse(!(end_factor >= 0 && end_factor <= 1), "LinearLR",
                          "end_factor must be in [0, 1]", loc),
                   std::make_shared<Factors>(o, "LinearLR", start_factor, [=](int64_t e) {
                     if (e > total_iters) return 1.0;
                     const double way = end_factor - start_factor;
                     return 1 + way / (static_cast<double>(total_iters) * start_factor +
                                       static_cast<double>(e - 1) * way);
                   }))) {}

ExponentialLR::ExponentialLR(Optimizer& o, double gamma, SourceLoc)
    : LRScheduler(
          std::make_shared<Factors>(o, "ExponentialLR", 1, [=](int64_t) { return gamma; })) {}

PolynomialLR::PolynomialLR(Optimizer& o, int64_t total_iters, double power, SourceLoc loc)
    : LRScheduler((refuse(total_iters < 1, "PolynomialLR", "total_iters must be at least 1", loc),
                   std::make_shared<Factors>(o, "PolynomialLR", 1, [=](int64_t e) {
                     if (e > total_iters) return 1.0;
                     const double n = static_cast<double>(total_iters), at = static_cast<double>(e);
                     return std::pow((1 - at / n) / (1 - (at - 1) / n), power);
                   }))) {}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& o, int64_t T_max, double eta_min, SourceLoc loc)
    : LRScheduler((refuse(T_max < 1, "CosineAnnealingLR", "T_max must be at least 1", loc),
                   std::make_shared<Cosine>(o, T_max, eta_min))) {}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& o, int64_t T_0, int64_t T_mult,
                                                         double eta_min, SourceLoc loc)
    : LRScheduler((refuse(T_0 < 1 || T_mult < 1, "CosineAnnealingWarmRestarts",
                          "T_0 and T_mult must be at least 1", loc),
                   std::make_shared<Closed>(
                       o, "CosineAnnealingWarmRestarts",
                       [base = times_base(o, [](int64_t) { return 1.0; }), T_0, T_mult, eta_min](
                           size_t g, int64_t e) {
                         return eta_min + (base(g, 0) - eta_min) *
                                              (1 + std::cos(pi * restarts(e, T_0, T_mult))) / 2;
                       }))) {}

OneCycleLR::OneCycleLR(Optimizer& o, double max_lr, const OneCycleOptions& options, SourceLoc loc)
    : LRScheduler(std::make_shared<OneCycle>(o, max_lr, options, loc)) {}

static const PlateauOptions& checked(const PlateauOptions& p, const SourceLoc& loc) {
  refuse(!(p.factor < 1), "ReduceLROnPlateau", "factor must be less than 1", loc);
  refuse(p.mode != "min" && p.mode != "max", "ReduceLROnPlateau", "mode must be \"min\" or \"max\"",
         loc);
  refuse(p.threshold_mode != "rel" && p.threshold_mode != "abs", "ReduceLROnPlateau",
         "threshold_mode must be \"rel\" or \"abs\"", loc);
  return p;
}
ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& o, const PlateauOptions& options, SourceLoc loc)
    : LRScheduler(std::make_shared<Plateau>(o, checked(options, loc))) {}

static std::vector<std::shared_ptr<Impl>> checked_parts(Optimizer* o,
                                                        std::vector<std::shared_ptr<Impl>> parts,
                                                        const char* kind, const SourceLoc& loc) {
  refuse(parts.empty(), kind, "needs at least one schedule", loc);
  for (const auto& p : parts) {
    refuse(&p->o != (o ? o : &parts[0]->o), kind, "all schedules must be of one optimiser", loc);
    refuse(p->kind == "ReduceLROnPlateau", kind,
           "does not take ReduceLROnPlateau, which needs a metric", loc);
  }
  return parts;
}

SequentialLR::SequentialLR(Optimizer& o, std::vector<LRScheduler> schedulers,
                           std::vector<int64_t> milestones, SourceLoc loc)
    : LRScheduler([&] {
        std::vector<std::shared_ptr<Impl>> parts;
        for (const LRScheduler& s : schedulers) parts.push_back(s.impl_);
        refuse(milestones.size() + 1 != schedulers.size(), "SequentialLR",
               "needs one milestone fewer than schedules", loc);
        return std::make_shared<Sequence>(
            o, checked_parts(&o, std::move(parts), "SequentialLR", loc), std::move(milestones));
      }()) {}

ChainedScheduler::ChainedScheduler(std::vector<LRScheduler> schedulers, SourceLoc loc)
    : LRScheduler([&] {
        std::vector<std::shared_ptr<Impl>> parts;
        for (const LRScheduler& s : schedulers) parts.push_back(s.impl_);
        parts = checked_parts(nullptr, std::move(parts), "ChainedScheduler", loc);
        Optimizer& o = parts[0]->o;
        return std::make_shared<Chain>(o, "ChainedScheduler", std::move(parts));
      }()) {}

}  // namespace ingot::optim
