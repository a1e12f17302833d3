// Whole training loops: how many plans they compile, that memory stays level, and that threads may
// train at once.
#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "compile/executor.h"
#include "support/op_check.h"

using namespace ingot;
using namespace ingot::check;

namespace {

struct Net {
  Tensor w1, b1, w2, b2;
  explicit Net(const Device& device) {
    Generator g(3);
    auto make = [&](const Dims& shape) {
      Tensor t = randn(shape, device, g) * 0.2;
      eval(t);
      return t.requires_grad_();
    };
    w1 = make({32, 8}), b1 = make({32}), w2 = make({4, 32}), b2 = make({4});
  }
  std::vector<Tensor> parameters() const { return {w1, b1, w2, b2}; }
  Tensor operator()(const Tensor& x, const Generator& g) const {
    return linear(dropout(relu(linear(x, w1, b1)), 0.1, true, g), w2, b2);
  }
};

struct Batch {
  Tensor x, target;
  Batch(int64_t n, uint64_t seed, const Device& device) {
    Numbers numbers(seed);
    x = random_tensor({n, 8}, float32, -1, 1, numbers, device);
    target = random_tensor({n}, int64, 0, 4, numbers, device);
  }
};

}  // namespace

// A learning-rate schedule, dropout, AdamW, loss scaling, clipping, a print every 10 steps and a
// ragged last batch.
TEST_CASE("100 steps compile two plans: one for full batches, one for the last of an epoch") {
  for (const char* name : {"cpu", "null"}) {
    CAPTURE(std::string(name));
    Device device(name);
    Generator random(11);
    Net net(device);
    optim::AdamW optimiser(net.parameters(), {.lr = 1e-2});
    set_default_device(device);
    amp::GradScaler scaler({.init_scale = 128, .growth_interval = 7});
    set_default_device("cpu");
    std::vector<Batch> batches;
    for (uint64_t i = 0; i < 10; ++i) batches.emplace_back(i == 9 ? 5 : 16, i + 1, device);
    int64_t before = plan_stats().compiled, runs = plan_stats().runs;
    double first = 0, last = 0;
    for (int step = 0; step < 100; ++step) {
      optimiser.set_lr(1e-2 * (1 + std::cos(0.03 * step)) / 2);
      const Batch& b = batches[static_cast<size_t>(step) % 10];
      Tensor loss = cross_entropy(net(b.x, random), b.target);
      scaler.scale(loss).backward();
      scaler.unscale_(optimiser);
      optim::clip_grad_norm_(net.parameters(), 5.0);
      scaler.step(optimiser);
      scaler.update();
      if (step % 10 == 0) (step ? last : first) = loss.item();
    }
    CHECK(plan_stats().compiled - before == 2);
    CHECK(plan_stats().runs - runs == 100);
    if (device.is_cpu()) CHECK(last < first);
  }
}

TEST_CASE("memory stays level from step to step") {
  Device device("cpu:2");
  Generator random(1);
  Net net(device);
  optim::AdamW optimiser(net.parameters(), {.lr = 1e-3});
  Batch b(16, 1, device);
  size_t in_use = 0;
  for (int step = 0; step < 20; ++step) {
    cross_entropy(net(b.x, random), b.target).backward();
    optimiser.step();
    device.synchronize();
    if (step == 1) in_use = device.memory().in_use;
  }
  CHECK(device.memory().in_use == in_use);
}

TEST_CASE("gradients accumulate over several backwards before a step") {
  Generator random(1);
  Net net("cpu");
  optim::SGD optimiser(net.parameters(), {.lr = 0.1});
  Batch a(16, 1, "cpu"), b(16, 2, "cpu");
  auto loss = [&](const Batch& x) {
    return cross_entropy(linear(relu(linear(x.x, net.w1, net.b1)), net.w2, net.b2), x.target);
  };
  ((loss(a) + loss(b)) * 0.5).backward();
  std::vector<double> want = net.w1.grad().to_vector<double>();
  optimiser.zero_grad();
  int64_t before = 0;
  for (int step = 0; step < 6; ++step) {
    if (step == 2) before = plan_stats().compiled;
    optimiser.zero_grad();
    (loss(a) * 0.5).backward();
    (loss(b) * 0.5).backward();
  }
  CHECK(plan_stats().compiled == before);
  std::vector<double> got = net.w1.grad().to_vector<double>();
  for (size_t i = 0; i < want.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-4));
}

TEST_CASE("threads train separate models at once") {
  auto train = [](double* result) {
    Generator random(5);
    Net net("cpu");
    optim::AdamW optimiser(net.parameters(), {.lr = 1e-2});
    Batch b(16, 1, "cpu");
    Tensor loss;
    for (int step = 0; step < 10; ++step) {
      loss = cross_entropy(net(b.x, random), b.target);
      loss.backward();
      optimiser.step();
    }
    *result = loss.item();
  };
  double alone = 0, together[3] = {};
  train(&alone);
  std::vector<std::thread> threads;
  for (double& r : together) threads.emplace_back(train, &r);
  for (std::thread& t : threads) t.join();
  for (double r : together) CHECK(r == alone);
}

TEST_CASE("threads add gradients to one parameter") {
  Tensor w = tensor(std::vector<double>{1, 2});
  w.requires_grad_();
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&w] {
      for (int i = 0; i < 25; ++i) {
        (w * 2.0).sum().backward();
        synchronize();
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(w.grad().to_vector<double>() == std::vector<double>{200, 200});
}

TEST_CASE("checkpoints lower the peak and change nothing else") {
  Numbers numbers(2);
  std::vector<Tensor> weights;
  for (int i = 0; i < 12; ++i)
    weights.push_back(random_tensor({16, 16}, float32, -0.3, 0.3, numbers, "cpu").requires_grad_());
  Tensor x = random_tensor({512, 16}, float32, -1, 1, numbers, "cpu");
  size_t peak[2];
  std::vector<double> gradient[2];
  for (bool recompute : {false, true}) {
    Tensor h = x;
    for (size_t b = 0; b < 4; ++b) {
      auto block = [&weights, b](const std::vector<Tensor>& in) {
        Tensor y = in[0];
        for (size_t k = 0; k < 3; ++k) y = tanh(matmul(y, weights[3 * b + k]));
        return y;
      };
      h = recompute ? checkpoint(block, {h}) : block({h});
    }
    Tensor loss = (h * h).sum();
    h = Tensor();
    loss.backward();
    std::vector<Tensor> grads;
    for (const Tensor& w : weights) grads.push_back(w.grad());
    peak[recompute] = explain(grads).peak_bytes;
    for (const Tensor& g : grads)
      for (double v : g.to_vector<double>()) gradient[recompute].push_back(v);
    for (const Tensor& w : weights) w.zero_grad();
  }
  CHECK(peak[1] < peak[0] * 7 / 10);
  for (size_t i = 0; i < gradient[0].size(); ++i)
    CHECK(gradient[1][i] == doctest::Approx(gradient[0][i]).epsilon(1e-4));
}
