// Optimisers and schedules against PyTorch (optim_golden.inc), Lion by its formula, master weights,
// averages, momentum as an argument, accumulation, clipping by other norms, and how many plans a
// schedule costs.
#include <cmath>
#include <limits>

#include "compile/executor.h"
#include "support/nn_check.h"

using namespace ingot;
using namespace ingot::check;
using namespace ingot::optim;

namespace {

using V = std::vector<double>;

Tensor parameter(DType dtype) {
  Tensor p = tensor(V{1.0, -2.0, 0.5, 0.25, 3.0, -1.5}, {2, 3}).to(dtype).eval_();
  return p.requires_grad_();
}

Tensor matrix(DType dtype) {
  Tensor p =
      tensor(V{1, 0.5, -1, 2, 0.75, -0.25, 3, -2, 0.1, 0.2, -0.3, 1.5}, {3, 4}).to(dtype).eval_();
  return p.requires_grad_();
}

void eight_steps(Optimizer& o, const Tensor& p) {
  for (int k = 0; k < 8; ++k) {
    o.zero_grad();
    (p * p * 0.15 + p * (0.1 * k - 0.2) + sin(p) * 0.1).sum().backward();
    o.step();
    if (k == 3) o.scale_lr(0.5);
  }
}

void compare(const V& got, const V& want, double tolerance) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i)
    CHECK(std::fabs(got[i] - want[i]) <= tolerance * std::max(1e-3, std::fabs(want[i])));
}

template <class S>
V rates(SGD& o, S& s, bool metric) {
  V all;
  for (int k = 0; k < 25; ++k) {
    all.push_back(o.lr());
    all.push_back(o.momentum());
    if (metric)
      s.step(std::abs(k - 6) * 0.1 + 1);
    else
      s.step();
  }
  return all;
}

SGD scheduled() {
  static std::vector<Tensor> keep;
  keep.push_back(parameter(float32));
  return SGD({keep.back()}, {.lr = 0.5, .momentum = 0.9});
}

#define UNPACK(...) __VA_ARGS__

}  // namespace

TEST_CASE("optimisers make what PyTorch's make"){
#define WITHIN(Name, options, want, tolerance)       \
  SUBCASE(#Name " " #options) {                      \
    Tensor p = parameter(float64);                   \
    Name o({p}, UNPACK options);                     \
    eight_steps(o, p);                               \
    compare(p.to_vector<double>(), want, tolerance); \
  }
#define OPTIMISER(Name, options, want) WITHIN(Name, options, want, 1e-12)
#define ROUNDED(Name, options, want) WITHIN(Name, options, want, 1e-7)
#define LOOSE(Name, options, want)
#define SCHEDULE(made, want)
#define PLATEAU(made, want)
#include "optim_golden.inc"
}

TEST_CASE("Muon makes what PyTorch's does, but for PyTorch's bfloat16") {
#undef OPTIMISER
#undef ROUNDED
#undef LOOSE
#define ROUNDED(Name, options, want)
#define OPTIMISER(Name, options, want)
#define LOOSE(Name, options, want)              \
  SUBCASE(#Name " " #options) {                 \
    Tensor p = parameter(float32);              \
    Name o({p}, UNPACK options);                \
    eight_steps(o, p);                          \
    compare(p.to_vector<double>(), want, 0.02); \
  }
#include "optim_golden.inc"
  CHECK(contains(message([] { Muon o({ones({3}).requires_grad_()}); }, ErrorKind::Shape),
                 "matrices"));
  CHECK(contains(message(
                     [] {
                       Muon o({ones({3, 3}).requires_grad_()}, {.adjust_lr_fn = "x"});
                     },
                     ErrorKind::Value),
                 "match_rms_adamw"));
}

TEST_CASE("schedules set PyTorch's rates and momenta"){
#undef LOOSE
#undef SCHEDULE
#undef PLATEAU
#define LOOSE(Name, options, want)
#define SCHEDULE(made, want)                  \
  SUBCASE(#made) {                            \
    SGD o = scheduled();                      \
    UNPACK made;                              \
    compare(rates(o, s, false), want, 1e-12); \
  }
#define PLATEAU(made, want)                  \
  SUBCASE(#made) {                           \
    SGD o = scheduled();                     \
    UNPACK made;                             \
    compare(rates(o, s, true), want, 1e-12); \
  }
#include "optim_golden.inc"
}

TEST_CASE("Lion by its formula") {
  Tensor p = parameter(float64);
  Lion o({p}, {.lr = 0.05, .betas = {0.9, 0.99}, .weight_decay = 0.1});
  V x{1.0, -2.0, 0.5, 0.25, 3.0, -1.5}, m(6, 0);
  eight_steps(o, p);
  double lr = 0.05;
  for (int k = 0; k < 8; ++k) {
    for (size_t i = 0; i < 6; ++i) {
      const double g = 0.3 * x[i] + 0.1 * k - 0.2 + 0.1 * std::cos(x[i]), c = 0.9 * m[i] + 0.1 * g;
      x[i] = x[i] * (1 - lr * 0.1) - lr * (c > 0 ? 1 : c < 0 ? -1 : 0);
      m[i] = 0.99 * m[i] + 0.01 * g;
    }
    if (k == 3) lr *= 0.5;
  }
  compare(p.to_vector<double>(), x, 1e-12);
}

TEST_CASE("master weights: small steps of a bfloat16 parameter add up") {
  const auto train = [](bool master) {
    Tensor p = tensor({256.0f, 1.0f}).to(bfloat16).eval_();
    p.requires_grad_();
    SGD o({p}, {.lr = 0.125, .master_weights = master});
    CHECK(o.state().size() == (master ? 2 : 1));
    for (int i = 0; i < 64; ++i) {
      p.to(float32).sum().backward();
      o.step();
    }
    CHECK(p.dtype() == bfloat16);
    return p.to_vector<double>();
  };
  CHECK(train(true) == V{248, -7});
  CHECK(train(false)[0] == 256);  // each step alone is rounded away
  // float32 parameters have none, and masters are saved with the state.
  Tensor a = parameter(bfloat16), b = parameter(bfloat16), c = parameter(float32);
  AdamW first({a, c}, {.lr = 0.01, .master_weights = true}),
      second({b, parameter(float32)}, {.lr = 0.01, .master_weights = true});
  CHECK(first.state().size() == 2 + 1 + 2 + 1);
  eight_steps(first, a);
  second.load_state_dict(first.state_dict());
  CHECK(difference(second.state()[2], first.state()[2]) == 0);
}

TEST_CASE("averages follow the parameters in the step's plan") {
  Tensor p = parameter(float64), q = parameter(float64);
  SGD o({p}, {.lr = 0.1}), plain({q}, {.lr = 0.1});
  EMA ema(o, {.decay = 0.75});
  V want = p.to_vector<double>();
  const auto step = [&](Optimizer& opt, const Tensor& t) {
    (t * t).sum().backward();
    opt.step();
  };
  for (int i = 0; i < 5; ++i) {
    const int64_t before = plan_stats().compiled, runs = plan_stats().runs;
    step(o, p);
    if (i > 0) CHECK(plan_stats().compiled == before);
    CHECK(plan_stats().runs == runs + 1);
    step(plain, q);
    const V now = p.to_vector<double>();
    for (size_t k = 0; k < want.size(); ++k) want[k] += 0.25 * (now[k] - want[k]);
  }
  CHECK(difference(p, q) == 0);
  compare(ema.averages()[0].to_vector<double>(), want, 1e-12);
  ema.swap();
  compare(p.to_vector<double>(), want, 1e-12);
  (p * p).sum().backward();
  CHECK(contains(message([&] { o.step(); }, ErrorKind::State), "swap()"));
  ema.swap();
  CHECK(difference(p, q) == 0);
  EMA other(plain);
  other.load_state_dict(ema.state_dict());
  CHECK(difference(other.averages()[0], ema.averages()[0]) == 0);
  CHECK_THROWS_AS(EMA(o, {.decay = 2}), Error);
}

// What has averages is recorded op by op, what has none as one program: the parameters must not
// differ.
template <class O, class Options>
void check_written(const Options& options, DType type) {
  INFO(name_of(type));
  std::vector<Tensor> a{parameter(type), matrix(type)}, b{parameter(type), matrix(type)};
  O written(a, options), plain(b, options);
  EMA ema(plain);
  const auto step = [](Optimizer& o, const std::vector<Tensor>& p, bool both) {
    Tensor loss = (p[1] * p[1] * 0.5).sum();
    if (both) loss = loss + (p[0] * p[0] * p[0]).sum();
    loss.backward();
    o.step();
  };
  for (int i = 0; i < 8; ++i) {
    const bool both = i != 3 && i != 4;  // a parameter without a gradient, and back
    if (i == 5) written.set_lr(0.02), plain.set_lr(0.02);
    const int64_t compiled = plan_stats().compiled;
    step(written, a, both);
    // One more with each step of another kind: after the third the parameters count their steps
    // apart.
    INFO(i);
    if (i != 0 && i != 3 && i != 5) CHECK(plan_stats().compiled == compiled);
    step(plain, b, both);
    for (size_t k = 0; k < a.size(); ++k) CHECK(difference(a[k], b[k]) == 0);
  }
  // Another optimiser of the same structure finds the plan.
  std::vector<Tensor> c{parameter(type), matrix(type)};
  O other(c, options);
  const int64_t compiled = plan_stats().compiled;
  step(other, c, true);
  CHECK(plan_stats().compiled == compiled);
}

// What PyTorch gives: a parameter whose first gradient comes late begins its bias correction there.
template <class O, class Options>
void check_late(const Options& options) {
  std::vector<Tensor> late{parameter(float64), matrix(float64)}, alone{matrix(float64)};
  O joint(late, options), own(alone, options);
  for (int i = 0; i < 7; ++i) {
    Tensor loss = (late[0] * late[0]).sum();
    const bool both = i == 3 || i > 4;
    if (both) {
      loss = loss + (late[1] * late[1]).sum();
      (alone[0] * alone[0]).sum().backward();
      own.step();
    }
    loss.backward();
    joint.step();
    CHECK(difference(late[1], alone[0]) < 1e-14);
  }
  // Counts and who shares them survive.
  std::vector<Tensor> again{late[0].detach().clone().requires_grad_(),
                            late[1].detach().clone().requires_grad_()};
  O resumed(again, options);
  resumed.load_state_dict(joint.state_dict());
  for (int i = 0; i < 2; ++i) {
    ((late[0] * late[0]).sum() + (late[1] * late[1]).sum()).backward();
    ((again[0] * again[0]).sum() + (again[1] * again[1]).sum()).backward();
    joint.step();
    resumed.step();
    for (size_t k : {0u, 1u}) CHECK(difference(late[k], again[k]) == 0);
  }
  // As many tensors whoever shares a count.
  CHECK(joint.state_dict().size() == O(again, options).state_dict().size());
  StateDict wrong = joint.state_dict();
  for (auto& [name, t] : wrong.tensors)
    if (name == "steps.0") t = ones({7});
  CHECK(contains(message([&] { resumed.load_state_dict(wrong); }, ErrorKind::Shape),
                 "7 elements for 2"));
}

TEST_CASE("each parameter counts its own steps") {
  check_late<Adam>(AdamOptions{.lr = 0.1});
  check_late<AdamW>(AdamWOptions{.lr = 0.1, .amsgrad = true});
  check_late<Adamax>(AdamaxOptions{.lr = 0.1});
  check_late<NAdam>(NAdamOptions{.lr = 0.1});
  check_late<RAdam>(RAdamOptions{.lr = 0.1});
  check_late<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  check_late<Adagrad>(AdagradOptions{.lr = 0.1, .lr_decay = 0.1});
  // All together: one plan from the first step on, parameters without a gradient or not.
  std::vector<Tensor> p{parameter(float32), matrix(float32), parameter(float32)};
  Adam o(p);
  for (int i = 0; i < 4; ++i) {
    const int64_t compiled = plan_stats().compiled;
    ((p[0] * p[0]).sum() + (p[1] * p[1]).sum()).backward();
    o.step();
    if (i > 0) CHECK(plan_stats().compiled == compiled);
  }
}

TEST_CASE("state follows parameters of another type") {
  for (bool masters : {false, true}) {
    nn::Linear net(2, 2);
    Adam o(net.parameters(), {.lr = 0.1, .master_weights = masters});
    for (DType t : {float32, float64, bfloat16, float32}) {
      net.to(t);
      const std::vector<double> before = net.weight().to_vector<double>();
      net(ones({1, 2}, t)).sum().backward();
      o.step();
      CHECK(net.weight().to_vector<double>() != before);
      CHECK(net.weight().dtype() == t);
      for (const Tensor& s : o.state())
        if (s.dim() > 0) CHECK(s.dtype() == (t == float64 ? float64 : float32));
    }
  }
}

TEST_CASE("gradients after a step") {
  Tensor p = parameter(float32);
  SGD o({p}, {.lr = 0.1});
  const auto back = [&] { (p * p).sum().backward(); };
  back();
  o.step();
  // Here they go; what is done with one says how to keep it.
  CHECK(contains(message([&] { (p.grad() + 1.0).item(); }, ErrorKind::State), "keep_gradients"));
  CHECK(contains(message([&] { gradient_of(p); }, ErrorKind::Autograd), "keep_gradients"));
  // Bindings ask: they stay at first, and while the program uses them.
  CHECK(contains(message([&] { o.keeps_gradients(); }, ErrorKind::State), "zero_grad"));
  const auto steps = [&](int n, auto&& after) {
    for (int i = 0; i < n; ++i) {
      o.zero_grad();
      back();
      o.step(o.keeps_gradients());
      after();
    }
  };
  steps(2, [&] { CHECK(p.grad().defined()); });
  steps(2, [&] { CHECK(!p.grad().defined()); });
  SGD other({p}, {.lr = 0.1});
  p.zero_grad();
  back();
  other.step(other.keeps_gradients());
  CHECK(gradient_of(p).defined());
  for (int i = 0; i < 4; ++i) {
    other.zero_grad();
    back();
    other.step(other.keeps_gradients());
    CHECK(p.grad().defined());
  }
  zero_gradients({p});
  CHECK(p.grad().sum().item() == 0);
}

TEST_CASE("a step that was written down is the step op by op") {
  for (DType t : {float32, float64, bfloat16}) {
    check_written<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true}, t);
    check_written<Adam>(AdamOptions{.lr = 0.01, .amsgrad = true}, t);
    check_written<AdamW>(AdamWOptions{.lr = 0.01, .master_weights = true}, t);
    check_written<NAdam>(NAdamOptions{.lr = 0.01}, t);
    check_written<RMSprop>(RMSpropOptions{.lr = 0.01, .momentum = 0.9, .centered = true}, t);
    check_written<Lion>(LionOptions{.lr = 0.01}, t);
  }
}

TEST_CASE("a step that was written down follows its rate, its momentum and the parameters' type") {
  Tensor a = parameter(float32), b = parameter(float32);
  SGD written({a}, {.lr = 0.1, .momentum = 0.9}), plain({b}, {.lr = 0.1, .momentum = 0.9});
  EMA ema(plain);
  for (int i = 0; i < 6; ++i) {
    if (i == 2) written.set_momentum(0.5, 0), plain.set_momentum(0.5, 0);
    if (i == 4) written.set_lr(0.01), plain.set_lr(0.01);
    for (auto [o, p] : {std::pair<Optimizer&, Tensor&>{written, a}, {plain, b}}) {
      (p * p).sum().backward();
      o.step();
    }
    CHECK(difference(a, b) == 0);
  }
  // A gradient that the program holds is its own, before the step and after.
  (a * a).sum().backward();
  Tensor g = a.grad();
  const V before = (a.detach() * 2).to_vector<double>();
  written.step();
  compare(g.to_vector<double>(), before, 0);
  // What fails changes nothing, and the next step is as if it had not been.
  const V kept = a.to_vector<double>();
  embedding(a, tensor(std::vector<int64_t>{1, 100}, {2})).sum().backward();
  const auto step = [&] {
    written.step();
    synchronize();  // a GPU says then what went wrong
  };
  CHECK_THROWS_AS(step(), Error);
  compare(a.to_vector<double>(), kept, 0);
  a.zero_grad();
  (a * a).sum().backward();
  written.step();
  CHECK(a.to_vector<double>() != kept);
}

TEST_CASE("a schedule compiles nothing new, one that moves momentum neither") {
  Tensor p = parameter(float32);
  AdamW o({p}, {.lr = 1e-3});
  OneCycleLR s(o, 0.1, {.total_steps = 40});
  int64_t compiled = 0;
  for (int k = 0; k < 40; ++k) {
    (p * p).sum().backward();
    o.step();
    s.step();
    if (k == 0) compiled = plan_stats().compiled;
  }
  CHECK(plan_stats().compiled == compiled);
  CHECK(o.momentum() == doctest::Approx(0.95).epsilon(0.01));
  CHECK(contains(message([&] { s.step(); }, ErrorKind::State), "40 steps"));
  CHECK(contains(message([&] { s.step(1.0); }, ErrorKind::State), "no metric"));
  Adagrad plain({p});
  CHECK(contains(message([&] { OneCycleLR t(plain, 0.1, {.total_steps = 4}); }, ErrorKind::State),
                 "momentum"));
  CHECK(contains(message([&] { OneCycleLR t(o, 0.1); }, ErrorKind::Value), "total_steps"));
}

TEST_CASE("schedules resume where they were, and refuse what cannot be") {
  SGD a = scheduled(), b = scheduled();
  const auto make = [](SGD& o) {
    return SequentialLR(o, {LinearLR(o, 0.1, 1, 5), CosineAnnealingLR(o, 8)}, {5});
  };
  SequentialLR first = make(a), second = make(b);
  for (int i = 0; i < 9; ++i) first.step();
  second.load_state_dict(first.state_dict());
  b.load_state_dict(a.state_dict());
  for (int i = 0; i < 9; ++i) {
    first.step();
    second.step();
    CHECK(first.get_last_lr() == second.get_last_lr());
  }
  CHECK(second.last_epoch() == 18);
  ReduceLROnPlateau p(a, {.patience = 1});
  CHECK(contains(message([&] { p.step(); }, ErrorKind::State), "step(metric)"));
  CHECK(contains(message([&] { second.load_state_dict(p.state_dict()); }, ErrorKind::State),
                 "ReduceLROnPlateau"));
  CHECK_THROWS_AS(SequentialLR(a, {StepLR(a, 1)}, {5}), Error);
  CHECK_THROWS_AS(SequentialLR(a, {StepLR(a, 1), StepLR(b, 1)}, {5}), Error);
  CHECK_THROWS_AS(ChainedScheduler({p}), Error);
  CHECK_THROWS_AS(StepLR(a, 0), Error);
  CHECK_THROWS_AS(CosineAnnealingLR(a, 0), Error);
  CHECK_THROWS_AS(LinearLR(a, 0), Error);
  CHECK_THROWS_AS(ReduceLROnPlateau(a, {.factor = 1}), Error);
}

TEST_CASE("bad options are refused by name") {
  Tensor p = parameter(float32);
  CHECK(contains(message([&] { RMSprop o({p}, {.alpha = -1}); }, ErrorKind::Value), "alpha"));
  CHECK(contains(message([&] { Adagrad o({p}, {.lr_decay = -1}); }, ErrorKind::Value), "lr_decay"));
  CHECK(contains(message([&] { Adadelta o({p}, {.rho = 2}); }, ErrorKind::Value), "rho"));
  CHECK(contains(message([&] { Adamax o({p}, {.betas = {1, 0.9}}); }, ErrorKind::Value), "betas"));
  CHECK(contains(message([&] { NAdam o({p}, {.momentum_decay = -1}); }, ErrorKind::Value),
                 "momentum_decay"));
  CHECK(contains(message([&] { RAdam o({p}, {.eps = -1}); }, ErrorKind::Value), "eps"));
  CHECK(contains(message([&] { Lion o({p}, {.lr = -1}); }, ErrorKind::Value), "lr"));
  SGD plain({p}, {.lr = 0.1});
  CHECK(contains(message([&] { (void)plain.momentum(); }, ErrorKind::State), "momentum"));
}

TEST_CASE("accumulated gradients are those of the whole batch") {
  manual_seed(4);
  nn::Linear a(5, 3), b(5, 3);
  b.load_state_dict(a.state_dict());
  Tensor x = randn({12, 5}), target = randint(0, 3, {12});
  AdamW one(a.parameters(), {.lr = 0.1}), many(b.parameters(), {.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    cross_entropy(a(x), target).backward();
    one.step();
    for (int i = 0; i < 3; ++i)
      (cross_entropy(b(x.narrow(0, 4 * i, 4)), target.narrow(0, 4 * i, 4)) / 3.0).backward();
    many.step();
  }
  CHECK(difference(a.weight(), b.weight()) < 1e-5);
}

TEST_CASE("clipping by other norms") {
  Tensor a = parameter(float64), b = parameter(float64);
  (a * a).sum().backward();
  (b * 4.0).sum().backward();
  const V ga = a.grad().to_vector<double>(), gb = b.grad().to_vector<double>();
  double ones = 0, most = 0;
  for (const V* g : {&ga, &gb})
    for (double v : *g) ones += std::fabs(v), most = std::max(most, std::fabs(v));
  CHECK(get_total_norm({a.grad(), b.grad()}, 1).item() == doctest::Approx(ones));
  CHECK(get_total_norm({a.grad(), b.grad()}, std::numeric_limits<double>::infinity()).item() ==
        most);
  CHECK(clip_grad_norm_({a, b}, 1, std::numeric_limits<double>::infinity()).item() == most);
  CHECK(b.grad().to_vector<double>()[0] == doctest::Approx(4 / most).epsilon(1e-5));
  CHECK(get_total_norm({parameter(float32).grad()}).item() == 0);
  CHECK_THROWS_AS(clip_grad_norm_({a}, 1, 0), Error);
}
