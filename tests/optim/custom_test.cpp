// Optimisers and schedules that a program writes itself: what the built-in ones get from the base,
// they get too.
#include <cmath>

#include "compile/executor.h"
#include "support/folder.h"
#include "support/nn_check.h"

using namespace ingot;
using namespace ingot::check;
using namespace ingot::optim;

namespace {

using V = std::vector<double>;

Tensor parameter(DType dtype = float32) {
  Tensor p = tensor(V{1.0, -2.0, 0.5, 0.25, 3.0, -1.5}, {2, 3}).to(dtype).eval_();
  return p.requires_grad_();
}

// Adam's formula with tensors alone.
class OwnAdam : public Optimizer {
 public:
  explicit OwnAdam(const std::vector<Tensor>& params, const AdamOptions& o = {})
      : OwnAdam(std::vector<ParamGroup<AdamOptions>>{{params, o}}) {}
  explicit OwnAdam(const std::vector<ParamGroup<AdamOptions>>& groups) {
    for (const auto& [params, o] : groups)
      add_group(
          params,
          {.lr = o.lr, .states = 2, .momentum = o.betas.first, .master_weights = o.master_weights},
          o);
  }

 private:
  void update(Step& step) const override {
    const auto& o = step.options<AdamOptions>();
    const Tensor step_size = step.lr / -expm1(step.count * std::log(o.betas.first));
    const Tensor root = rsqrt(-expm1(step.count * std::log(o.betas.second)));
    for (Parameter& p : step.parameters) {
      p.state[0] = p.state[0] + step.momentum.rest_times(p.gradient - p.state[0]);
      p.state[1] = p.state[1] * o.betas.second + p.gradient * p.gradient * (1 - o.betas.second);
      p.weight = p.weight -
                 p.scalar(step_size) * (p.state[0] / (sqrt(p.state[1]) * p.scalar(root) + o.eps));
    }
  }
};

// Momentum, written in place as in PyTorch.
class OwnSGD : public Optimizer {
 public:
  explicit OwnSGD(const std::vector<Tensor>& params, double lr = 0.1) {
    add_group(params, {.lr = lr, .states = 1});
  }
  double keep = 0.9;
  using Optimizer::formula_changed;

 private:
  void update(Step& step) const override {
    for (Parameter& p : step.parameters) {
      p.state[0].mul_(keep).add_(p.gradient);
      p.weight.sub_(p.state[0] * p.scalar(step.lr));
    }
  }
};

// What one test writes.
class Formula : public Optimizer {
 public:
  using Body = std::function<void(Step&)>;
  Formula(const std::vector<Tensor>& params, Body body, GroupOptions group = {.lr = 0.1},
          std::any options = {})
      : body_(std::move(body)) {
    add_group(params, group, std::move(options));
  }
  static GroupOptions with_states(int n) { return {.lr = 0.1, .states = n}; }
  static GroupOptions making(std::function<std::vector<Tensor>(const Tensor&)> f) {
    return {.lr = 0.1, .make_state = std::move(f)};
  }

 private:
  void update(Step& step) const override { body_(step); }
  Body body_;
};

void backward(const Tensor& p, int k = 0) {
  (p * p * 0.15 + p * (0.1 * k - 0.2) + sin(p) * 0.1).sum().backward();
}

void steps(Optimizer& o, const std::vector<Tensor>& params, int n) {
  for (int k = 0; k < n; ++k) {
    o.zero_grad();
    for (const Tensor& p : params) backward(p, k);
    o.step();
    if (k == 3) o.scale_lr(0.5);
  }
}

bool same(const Tensor& a, const Tensor& b) {
  return a.to_vector<double>() == b.to_vector<double>();
}

void set_gradient(Tensor p, double value) { p.set_grad(full(p.shape(), value, {p.dtype()})); }

}  // namespace

TEST_CASE("a formula of the built-in kind makes the same bits") {
  for (DType t : {float64, float32, bfloat16})
    for (bool masters : {false, true}) {
      Tensor a = parameter(t), b = parameter(t), scalar_a = tensor(2.0, t).requires_grad_(),
             scalar_b = tensor(2.0, t).requires_grad_();
      const AdamOptions options{.lr = 0.05, .master_weights = masters};
      Adam built({a, scalar_a}, options);
      OwnAdam own({b, scalar_b}, options);
      steps(built, {a, scalar_a}, 8);
      steps(own, {b, scalar_b}, 8);
      CHECK(same(a, b));
      CHECK(same(scalar_a, scalar_b));
      CHECK(own.state().size() == built.state().size());
    }
  Tensor a = parameter(), b = parameter();
  SGD built({a}, {.lr = 0.1, .momentum = 0.9});
  OwnSGD own({b});
  steps(built, {a}, 8);
  steps(own, {b}, 8);
  CHECK(same(a, b));
}

TEST_CASE("a formula is recorded once and costs one plan, whatever the rate") {
  Tensor p = parameter();
  int recorded = 0;
  Formula o({p}, [&](Optimizer::Step& step) {
    ++recorded;
    for (auto& q : step.parameters) q.weight = q.weight - q.gradient * step.lr / step.count;
  });
  int64_t compiled = 0;
  for (int k = 0; k < 6; ++k) {
    o.set_lr(0.1 / (k + 1));
    o.zero_grad();
    backward(p);
    o.step();
    if (k == 1) compiled = plan_stats().compiled;
  }
  CHECK(recorded == 1);
  CHECK(plan_stats().compiled == compiled);
  // An option that the formula reads.
  Tensor a = parameter(), b = parameter();
  OwnSGD changed({a});
  SGD built({b}, {.lr = 0.1, .momentum = 0.9});
  for (int k = 0; k < 4; ++k) {
    if (k == 2) {
      changed.keep = 0.5;
      changed.formula_changed();
      built.set_momentum(0.5);
    }
    backward(a), changed.step();
    backward(b), built.step();
  }
  CHECK(difference(a, b) < 1e-6);
}

TEST_CASE("groups have their options and rates, parameters their counts") {
  Tensor a = parameter(), b = parameter(), c = parameter(), d = parameter();
  const AdamOptions slow{.lr = 1e-3, .betas = {0.5, 0.9}};
  Adam built({{{a}, {.lr = 0.1}}, {{b}, slow}});
  OwnAdam own({{{c}, {.lr = 0.1}}, {{d}, slow}});
  for (int k = 0; k < 6; ++k) {
    backward(a), backward(c);
    if (k > 2) backward(b), backward(d);
    if (k == 4) built.set_lr(0.5, 1), own.set_lr(0.5, 1);
    built.step();
    own.step();
  }
  CHECK(same(a, c));
  CHECK(same(b, d));
  CHECK(own.state_dict().tensor("steps.0").item() == 6);
  CHECK(own.state_dict().tensor("steps.1").item() == 3);
  CHECK(own.momentum(1) == 0.5);
  OwnSGD plain({c});
  CHECK(contains(message([&] { plain.set_momentum(0.5); }, ErrorKind::State), "momentum"));
}

TEST_CASE("an optimiser and a schedule of one's own resume with the same bits") {
  struct Halving : Schedule {
    double rate(int64_t step, double base) override {
      return base * std::pow(0.5, static_cast<double>(step / 2));
    }
    std::string name() const override { return "Halving"; }
  };
  const auto train = [](const Tensor& p, Optimizer& o, LRScheduler& s, int from, int to) {
    for (int k = from; k < to; ++k) {
      o.zero_grad();
      backward(p, k);
      o.step();
      s.step();
    }
  };
  const Folder folder;
  struct Net : nn::Module {
    nn::Parameter p = register_parameter("p", ::parameter().detach());
  };
  Net whole, first, second;
  OwnAdam whole_o(whole.parameters(), {.lr = 0.1}), first_o(first.parameters(), {.lr = 0.1}),
      second_o(second.parameters(), {.lr = 0.1});
  LRScheduler whole_s(whole_o, Halving()), first_s(first_o, Halving()),
      second_s(second_o, Halving());
  train(whole.p, whole_o, whole_s, 0, 9);
  train(first.p, first_o, first_s, 0, 5);
  {
    Checkpoint save(folder.path, first, first_o, first_s);
    save.save(5);
  }
  Checkpoint load(folder.path, second, second_o, second_s);
  CHECK(load.resume() == 5);
  CHECK(second_s.last_epoch() == 5);
  train(second.p, second_o, second_s, 5, 9);
  CHECK(same(whole.p, second.p));
  CHECK(whole_o.lr() == second_o.lr());
}

TEST_CASE("scaler, guard and averages take an optimiser of one's own") {
  Tensor a = parameter(), b = parameter();
  SGD built({a}, {.lr = 0.1, .momentum = 0.9});
  OwnSGD own({b});
  EMA averages(own, {.decay = 0.5});
  amp::GradScaler scaler({.init_scale = 8});
  const V start = b.to_vector<double>();
  for (int k = 0; k < 3; ++k) {
    built.zero_grad(), own.zero_grad();
    backward(a, k), built.step();
    scaler.scale((b * b * 0.15 + b * (0.1 * k - 0.2) + sin(b) * 0.1).sum()).backward();
    scaler.step(own);
    scaler.update();
  }
  CHECK(same(a, b));
  CHECK(averages.averages()[0].to_vector<double>() != start);
  const V before = b.to_vector<double>();
  set_gradient(b, INFINITY);
  scaler.step(own);
  scaler.update();
  CHECK(b.to_vector<double>() == before);
  CHECK(own.state_dict().tensor("steps.0").item() == 3);
  NanGuard guard(own, {.policy = NonFinite::Skip});
  set_gradient(b, NAN);
  guard.step(b.detach().sum());
  CHECK(guard.skipped() == 1);
  CHECK(b.to_vector<double>() == before);
  set_gradient(b, 1);
  own.step(true);
  CHECK(b.grad().defined());
}

TEST_CASE("state of any number and shape") {
  Tensor p = parameter();
  Formula o(
      {p},
      [](Optimizer::Step& step) {
        for (auto& q : step.parameters) {
          q.state[0] = q.state[0] + square(q.gradient).sum(1);
          q.state[1] = q.state[1] + 1.0;
          q.weight = q.weight - q.gradient * rsqrt(q.state[0]).unsqueeze(1) * step.lr;
          q.state[2] = (q.state[2] + q.weight) * 0.5;
        }
      },
      Formula::making([](const Tensor& q) {
        return std::vector<Tensor>{zeros({q.size(0)}), zeros({}), q};
      }));
  const V start = p.to_vector<double>();
  for (int k = 0; k < 3; ++k) set_gradient(p, 2), o.step();
  const std::vector<Tensor> state = o.state();
  CHECK(state[0].to_vector<double>() == V{36, 36});
  CHECK(state[1].item() == 3);
  CHECK(state[2].to_vector<double>() != start);
  CHECK(state[2].to_vector<double>() != p.to_vector<double>());
  Formula other(
      {parameter()}, [](Optimizer::Step&) {}, Formula::with_states(2));
  CHECK_THROWS_AS(other.load_state_dict(o.state_dict()), Error);
  // What the formula leaves alone stays; the step counts.
  Tensor q = parameter();
  Formula idle({q}, [](Optimizer::Step&) {});
  set_gradient(q, 1);
  idle.step();
  CHECK(q.to_vector<double>() == start);
  CHECK(idle.state_dict().tensor("steps.0").item() == 1);
}

TEST_CASE("mistakes in a formula are named, and nothing changes") {
  const auto mistake = [](ErrorKind kind, const Formula::Body& body, int states = 1) {
    Tensor p = parameter();
    Formula o({p}, body, Formula::with_states(states));
    const V before = p.to_vector<double>();
    set_gradient(p, 1);
    const std::string what = message([&] { o.step(); }, kind);
    CHECK(p.to_vector<double>() == before);
    CHECK(p.grad().defined());
    CHECK(o.state_dict().tensor("steps.0").item() == 0);
    return what;
  };
  using Step = Optimizer::Step;
  CHECK(contains(mistake(ErrorKind::Shape,
                         [](Step& s) { s.parameters[0].weight = s.parameters[0].weight.sum(0); }),
                 "weight"));
  CHECK(contains(mistake(ErrorKind::Shape,
                         [](Step& s) {
                           s.parameters[0].weight = s.parameters[0].weight - s.lr;
                           s.parameters[0].state[0] = s.lr;
                         }),
                 "state 0"));
  CHECK(contains(mistake(ErrorKind::Index,
                         [](Step& s) { s.parameters[0].state[1] = s.parameters[0].gradient; }),
                 "state 1"));
  CHECK(contains(mistake(ErrorKind::State, [](Step& s) { s.parameters[0].weight = Tensor(); }),
                 "undefined"));
  CHECK(contains(mistake(ErrorKind::State, [](Step& s) { s.parameters.clear(); }), "parameters"));
  CHECK(contains(mistake(ErrorKind::State, [](Step& s) { s.options<int>(); }), "options"));
  CHECK(contains(
      mistake(ErrorKind::Device,
              [](Step& s) { s.parameters[0].weight = s.parameters[0].weight.to(Device("cpu:1")); }),
      "cpu:1"));
  Tensor p = parameter();
  Formula typed(
      {p}, [](Step& s) { s.options<int>(); }, Formula::with_states(0), 2.5);
  set_gradient(p, 1);
  CHECK(contains(message([&] { typed.step(); }, ErrorKind::State), "another type"));
  CHECK(contains(message([&] { OwnSGD none(std::vector<Tensor>{}); }, ErrorKind::Value),
                 "no parameters"));
  CHECK_THROWS_AS(
      Formula(
          {p}, [](Step&) {}, Formula::making([](const Tensor&) { return std::vector<Tensor>(1); })),
      Error);
}

TEST_CASE("a schedule of one's own: closed, chained, with state and a metric") {
  struct Warm : Schedule {
    double rate(int64_t step, double base) override {
      return base * std::min(1.0, static_cast<double>(step + 1) / 4);
    }
  };
  struct Times : Schedule {
    double rate(int64_t, double base) override { return base; }
    double next(int64_t step, double, double now) override { return step ? now * 0.5 : now; }
    std::string name() const override { return "Times"; }
  };
  struct Watching : Schedule {
    double best = INFINITY;
    int64_t worse = 0;
    double rate(int64_t, double base) override { return base / static_cast<double>(1 + worse); }
    void metric(double v, SourceLoc) override {
      if (v < best)
        best = v;
      else
        ++worse;
    }
    std::string name() const override { return "Watching"; }
    void save(StateDict& d) const override {
      d.set("best", best);
      d.set("worse", worse);
    }
    void load(const StateDict& d, SourceLoc loc) override {
      best = d.number("best", loc);
      worse = d.integer("worse", loc);
    }
  };
  Tensor p = parameter();
  const auto made = [&] { return SGD({{{p}, {.lr = 0.4}}}); };
  SGD a = made();
  LRScheduler warm(a, Warm());
  V rates;
  for (int i = 0; i < 5; ++i) rates.push_back(a.lr()), warm.step();
  CHECK(rates == V{0.1, 0.2, 0.4 * 0.75, 0.4, 0.4});
  CHECK(contains(message([&] { warm.step(1.0); }, ErrorKind::State), "no metric"));
  SGD b = made();
  ChainedScheduler chain({LRScheduler(b, Warm()), LRScheduler(b, Times())});
  chain.step();
  chain.step();
  CHECK(b.lr() == 0.4 * 0.75 * 0.5);
  SGD c = made();
  SequentialLR sequence(c, {LRScheduler(c, Warm()), ExponentialLR(c, 0.5)}, {4});
  for (int i = 0; i < 5; ++i) sequence.step();
  CHECK(c.lr() == 0.2);
  SGD d = made(), e = made();
  LRScheduler watching(d, std::make_shared<Watching>()), other(e, std::make_shared<Watching>());
  for (double v : {3.0, 2.0, 2.5, 2.25}) watching.step(v);
  CHECK(d.lr() == 0.4 / 3);
  other.load_state_dict(watching.state_dict());
  other.step(2.1);
  CHECK(e.lr() == 0.4 / 4);
  CHECK(other.last_epoch() == 5);
  CHECK(contains(message([&] { warm.load_state_dict(watching.state_dict()); }, ErrorKind::State),
                 "Watching"));
  CHECK_THROWS_AS(LRScheduler(a, std::shared_ptr<Schedule>()), Error);
}
