// The semantics of gradients, optimisers, history and failure, one tiny program per sentence.
#include <functional>

#include "semantics.h"

using namespace ingot;
using namespace semantics;

// ---- Gradients and optimisers

TEST_CASE("tied weights stay tied through an optimiser step") {
  Tensor w = parameter({1, 2}), tied = w, view = w.view({2, 1});
  optim::SGD opt({w}, {.lr = 0.5});
  (w * tied).sum().backward();
  opt.step();
  CHECK(numbers(w) == V{0, 0});
  CHECK(numbers(tied) == V{0, 0});
  CHECK(numbers(tied.grad().defined() ? tied.grad() : zeros({1})) == V{0});
  (tied * 3).sum().backward();
  opt.step();
  CHECK(numbers(w) == V{-1.5, -1.5});
}

TEST_CASE("step() consumes the gradients unless asked to keep them") {
  Tensor w = parameter({1, 2});
  optim::SGD opt({w}, {.lr = 1});
  w.sum().backward();
  opt.step();
  CHECK(!w.grad().defined());
  w.sum().backward();
  opt.step(/*keep_gradients=*/true);
  CHECK(numbers(w.grad()) == V{1, 1});
  w.sum().backward();
  CHECK(numbers(w.grad()) == V{2, 2});
}

TEST_CASE("a gradient that a handle holds survives step()") {
  Tensor w = parameter({1, 2});
  optim::SGD opt({w}, {.lr = 1});
  (w * w).sum().backward();
  Tensor g = w.grad();
  opt.step();
  CHECK(!w.grad().defined());
  CHECK(numbers(g) == V{2, 4});
}

TEST_CASE("gradients accumulate over several backward() before a step") {
  Tensor w = parameter({1, 2});
  optim::SGD opt({w}, {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    V at = numbers(w);
    for (int k = 1; k <= 3; ++k) (w * static_cast<double>(k)).square().sum().backward();
    V g = numbers(w.grad());
    CHECK(close(g, {28 * at[0], 28 * at[1]}));
    opt.step();
    CHECK(close(numbers(w), {at[0] - 0.1 * g[0], at[1] - 0.1 * g[1]}));
  }
}

TEST_CASE("accumulation needs as many plans in a later step as in the first") {
  Tensor w = parameter({1, 2}), x = here({3, 4});
  optim::SGD opt({w}, {.lr = 0.01});
  auto step = [&] {
    for (int k = 0; k < 4; ++k) (w * x).square().sum().backward();
    opt.step();
  };
  step();
  Plans plans;
  Runs runs;
  for (int i = 0; i < 5; ++i) step();
  CHECK(plans.count() == 0);
  CHECK(runs.count() == 5 * 4);
}

TEST_CASE("retain_graph allows a second backward, otherwise it is an error that changes nothing") {
  for (bool run_first : {false, true}) {
    Tensor w = parameter({1, 2});
    Tensor y = (w * w).sum();
    if (run_first) eval(y);
    y.backward({}, /*retain_graph=*/true);
    y.backward();
    CHECK(numbers(w.grad()) == V{4, 8});
    CHECK(kind_of([&] { y.backward(); }) == ErrorKind::Autograd);
    CHECK(numbers(w.grad()) == V{4, 8});
    CHECK(y.item() == 5);
  }
}

TEST_CASE("detach() stops the gradient and shares the value") {
  Tensor w = parameter({1, 2});
  Tensor y = w * w, d = y.detach();
  CHECK(!d.requires_grad());
  (d * w).sum().backward();
  CHECK(numbers(w.grad()) == V{1, 4});
  CHECK(numbers(d) == V{1, 4});
}

TEST_CASE("no_grad records without history") {
  Tensor w = parameter({1, 2});
  Tensor y = no_grad([&] { return w * w; });
  CHECK(!y.requires_grad());
  CHECK(kind_of([&] { y.sum().backward(); }) == ErrorKind::Autograd);
  Tensor z;
  {
    NoGrad off;
    EnableGrad on;
    z = w * 2;
  }
  z.sum().backward();
  CHECK(numbers(w.grad()) == V{2, 2});
}

TEST_CASE("hooks see the complete gradient once and may replace it") {
  Tensor w = parameter({1, 2});
  Tensor h = w * 2;
  int calls = 0;
  V seen;
  HookHandle handle = register_hook(h, [&](const Tensor& g) {
    ++calls;
    seen = numbers(g);
    return g * 10;
  });
  (h.sum() + (h * h).sum()).backward({}, true);
  CHECK(calls == 1);
  CHECK(seen == V{5, 9});
  CHECK(numbers(w.grad()) == V{100, 180});
  handle.remove();
  w.zero_grad();
  (h * 1).sum().backward();
  CHECK(calls == 1);
  CHECK(numbers(w.grad()) == V{2, 2});
}

TEST_CASE("gradients are graphs: higher orders are free") {
  Tensor x = parameter({2});
  Tensor y = (x * x * x).sum();
  Tensor g = grad({y}, {x}, {}, {}, /*create_graph=*/true)[0];
  Tensor gg = grad({g.sum()}, {x}, {}, {}, true)[0];
  CHECK(numbers(g) == V{12});
  CHECK(numbers(gg) == V{12});
  gg.sum().backward();
  CHECK(numbers(x.grad()) == V{6});
}

TEST_CASE("a hand-written loop with clipping and zero_grad compiles one plan") {
  Tensor w = parameter({1, 2}), x = here({3, 4});
  auto step = [&] {
    w.zero_grad();
    Tensor loss = (w * x).square().sum();
    loss.backward();
    optim::clip_grad_norm_({w}, 1.0);
    NoGrad guard;
    w -= 0.1 * w.grad();
    return loss.item();
  };
  step();
  step();
  Plans plans;
  double last = step();
  for (int i = 0; i < 5; ++i) {
    double now = step();
    CHECK(now < last);
    last = now;
  }
  CHECK(plans.count() == 0);
}

// ---- History

TEST_CASE("a forward that ran before backward() gives the same gradient") {
  auto gradient = [](bool run) {
    Tensor w = parameter({0.5, 2});
    Tensor h = exp(w), y = (h * w).sum();
    if (run) eval(y);
    y.backward();
    return numbers(w.grad());
  };
  CHECK(close(gradient(true), gradient(false), 1e-6));
}

TEST_CASE("a loop that reads its loss and never steps keeps no history") {
  Device d("cpu:4");
  Tensor w = parameter({1, 2, 3, 4}, d);
  size_t in_use = 0;
  for (int i = 0; i < 10; ++i) {
    Tensor loss = (exp(w) * w).sum();
    (void)loss.item();
    loss.backward();
    w.zero_grad();
    loss = Tensor();
    if (i == 1) in_use = d.memory().in_use;
  }
  CHECK(d.memory().in_use == in_use);
}

TEST_CASE("a chain of a million nodes is recorded, differentiated and released without recursion") {
  Tensor w = parameter({1});
  Tensor x = w;
  for (int i = 0; i < 100000; ++i) x = x + 0.5;
  x.sum().backward();
  CHECK(numbers(w.grad()) == V{1});
  x = Tensor();
  Tensor y = here({1});
  for (int i = 0; i < 300000; ++i) y = -y;
  y = Tensor();
}

TEST_CASE(
    "a checkpoint is computed again after the gradient has arrived, with the same gradients, from "
    "less "
    "arena") {
  Device d("cpu:4");
  Generator g(2);
  std::vector<Tensor> ws;
  for (int i = 0; i < 6; ++i)
    ws.push_back((randn({64, 64}, d, g) * 0.2).eval_()), ws.back().requires_grad_();
  Tensor x = randn({256, 64}, d, g).eval_();
  auto layer = [](const std::vector<Tensor>& in) { return gelu(gelu(matmul(in[0], in[1])) * 2); };
  auto program = [&](bool recompute, size_t* peak) {
    for (Tensor& w : ws) w.zero_grad();
    Tensor h = x;
    for (Tensor& w : ws)
      h = recompute ? checkpoint(std::function<Tensor(const std::vector<Tensor>&)>(layer), {h, w})
                    : layer({h, w});
    h.square().mean().backward();
    std::vector<Tensor> grads;
    for (Tensor& w : ws) grads.push_back(w.grad());
    h = Tensor();
    *peak = explain(grads).peak_bytes;
    V all;
    for (Tensor& w : grads)
      for (double v : numbers(w)) all.push_back(v);
    return all;
  };
  size_t plain = 0, less = 0;
  V want = program(false, &plain);
  CHECK(close(program(true, &less), want, 1e-6));
  MESSAGE("peak " << plain << " bytes, with checkpoints " << less);
  CHECK(less < plain * 7 / 10);
}

TEST_CASE("a checkpoint draws the same random numbers again") {
  manual_seed(6);
  Tensor w = parameter(V(32, 1));
  std::function<Tensor(const std::vector<Tensor>&)> drop = [](const std::vector<Tensor>& in) {
    return dropout(in[0] * in[0], 0.5);
  };
  Tensor y = checkpoint(drop, {w});
  Tensor after = rand({4});
  y.sum().backward();
  V g = numbers(w.grad()), v = numbers(y);
  for (size_t i = 0; i < v.size(); ++i) CHECK(g[i] == 2 * v[i]);
  manual_seed(6);
  (void)dropout(w, 0.5);
  CHECK(numbers(rand({4})) == numbers(after));
}

TEST_CASE("printing an intermediate does not change the training") {
  auto train = [](bool print) {
    Tensor w = (arange(8, float32) / 8).to(bfloat16);
    eval(w);
    w.requires_grad_();
    optim::SGD opt({w}, {.lr = 0.1});
    V losses;
    for (int i = 0; i < 3; ++i) {
      Tensor h = softmax(w * 3, 0), y = gelu(h) * w, loss = y.sum();
      if (print) (void)(h.to_string() + y.to_string());
      loss.backward();
      opt.step();
      losses.push_back(loss.item());
    }
    for (double v : numbers(w)) losses.push_back(v);
    return losses;
  };
  CHECK(train(true) == train(false));
}

// ---- Failure

namespace {

struct Words {
  Tensor table = parameter({1, 2, 3, 4, 5, 6}), other = parameter({1, 1});
  optim::AdamW opt{{table, other}, {.lr = 0.1}};
  Tensor loss(const std::vector<int64_t>& ids) {
    return (embedding(table.view({3, 2}), tensor(ids)) * other).square().sum();
  }
  V state() {
    V all = numbers(table);
    for (double v : numbers(other)) all.push_back(v);
    for (const Tensor& s : opt.state())
      for (double v : numbers(s)) all.push_back(v);
    return all;
  }
};

}  // namespace

TEST_CASE(
    "a bad index in a step changes nothing: parameters, moments and counts are as they were") {
  Words m;
  m.loss({0, 1}).backward();
  m.opt.step();
  V before = m.state();
  int line = 0;
  try {
    line = __LINE__ + 1;
    Tensor bad = m.loss({0, 7});
    bad.backward();
    m.opt.step();
    m.opt.step();
    synchronize();
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::Index);
    std::string what = e.what();
    CHECK(what.find("7") != std::string::npos);
    CHECK(what.find("semantics_training_test.cpp") != std::string::npos);
  }
  (void)line;
  CHECK(m.state() == before);
}

TEST_CASE("the process continues after a bad index, with the right numbers") {
  Words good, hurt;
  auto step = [](Words& m, const std::vector<int64_t>& ids) {
    m.opt.zero_grad();
    m.loss(ids).backward();
    m.opt.step();
  };
  step(good, {0, 1});
  step(hurt, {0, 1});
  CHECK(kind_after([&] { step(hurt, {3, 1}); }) == ErrorKind::Index);
  step(good, {2, 1});
  step(hurt, {2, 1});
  CHECK(hurt.state() == good.state());
}

TEST_CASE(
    "an index error names the line that recorded the op, and the value names the error later") {
  Tensor x = here({1, 2, 3});
  int line = __LINE__ + 1;
  Tensor bad = gather(x, 0, tensor({0, 3}));
  Tensor after = bad * 2;
  try {
    eval(after);
    synchronize();
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::Index);
    CHECK(static_cast<int>(e.where().line) == line);
  }
  for (const Tensor& t : {bad, after}) {
    if (!fails_at_once()) break;
    try {
      (void)t.to_vector<float>();
      FAIL("no error");
    } catch (const Error& e) {
      std::string what = e.what();
      CHECK(what.find("index 3") != std::string::npos);
      CHECK(what.find(":" + std::to_string(line)) != std::string::npos);
    }
  }
  if (fails_at_once()) CHECK(kind_of([&] { (void)(after + 1); }).has_value());
  CHECK(numbers(x * 2) == V{2, 4, 6});
}

TEST_CASE("values that had no part in a failure are there") {
  Tensor x = here({1, 2, 3}), fine = exp(x) - exp(x) + x;
  Tensor bad = gather(x, 0, tensor({5}));
  CHECK(kind_of([&] { synchronize(); }) == ErrorKind::Index);
  CHECK(numbers(fine) == V{1, 2, 3});
}

TEST_CASE("a failed assignment leaves the old value") {
  Tensor x = here({1, 2, 3}), copy = x;
  x += gather(here({5, 6, 7}), 0, tensor({0, 1, 9}));
  CHECK(kind_after([&] { eval(x); }) == ErrorKind::Index);
  CHECK(numbers(copy) == V{1, 2, 3});
  x += 1;
  CHECK(numbers(copy) == V{2, 3, 4});
}

TEST_CASE("a failed write through a view leaves the base") {
  Tensor x = here({1, 2, 3, 4});
  x[Slice{1, 3, {}}] = gather(here({5, 6}), 0, tensor({0, 2}));
  CHECK(kind_after([&] { eval(x); }) == ErrorKind::Index);
  CHECK(numbers(x) == V{1, 2, 3, 4});
}

TEST_CASE("negative indices count from the end, and one too many is an error") {
  Tensor x = here({1, 2, 3});
  CHECK(kind_of([&] { (void)numbers(gather(x, 0, tensor({-4}))); }) == ErrorKind::Index);
  CHECK(kind_of([&] { (void)x[3]; }) == ErrorKind::Index);
  CHECK(numbers(x[-1]) == V{3});
}

TEST_CASE("an exception in the middle of a step leaves everything usable") {
  Words m;
  V before = m.state();
  try {
    Tensor loss = m.loss({0, 1});
    loss.backward();
    (void)(loss + zeros({2, 2}).matmul(zeros({3, 3})));
    m.opt.step();
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::Shape);
  }
  m.opt.zero_grad();
  CHECK(m.state() == before);
  m.loss({0, 1}).backward();
  m.opt.step();
  CHECK(m.state() != before);
}

TEST_CASE("a hook that throws leaves the gradients as they were") {
  Tensor w = parameter({1, 2});
  w.sum().backward();
  Tensor h = w * 2;
  register_hook(h, [](const Tensor&) -> Tensor { throw std::runtime_error("no"); });
  CHECK_THROWS_AS(h.sum().backward(), std::runtime_error);
  CHECK(numbers(w.grad()) == V{1, 1});
}

TEST_CASE(
    "loss scaling: a step whose gradients overflow changes nothing and lowers the scale, without "
    "another "
    "plan") {
  Tensor w = parameter({1, 2}), x = here({1e30, 1});
  optim::AdamW opt({w}, {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 2});
  auto step = [&](double size) {
    scaler.scale((w * x * argument(size)).sum()).backward();
    scaler.step(opt);
    scaler.update();
  };
  step(1e-30);
  V before = numbers(w);
  Plans plans;
  step(1e10);  // 1e40 is not finite in float32
  CHECK(numbers(w) == before);
  CHECK(scaler.get_scale().item() == 512);
  step(1e-30);
  step(1e-30);
  CHECK(numbers(w) != before);
  CHECK(scaler.get_scale().item() == 1024);
  CHECK(plans.count() == 0);
}

TEST_CASE("eagerly, an index error is raised at its own line") {
  Switch eager(set_eager, true, false);
  Tensor x = here({1, 2, 3});
  int line = 0;
  try {
    line = __LINE__ + 1;
    Tensor bad = gather(x, 0, tensor({3}));
    synchronize();
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::Index);
    CHECK(static_cast<int>(e.where().line) == line);
  }
  CHECK(numbers(x + 1) == V{2, 3, 4});
}
