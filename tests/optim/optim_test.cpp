// Optimisers against their formulas in plain C++, clipping, loss scaling, and training on
// several devices.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>

#include "support/op_check.h"

using namespace ingot;
using namespace ingot::check;

namespace {

Tensor parameter(const std::vector<double>& v) {
  Tensor t = tensor(v);
  t.requires_grad_();
  return t;
}

// The gradient of step k: something that changes.
double gradient(double p, int k) { return 0.3 * p + 0.1 * k - 0.2; }

Tensor loss_with_gradient(const Tensor& p, int k) {
  return (p * p * 0.15 + p * (0.1 * k - 0.2)).sum();
}

template <class Reference>
void compare(optim::Optimizer& o, Tensor p, std::vector<double> want, Reference reference) {
  for (int k = 0; k < 6; ++k) {
    if (k == 3) o.set_lr(o.lr() * 0.5);
    loss_with_gradient(p, k).backward();
    o.step();
    CHECK(!p.grad().defined());
    for (size_t i = 0; i < want.size(); ++i)
      want[i] = reference(i, want[i], gradient(want[i], k), k + 1, o.lr());
    std::vector<double> got = p.to_vector<double>();
    for (size_t i = 0; i < want.size(); ++i)
      CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-12));
  }
}

// No gradient is zero to rounding, which Adam would make a step of.
const std::vector<double> kStart = {1.0, -2.0, 0.7};

}  // namespace

TEST_CASE("SGD") {
  Tensor p = parameter(kStart);
  optim::SGD o({p}, {.lr = 0.1});
  compare(o, p, kStart, [](size_t, double x, double g, int, double lr) { return x - lr * g; });
}

TEST_CASE("SGD with momentum, dampening, decay") {
  for (bool nesterov : {false, true}) {
    double dampening = nesterov ? 0 : 0.3;
    Tensor p = parameter(kStart);
    optim::SGD o({p}, {.lr = 0.1,
                       .momentum = 0.9,
                       .dampening = dampening,
                       .weight_decay = 0.01,
                       .nesterov = nesterov});
    std::vector<double> buffer(3, 0);
    compare(o, p, kStart, [&](size_t i, double x, double g, int t, double lr) {
      g += 0.01 * x;
      buffer[i] = t == 1 ? g : 0.9 * buffer[i] + (1 - dampening) * g;
      return x - lr * (nesterov ? g + 0.9 * buffer[i] : buffer[i]);
    });
  }
}

TEST_CASE("Adam and AdamW") {
  for (bool decoupled : {false, true})
    for (bool amsgrad : {false, true}) {
      Tensor p = parameter(kStart);
      std::unique_ptr<optim::Optimizer> o;
      if (decoupled)
        o = std::make_unique<optim::AdamW>(
            std::vector<Tensor>{p},
            optim::AdamWOptions{.lr = 0.05, .weight_decay = 0.1, .amsgrad = amsgrad});
      else
        o = std::make_unique<optim::Adam>(
            std::vector<Tensor>{p},
            optim::AdamOptions{.lr = 0.05, .weight_decay = 0.1, .amsgrad = amsgrad});
      std::vector<double> m(3, 0), v(3, 0), top(3, 0);
      compare(*o, p, kStart, [&](size_t i, double x, double g, int t, double lr) {
        if (decoupled)
          x *= 1 - lr * 0.1;
        else
          g += 0.1 * x;
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        top[i] = std::max(top[i], v[i]);
        double second = amsgrad ? top[i] : v[i];
        return x - lr / (1 - std::pow(0.9, t)) * m[i] /
                       (std::sqrt(second) / std::sqrt(1 - std::pow(0.999, t)) + 1e-8);
      });
    }
}

TEST_CASE("parameters without a gradient stay, groups have their own options") {
  Tensor a = parameter({1}), b = parameter({1}), c = parameter({1});
  optim::SGD o(
      std::vector<optim::ParamGroup<optim::SGDOptions>>{{{a, c}, {.lr = 0.1}}, {{b}, {.lr = 0.5}}});
  CHECK(o.group_count() == 2);
  (a + b).sum().backward();
  o.step();
  CHECK(a.item() == doctest::Approx(0.9));
  CHECK(b.item() == doctest::Approx(0.5));
  CHECK(c.item() == 1);
  a.set_grad(tensor(std::vector<double>{1}));
  o.step(/*keep_gradients=*/true);
  CHECK(a.grad().item() == 1);
  o.zero_grad();
  CHECK(!a.grad().defined());
}

TEST_CASE("copies of a parameter see the update, 16-bit parameters have float32 state") {
  Tensor p = tensor({1.0f, 2.0f}).to(bfloat16);
  eval(p);
  p.requires_grad_();
  Tensor copy = p;
  optim::AdamW o({p}, {.lr = 0.25, .weight_decay = 0});
  CHECK(o.state()[0].dtype() == float32);
  (p.to(float32) * 3.0).sum().backward();
  CHECK(p.grad().dtype() == bfloat16);
  o.step();
  CHECK(copy.to_vector<double>() == std::vector<double>{0.75, 1.75});
  CHECK(copy.requires_grad());
}

TEST_CASE("bad options and parameters") {
  Tensor p = parameter({1});
  CHECK_THROWS_AS(optim::SGD({p}, {.lr = -1}), Error);
  CHECK_THROWS_AS(optim::SGD({p}, {.nesterov = true}), Error);
  CHECK_THROWS_AS(optim::AdamW({p}, {.betas = {1.0, 0.9}}), Error);
  CHECK_THROWS_AS(optim::SGD({p, p}), Error);
  CHECK_THROWS_AS(optim::SGD({p * 2.0}), Error);
  CHECK_THROWS_AS(optim::SGD({tensor({1.0})}), Error);
  CHECK_THROWS_AS(optim::SGD(std::vector<Tensor>{}), Error);
}

TEST_CASE("clipping") {
  Tensor a = parameter({1, 2}), b = parameter({3});
  (a * 3.0).sum().backward();
  (b * 4.0).sum().backward();
  Tensor norm = optim::clip_grad_norm_({a, b}, 1.0);
  double want = std::sqrt(9 + 9 + 16);
  CHECK(norm.item() == doctest::Approx(want));
  CHECK(a.grad().to_vector<double>()[0] == doctest::Approx(3 / (want + 1e-6)));
  CHECK(optim::clip_grad_norm_({a, b}, 10.0).item() == doctest::Approx(1).epsilon(1e-5));
  CHECK(b.grad().item() == doctest::Approx(4 / (want + 1e-6)));
  optim::clip_grad_value_({a, b}, 0.25);
  CHECK(b.grad().item() == 0.25);
}

TEST_CASE("loss scaling skips a bad step and lowers the scale") {
  Tensor p = parameter({1, 2}), x = tensor({1.0, 1.0});
  optim::Adam o({p}, {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 8, .growth_interval = 2});
  auto step = [&](double factor) {
    scaler.scale((p * factor).sum()).backward();
    scaler.step(o);
    scaler.update();
  };
  step(3);
  CHECK(p.to_vector<double>()[0] == doctest::Approx(0.9).epsilon(1e-6));
  CHECK(scaler.get_scale().item() == 8);
  std::vector<double> before = p.to_vector<double>();
  step(INFINITY);
  CHECK(p.to_vector<double>() == before);
  CHECK(o.state().back().item() == 1);  // the bad step did not count
  CHECK(scaler.get_scale().item() == 4);
  step(3);
  step(3);
  CHECK(scaler.get_scale().item() == 8);
  CHECK(o.state().back().item() == 3);
  // Unscaled by hand, for clipping.
  scaler.scale((p * 3.0).sum()).backward();
  scaler.unscale_(o);
  CHECK(p.grad().to_vector<double>()[0] == doctest::Approx(3));
  CHECK_THROWS_AS(scaler.unscale_(o), Error);
  scaler.step(o);
  scaler.update();
  CHECK(o.state().back().item() == 4);
}

namespace {

struct Mlp {
  Tensor w1, b1, w2, b2;
  Mlp() {
    Numbers n(4);
    auto make = [&](const Dims& shape) {
      Tensor t = random_tensor(shape, float32, -0.4, 0.4, n, "cpu");
      t.requires_grad_();
      return t;
    };
    w1 = make({16, 5}), b1 = make({16}), w2 = make({3, 16}), b2 = make({3});
  }
  std::vector<Tensor> parameters() const { return {w1, b1, w2, b2}; }
  Tensor loss(const Tensor& x, const Tensor& target) const {
    return cross_entropy(linear(tanh(linear(x, w1, b1)), w2, b2), target);
  }
};

std::vector<double> train(bool parallel) {
  Mlp model;
  optim::AdamW o(model.parameters(), {.lr = 0.02});
  Numbers n(9);
  Tensor x = random_tensor({13, 5}, float32, -1, 1, n, "cpu"),
         target = random_tensor({13}, int64, 0, 3, n, "cpu");
  std::vector<double> losses;
  for (int step = 0; step < 30; ++step) {
    Tensor loss = parallel ? data_parallel({"cpu:0", "cpu:1"}, model.parameters(), {x, target},
                                           [&](const std::vector<Tensor>& part) {
                                             return model.loss(part[0], part[1]);
                                           })
                           : model.loss(x, target);
    loss.backward();
    o.step();
    losses.push_back(loss.item());
  }
  return losses;
}

}  // namespace

TEST_CASE("data_parallel trains as one device does") {
  std::vector<double> one = train(false), two = train(true);
  CHECK(one.back() < one.front() * 0.8);
  for (size_t i = 0; i < one.size(); ++i) CHECK(std::fabs(one[i] - two[i]) < 1e-6);
  Tensor x = tensor({1.0, 2.0});
  CHECK_THROWS_AS(
      data_parallel({}, {}, {x}, [](const std::vector<Tensor>& part) { return part[0].sum(); }),
      Error);
  CHECK_THROWS_AS(
      data_parallel({"cpu"}, {}, {x}, [](const std::vector<Tensor>& part) { return part[0]; }),
      Error);
}
