// How many plans whole training loops compile, counted on the null device. A plan is made for a
// structure: what changes from step to step (rates, counts, scales, random offsets, data) is an
// argument or a buffer and makes no other one.
#include <functional>

#include "semantics.h"

using namespace ingot;
using namespace semantics;

namespace {

struct Net : nn::Module {
  nn::Linear in, out;
  nn::LayerNorm norm;
  nn::Dropout drop;
  explicit Net(int64_t features = 20, int64_t classes = 10)
      : in(add("in", nn::Linear(features, 64))),
        out(add("out", nn::Linear(64, classes))),
        norm(add("norm", nn::LayerNorm(64))),
        drop(add("drop", nn::Dropout(0.1))) {}
  Tensor forward(Tensor x) override { return out(drop(gelu(norm(in(x))))); }
};

// 10 batches an epoch, the last of them ragged; made from host data at every step, as a loader
// does.
struct Batch {
  Tensor x, target;
};
Batch batch(int step) {
  int64_t n = step % 10 == 9 ? 7 : 32;
  std::vector<float> x(static_cast<size_t>(n) * 20, 0.5F);
  std::vector<int64_t> target(static_cast<size_t>(n), 1);
  return {from_data(x.data(), {n, 20}), from_data(target.data(), {n})};
}

struct OnNull {
  Device before = default_device();
  OnNull() { set_default_device("null"); }
  ~OnNull() { set_default_device(before); }
};

double schedule(int step) { return 1e-3 * (1 + std::cos(0.03 * step)) / 2; }

}  // namespace

TEST_CASE(
    "100 steps with schedule, dropout, AdamW, loss scaling, prints and a ragged last batch: 2 "
    "plans") {
  OnNull device;
  Net net;
  optim::AdamW opt(net.parameters(), {.lr = 1e-3});
  amp::GradScaler scaler;
  Plans plans;
  Runs runs;
  for (int step = 0; step < 100; ++step) {
    opt.set_lr(schedule(step));
    auto [x, target] = batch(step);
    Tensor loss = cross_entropy(net.forward(x), target);
    scaler.scale(loss).backward();
    scaler.step(opt);
    scaler.update();
    if (step % 10 == 0) (void)loss.item();
  }
  // 1: a step on 32 samples. Step 0 has the plan of all others: parameters, moments, counts and the
  // scale were computed when
  //    they were made. Printing the loss finds it computed: it is kept in every step, because its
  //    handle lives.
  // 2: the same step on 7 samples.
  CHECK(plans.count() == 2);
  CHECK(runs.count() == 100);
}

TEST_CASE("clipping, unscaling and a loss that is added up on the device: 3 plans") {
  OnNull device;
  Net net;
  optim::AdamW opt(net.parameters(), {.lr = 1e-3});
  amp::GradScaler scaler;
  Tensor total = zeros({}).eval_();
  Plans plans;
  Runs runs;
  for (int step = 0; step < 100; ++step) {
    opt.set_lr(schedule(step));
    auto [x, target] = batch(step);
    Tensor loss = cross_entropy(net.forward(x), target);
    scaler.scale(loss).backward();
    scaler.unscale_(opt);
    optim::clip_grad_norm_(net.parameters(), 1.0);
    scaler.step(opt);
    scaler.update();
    total += loss.detach();  // runs with the next step
  }
  CHECK(runs.count() == 100);
  // 1: step 0, which has no earlier loss to add. 2: a step on 32 samples that adds the loss before
  // it. 3: the same on 7.
  CHECK(plans.count() == 3);
  (void)total.item();
  CHECK(plans.count() == 4);  // the last addition alone
}

TEST_CASE("accuracy every 10 steps and an evaluation every epoch: 4 plans") {
  OnNull device;
  Net net;
  optim::AdamW opt(net.parameters(), {.lr = 1e-3});
  auto accuracy = [](const Tensor& logits, const Tensor& target) {
    return (logits.argmax(1) == target).to(float32).mean().item();
  };
  Plans plans;
  for (int step = 0; step < 100; ++step) {
    auto [x, target] = batch(step);
    Tensor logits = net.forward(x), loss = cross_entropy(logits, target);
    loss.backward();
    opt.step();
    if (step % 10 == 0) (void)accuracy(logits, target);
    if (step % 10 == 9) {
      net.eval();
      Batch test = batch(0);
      (void)no_grad([&] { return accuracy(net.forward(test.x), test.target); });
      net.train();
    }
  }
  // 1: a step on 32 samples (the logits are kept for their handle), 2: on 7, 3: the accuracy of
  // kept logits, 4: an evaluation.
  CHECK(plans.count() == 4);
}

TEST_CASE("accumulation over 4 parts: 4 plans, however often") {
  OnNull device;
  Net net;
  optim::AdamW opt(net.parameters(), {.lr = 1e-3});
  Plans plans;
  Runs runs;
  for (int step = 0; step < 20; ++step) {
    for (int part = 0; part < 4; ++part) {
      auto [x, target] = batch(0);
      (cross_entropy(net.forward(x), target) / 4.0).backward();
    }
    opt.step();
  }
  // 1: the first part, whose gradients are new. 2: the second, which adds to products that are
  // transposed (a view of a computed
  //    value stays a view). 3: the third, which adds to sums. 4: the last part and the update.
  CHECK(plans.count() == 4);
  CHECK(runs.count() == 80);
}

TEST_CASE("reading the loss before backward() splits a step in two: 2 plans") {
  OnNull device;
  Net net;
  optim::SGD opt(net.parameters(), {.lr = 1e-3, .momentum = 0.9});
  Plans plans;
  for (int step = 0; step < 20; ++step) {
    auto [x, target] = batch(0);
    Tensor loss = cross_entropy(net.forward(x), target);
    if (!(loss.item() < 1e9)) break;
    loss.backward();
    opt.step();
  }
  CHECK(plans.count() == 2);  // the forward; the backward and the update
}

TEST_CASE("a hand-written update, tied weights, a hook and a checkpoint: 1 plan") {
  OnNull device;
  Net net(20, 20);
  std::vector<Tensor> params = net.parameters();
  Tensor tied = params[0];
  Plans plans;
  for (int step = 0; step < 20; ++step) {
    auto [x, target] = batch(0);
    std::function<Tensor(const std::vector<Tensor>&)> body = [&](const std::vector<Tensor>& in) {
      return net.forward(in[0]);
    };
    Tensor h = checkpoint(body, {linear(linear(x, tied), tied.t())});
    register_hook(h, [](const Tensor& g) { return g * 0.5; });
    cross_entropy(h, target).backward();
    NoGrad guard;
    for (Tensor p : params) {
      p -= argument(schedule(step)) * p.grad();
      p.zero_grad();
    }
    eval(params);
  }
  CHECK(plans.count() == 1);
}

TEST_CASE("a captured step: 2 plans, and no recording after the first of each") {
  OnNull device;
  Net net;
  optim::AdamW opt(net.parameters(), {.lr = 1e-3});
  int recorded = 0;
  Captured step = capture([&](const std::vector<Tensor>& in) {
    ++recorded;
    Tensor loss = cross_entropy(net.forward(in[0]), in[1]);
    loss.backward();
    opt.step();
    return std::vector<Tensor>{loss};
  });
  Plans plans;
  for (int i = 0; i < 100; ++i) {
    opt.set_lr(schedule(i));
    auto [x, target] = batch(i);
    (void)step({x, target})[0].item();
  }
  CHECK(plans.count() == 2);
  CHECK(recorded == 2);
}

TEST_CASE("numbers that change are arguments from the second time on: 2 plans for 40,000 steps") {
  OnNull device;
  Tensor w = ones({8, 8}).requires_grad_();
  eval(w);
  Plans plans;
  for (int i = 0; i < 40000; ++i) eval(grad({(w * (0.1 + i * 1e-4)).sin().sum()}, {w}));
  CHECK(plans.count() == 2);
}

TEST_CASE("an annealed weight and a temperature: 2 plans, and what stays is a constant") {
  OnNull device;
  Net net;
  optim::SGD opt(net.parameters(), {.lr = 1e-3});
  Plans plans;
  for (int i = 0; i < 50; ++i) {
    Tensor x = from_data(std::vector<float>(80).data(), {4, 20});
    Tensor y = log_softmax(net.forward(x) / (1.0 + 0.01 * i), -1);
    ((y * y).mean() * 0.5 + (y.exp() * y).sum() * (0.001 * i)).backward();
    opt.step();
  }
  // The first step keeps gradients or has momentum to make; then one with constants, one without.
  CHECK(plans.count() <= 3);
}

TEST_CASE("a number as an argument gives what it gives as a constant, in every type") {
  for (DType t : {float64, float32, bfloat16, float16}) {
    CAPTURE(name_of(t));
    const Tensor x = linspace(-2, 3, 301, {t}).eval_();
    // The structure differs by `salt` expressions, so that its first recording has constants.
    auto f = [&](double a, int salt) {
      Tensor y = where(x > a, x * a, (x + a) / (a + 4.0)).clamp(a - 3, 9) - exp(x * 0.25) * a;
      y = maximum(y, a) + pow(x.abs() + 1.0, a);
      for (int i = 0; i < salt; ++i) y = -y;
      return y.to(float64).to_vector<double>();
    };
    int salt = 0;
    for (double a : {0.3, 0.7, 1.9}) {
      const std::vector<double> constant = f(a, salt += 2);
      f(a + 0.1, salt);
      const std::vector<double> argument = f(a + 0.2, salt), again = f(a + 0.2, salt + 100);
      CHECK(constant == f(a, salt));
      CHECK(argument == again);
    }
  }
}

TEST_CASE("every batch size has its own plan, and comes back to it") {
  OnNull device;
  Net net;
  optim::SGD opt(net.parameters(), {.lr = 1e-3});
  Plans plans;
  for (int round = 0; round < 3; ++round)
    for (int64_t n : {4, 8, 16}) {
      Tensor x = from_data(std::vector<float>(static_cast<size_t>(n) * 20).data(), {n, 20});
      net.forward(x).square().mean().backward();
      opt.step();
    }
  CHECK(plans.count() == 3);
}
