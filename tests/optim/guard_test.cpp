// NanGuard: which steps it leaves out, what it names, that a healthy run compiles and runs what it
// would without, and that nothing on the way waits.
#include <cmath>
#include <limits>

#include "compile/executor.h"
#include "support/nn_check.h"

using namespace ingot;
using namespace ingot::check;

namespace {

struct Net : nn::Module {
  nn::Linear fc1 = add("fc1", nn::Linear(4, 8));
  nn::Linear fc2 = add("fc2", nn::Linear(8, 2));
  double shift = 10;
  static constexpr int kLogLine = __LINE__ + 1;
  Tensor forward(Tensor x) override { return fc2(log(relu(fc1(x)) + shift)); }
};

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a healthy run is the same run, with one plan and one run per step") {
  manual_seed(1);
  Net a;
  Net b = a.clone();
  optim::AdamW plain(a.parameters(), {.lr = 0.01}), guarded(b.parameters(), {.lr = 0.01});
  optim::NanGuard guard(guarded);
  Tensor x = randn({5, 4}), target = randint(0, 2, {5});
  eval({x, target});
  int64_t compiled = 0;
  for (int i = 0; i < 6; ++i) {
    cross_entropy(a(x), target).backward();
    plain.step();
    Tensor loss = cross_entropy(b(x), target);
    loss.backward();
    const int64_t runs = plan_stats().runs;
    guard.step(loss);
    CHECK(plan_stats().runs == runs + 1);
    if (i == 1) compiled = plan_stats().compiled;
  }
  CHECK(plan_stats().compiled == compiled);
  CHECK(difference(a.fc1.weight(), b.fc1.weight()) == 0);
  CHECK(guard.skipped() == 0);
  CHECK(guard.report().empty());
}

TEST_CASE("Stop: the step is not taken, and step, op, line and layer are named") {
  manual_seed(2);
  Net net;
  optim::AdamW o(net.parameters(), {.lr = 0.01});
  optim::NanGuard guard(o);
  Tensor x = randn({5, 4}), target = randint(0, 2, {5});
  const auto step = [&] {
    Tensor loss = cross_entropy(net(x), target);
    loss.backward();
    guard.step(loss);
    (void)loss.item();  // where the device works on its own, the error comes here
  };
  step();
  step();
  const Tensor before = net.fc1.weight().detach().clone().eval_();
  net.shift = 0;  // relu gives zeros: their logarithm is -infinity
  const std::string text = message(step, ErrorKind::Value);
  CHECK(contains(text, "the loss of step 3 is not finite"));
  CHECK(contains(text, "first op: log at"));
  CHECK(contains(text, "guard_test.cpp:" + std::to_string(Net::kLogLine)));
  CHECK(contains(text, "in layer (Net)"));
  CHECK(difference(net.fc1.weight(), before) == 0);
  CHECK(guard.skipped() == 1);
  // It stays stopped.
  net.shift = 10;
  step();
  CHECK(difference(net.fc1.weight(), before) == 0);
  CHECK(guard.skipped() == 2);
}

TEST_CASE("Skip: training continues without the bad steps") {
  manual_seed(3);
  Net net;
  Net twin = net.clone();
  optim::AdamW o(net.parameters(), {.lr = 0.01}), other(twin.parameters(), {.lr = 0.01});
  optim::NanGuard guard(o, {.policy = optim::NonFinite::Skip});
  Tensor x = randn({5, 4}), target = randint(0, 2, {5});
  for (int i = 0; i < 8; ++i) {
    const bool bad = i == 2 || i == 5;
    Tensor loss = cross_entropy(net(x * (bad ? NAN : 1.0)), target);
    loss.backward();
    guard.step(loss);
    if (bad) continue;  // nothing waits for the device: several steps are remembered there
    cross_entropy(twin(x), target).backward();
    other.step();
  }
  CHECK(guard.skipped() == 2);
  CHECK(difference(net.fc1.weight(), twin.fc1.weight()) == 0);
  CHECK(contains(guard.report(), "the loss of step 3"));
  CHECK(contains(guard.report(), "first op: mul"));
}

TEST_CASE("gradients alone can be bad: the op is found in the backward of its layer") {
  struct Root : nn::Module {
    nn::Parameter w = register_parameter("w", zeros({3}));
    Tensor forward(Tensor x) override { return sqrt(w * x); }  // finite at 0, its slope is not
  };
  struct Outer : nn::Module {
    Root root = add("root", Root());
    Tensor forward(Tensor x) override { return root(x).sum(); }
  };
  Outer net;
  optim::SGD o(net.parameters(), {.lr = 0.1});
  optim::NanGuard guard(o);
  Tensor loss = net(ones({3}));
  loss.backward();
  const std::string text = message([&] { guard.step(loss), (void)loss.item(); }, ErrorKind::Value);
  CHECK(contains(text, "the norm of the gradients of step 1"));
  CHECK(contains(text, "in layer the gradient of root (Root)"));
  CHECK(largest(net.root.w) == 0);
}

TEST_CASE("a mask of -infinity is no mistake; a parameter that is bad already is named") {
  manual_seed(4);
  nn::MultiheadAttention attention(4, 1);
  optim::SGD o(attention.parameters(), {.lr = 0.1});
  optim::NanGuard guard(o);
  Tensor x = randn({3, 2, 4});
  const auto step = [&](double factor) {
    Tensor loss =
        attention(x, x, x, {.attn_mask = nn::Transformer::generate_square_subsequent_mask(3)})
            .output.sum() *
        factor;
    loss.backward();
    guard.step(loss);
    (void)loss.item();  // where the device works on its own, the error comes here
  };
  step(1);
  std::string text = message([&] { step(kInf); }, ErrorKind::Value);
  CHECK(contains(text, "first op: mul"));
  {
    NoGrad no_grad;
    attention.parameter("out_proj.bias").fill_(NAN);
  }
  optim::NanGuard second(o, {.policy = optim::NonFinite::Skip});
  Tensor loss = attention(x, x, x).output.sum();
  loss.backward();
  second.step(loss);
  CHECK(contains(second.report(), "out_proj.bias"));
  CHECK(contains(second.report(), "not finite before the step"));
  CHECK(contains(message([&] { second.step(ones({2})); }, ErrorKind::Shape), "one element"));
}
