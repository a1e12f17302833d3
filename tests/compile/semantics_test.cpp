// The semantics, one tiny program per sentence: when things run, what a handle is, what in-place
// calls do, which values a run keeps, and what never makes another plan.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cmath>
#include <sstream>

#include "compile/executor.h"
#include "graph/cell.h"
#include "semantics.h"

using namespace ingot;
using namespace semantics;

// ---- Recording and running

TEST_CASE("an op call infers shape and type at once and computes nothing") {
  Tensor a = here({1, 2, 3}), b = here({4, 5, 6});
  Runs runs;
  Tensor c = (a + b).view({3, 1}).expand({3, 2}).sum(1);
  CHECK(c.shape() == Dims{3});
  CHECK(c.dtype() == float32);
  CHECK(runs.count() == 0);
  CHECK(numbers(c) == V{10, 14, 18});
  CHECK(runs.count() == 1);
}

TEST_CASE("a mistake throws at the op, not at the run, and leaves the operands usable") {
  Tensor a = here({1, 2, 3});
  Runs runs;
  int line = 0;
  try {
    line = __LINE__ + 1;
    Tensor c = a + zeros({2});
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::Shape);
    CHECK(static_cast<int>(e.where().line) == line);
  }
  CHECK(runs.count() == 0);
  CHECK(numbers(a + 1) == V{2, 3, 4});
}

TEST_CASE("item(), printing, eval(), to_vector() and synchronize() run what is pending") {
  Tensor a = here({1, 2, 3});
  Runs runs;
  CHECK((a + 1).sum().item() == 9);
  CHECK(runs.take() == 1);
  std::ostringstream out;
  out << a * 2;
  CHECK(out.str().find("6") != std::string::npos);
  CHECK(runs.take() == 1);
  Tensor d = a - 1;
  eval(d);
  CHECK(is_computed(d));
  CHECK(runs.take() == 1);
  CHECK((a / 2).to_vector<float>()[0] == 0.5F);
  CHECK(runs.take() == 1);
  Tensor e = a * a;
  synchronize();
  CHECK(is_computed(e));
  CHECK(runs.take() == 1);
}

TEST_CASE("a later step finds an earlier step's plan") {
  Tensor a = here({1, 2, 3});
  auto step = [&](double seed) { return (a * here({seed, 1, 1})).exp().sum().item(); };
  step(1);
  Plans plans;
  for (int i = 0; i < 10; ++i)
    CHECK(step(i) == doctest::Approx(std::exp(i) + std::exp(2) + std::exp(3)));
  CHECK(plans.count() == 0);
}

TEST_CASE("step() is the trigger: forward, backward and update are one run") {
  Tensor w = parameter({1, 2}), x = here({3, 4});
  optim::SGD opt({w}, {.lr = 0.5});
  Runs runs;
  (w * x).sum().backward();
  CHECK(runs.count() == 0);
  opt.step();
  CHECK(runs.count() == 1);
  CHECK(numbers(w) == V{-0.5, 0});
}

TEST_CASE("parameters and optimiser state are run when created: step 1 and step 2 have one plan") {
  Tensor w = (ones({3}) * 0.5).requires_grad_();
  optim::AdamW opt({w}, {.lr = 0.1});
  Tensor x = here({1, 2, 3});
  Plans plans;
  for (int i = 0; i < 3; ++i) {
    (w * x).square().sum().backward();
    opt.step();
  }
  CHECK(plans.count() == 1);
}

TEST_CASE("a program that never asks for a value stays bounded: recording is flushed") {
  Tensor a = here({1, 2}), x = a;
  Runs runs;
  for (int i = 0; i < 450000; ++i) x = -x;
  CHECK(runs.count() >= 1);
  CHECK(numbers(x) == V{1, 2});
}

TEST_CASE(
    "a loop over large batches that reads no result holds few of them: recording is flushed") {
  Device device("cpu");
  device.reset_peak_memory();
  const size_t before = device.memory().in_use;
  std::vector<float> batch(4 << 20);
  Tensor total = here({0});
  Runs runs;
  for (int i = 0; i < 100; ++i) {
    batch.back() = static_cast<float>(i);
    total = total + from_data(batch.data(), {4 << 20}, device).amax();
  }
  CHECK(runs.count() >= 5);
  CHECK(device.memory().peak - before <= size_t{400} << 20);
  CHECK(total.item() == 99 * 50);
}

TEST_CASE("one row alone, normalised with separate weights, in place") {
  const int64_t n = 264;
  Tensor x = (arange(n, float32) * 0.01).eval_(), w = (arange(n, float32) * 0.5 - 3).eval_(),
         b = cos(arange(n, float32)).eval_();
  V values = numbers(x), want;
  double mean = 0, square = 0;
  for (double v : values) mean += v / n;
  for (double v : values) square += (v - mean) * (v - mean) / n;
  for (size_t i = 0; i < values.size(); ++i)
    want.push_back((values[i] - mean) / std::sqrt(square + 1e-5) *
                       (0.5 * static_cast<double>(i) - 3) +
                   std::cos(static_cast<double>(i)));
  CHECK(close(numbers(layer_norm(x, {n}, w, b)), want, 1e-4));
  x.copy_(layer_norm(x, {n}, w, b));
  CHECK(close(numbers(x), want, 1e-4));
  Tensor scaled = softmax(x, 0) * w;
  V p = numbers(softmax(x, 0)), got = numbers(scaled);
  for (size_t i = 0; i < p.size(); ++i)
    CHECK(got[i] == doctest::Approx(p[i] * (0.5 * static_cast<double>(i) - 3)).epsilon(1e-5));
}

TEST_CASE(
    "where() into what it keeps changes the chosen rows alone, whoever else is written with it") {
  Tensor x = arange(40, float32).view({5, 8}).clone().eval_(),
         row = here({-1, -2, -3, -4, -5, -6, -7, -8});
  Tensor y = x.clone().eval_(), z = x.clone().eval_(), old = x.clone().eval_(),
         rows = arange(5).view({5, 1});
  V want = numbers(x), doubled, before = want;
  for (size_t i = 0; i < 8; ++i) want[16 + i] = -1.0 - static_cast<double>(i);
  for (double v : want) doubled.push_back(2 * v);
  x.copy_(where(rows == argument(2).to(int64), row, x));
  eval(x);
  CHECK(numbers(x) == want);
  Tensor chosen = where(rows == argument(2).to(int64), row, y),
         twice = chosen * 2;  // the whole value is read, too
  y.copy_(chosen);
  eval({y, twice});
  CHECK(numbers(y) == want);
  CHECK(numbers(twice) == doubled);
  Tensor kept = z * 1;  // and so is the old one
  z.copy_(where(rows == argument(2).to(int64), row, z));
  eval({z, kept});
  CHECK(numbers(z) == want);
  CHECK(numbers(kept) == before);
  CHECK(numbers(old) == before);
}

TEST_CASE("one place of a cache is written alone, and none where the number points past its ends") {
  for (DType t : {float32, float64, int32})
    for (double at : {0.0, 3.0, 4.0, 2.9, -0.5, -1.0, 5.0, 1e18}) {
      CAPTURE(at);
      const int64_t place = at > -1 && at < 5 ? static_cast<int64_t>(at) : -1;
      Tensor cache = arange(2 * 5 * 8).view({2, 5, 8}).to(t).eval_(),
             many = (arange(2 * 5 * 8).view({2, 5, 8}) * -3).to(t).eval_(),  // one for every place
          few = (arange(2 * 8).view({2, 1, 8}) * -1).to(t).eval_();          // one for all of them
      Tensor other = cache.clone().eval_();
      V whole = numbers(cache), want = whole, want_other = whole, of_many = numbers(many),
        of_few = numbers(few);
      for (size_t i = 0; place >= 0 && i < 2; ++i)
        for (size_t d = 0; d < 8; ++d) {
          const size_t to = (i * 5 + static_cast<size_t>(place)) * 8 + d;
          want[to] = 2 * of_many[to];
          want_other[to] = of_few[i * 8 + d];
        }
      auto chosen = [&] { return (arange(5) == argument(at).to(int64)).view({1, 5, 1}); };
      cache.copy_(where(chosen(), many * 2, cache));
      other.copy_(where(chosen(), few, other));
      eval({cache, other});
      CHECK(numbers(cache) == want);
      CHECK(numbers(other) == want_other);
    }
}

TEST_CASE("each backward() without step() ends a segment, which the next forward runs") {
  Tensor w = parameter({1, 2}), x = here({3, 4});
  Runs runs;
  (w * x).sum().backward();
  CHECK(runs.count() == 0);
  Tensor next = w * x;
  CHECK(runs.count() == 1);
  next.sum().backward();
  CHECK(numbers(w.grad()) == V{6, 8});
}

// ---- A Tensor is a shared pointer to a cell

TEST_CASE("copying a Tensor shares the cell: an in-place call is seen by all copies") {
  Tensor x = here({1, 2, 3}), y = x;
  y += 1;
  CHECK(numbers(x) == V{2, 3, 4});
  x *= 2;
  CHECK(numbers(y) == V{4, 6, 8});
}

TEST_CASE("assigning to a name rebinds the name only") {
  Tensor x = here({1, 2}), y = x;
  x = x + 1;
  CHECK(numbers(x) == V{2, 3});
  CHECK(numbers(y) == V{1, 2});
}

TEST_CASE("a loop over copies of the parameters updates the model") {
  std::vector<Tensor> model{parameter({1, 2}), parameter({3})};
  (model[0].sum() * model[1]).sum().backward();
  {
    NoGrad guard;
    for (Tensor p : model) p -= 0.5 * p.grad();
  }
  CHECK(numbers(model[0]) == V{-0.5, 0.5});
  CHECK(numbers(model[1]) == V{1.5});
  CHECK(model[0].is_leaf());
  CHECK(model[0].requires_grad());
}

TEST_CASE("a clone has a new cell and a new value") {
  Tensor x = here({1, 2}), y = x.clone();
  x += 1;
  CHECK(numbers(y) == V{1, 2});
  y += 10;
  CHECK(numbers(x) == V{2, 3});
}

// ---- In place on a view

TEST_CASE("x[i] = v writes through to the base") {
  for (bool early : {false, true}) {
    Tensor x = arange(6, float32).view({2, 3}).clone(), copy = x;
    if (early) eval(x);
    x[0] = 9;
    x[{1, 2}] = -1;
    CHECK(numbers(copy) == V{9, 9, 9, 3, 4, -1});
    x[-1] += 1;
    CHECK(numbers(copy) == V{9, 9, 9, 4, 5, 0});
  }
}

TEST_CASE("x.view(-1)[0] = v writes through two views") {
  Tensor x = here({1, 2, 3, 4}).view({2, 2}).clone();
  x.view(-1)[0] = 7;
  x.view(-1)[Slice{2, {}, {}}] *= 10;
  CHECK(numbers(x) == V{7, 2, 30, 40});
}

TEST_CASE("a transposed view writes through") {
  Tensor x = arange(6, float32).view({2, 3}).clone();
  Tensor t = x.t();
  t[0] = tensor({10, 20});
  CHECK(numbers(x) == V{10, 1, 2, 20, 4, 5});
  x.permute({1, 0})[{2, 1}] = 7;
  CHECK(numbers(x) == V{10, 1, 2, 20, 4, 7});
}

TEST_CASE("slices with steps write through, forwards and backwards") {
  Tensor x = zeros({7});
  x[Slice{1, {}, 2}] = 1;
  x[Slice{{}, {}, -3}] += tensor({10, 20, 30});
  CHECK(numbers(x) == V{30, 1, 0, 21, 0, 1, 10});
}

TEST_CASE("nested views write through to the first base") {
  Tensor x = zeros({4, 4});
  Tensor block = x[{Slice{1, 3, {}}, Slice{1, 3, {}}}];
  Tensor row = block.t()[1];
  row[0] = 5;
  row += 1;
  V want(16, 0);
  want[4 + 2] = 6, want[8 + 2] = 1;
  CHECK(numbers(x) == want);
  CHECK(numbers(row) == V{6, 1});
}

TEST_CASE("views taken earlier show what was written to their base") {
  for (bool early : {false, true}) {
    Tensor x = here({1, 2, 3});
    Tensor before = x[Slice{0, 2, {}}];
    if (early) eval(before);
    x += 10;
    CHECK(numbers(before) == V{11, 12});
    before *= 2;
    CHECK(numbers(x) == V{22, 24, 13});
    x -= 11;
    CHECK(numbers(before) == V{11, 13});
    CHECK(numbers(x[Slice{0, 2, {}}]) == V{11, 13});
  }
}

TEST_CASE("a view that is written to shows the new value, and so do its siblings") {
  Tensor x = here({1, 2, 3}), a = x[Slice{0, 2, {}}], b = x[Slice{0, 2, {}}];
  a += 1;
  CHECK(numbers(a) == V{2, 3});
  CHECK(numbers(b) == V{2, 3});
  CHECK(numbers(x) == V{2, 3, 3});
  b += 10;
  CHECK(numbers(a) == V{12, 13});
  CHECK(numbers(b) == V{12, 13});
  CHECK(numbers(x) == V{12, 13, 3});
}

TEST_CASE("a view whose elements are one element of the base cannot be written to") {
  Tensor x = here({1, 2}).view({2, 1}).clone(), wide = x.expand({2, 3});
  CHECK(kind_of([&] { wide += 1; }) == ErrorKind::State);
  CHECK(numbers(x) == V{1, 2});
}

TEST_CASE("a slice written in a loop costs neither a copy of the base nor another plan") {
  Tensor x = zeros({64, 16}, "cpu:6").eval_(), v = ones({16}, "cpu:6").eval_();
  auto write = [&](int64_t i) {
    x[i] = v * static_cast<double>(2);
    eval(x);
  };
  write(3);
  size_t in_use = Device("cpu:6").memory().in_use, count = Device("cpu:6").memory().allocations;
  for (int i = 0; i < 5; ++i) write(3);
  CHECK(Device("cpu:6").memory().in_use == in_use);
  CHECK(Device("cpu:6").memory().allocations == count);
  CHECK(x.sum().item() == 32);
}

TEST_CASE("nodes are immutable: a gradient never sees a changed value") {
  Tensor x = parameter({2, 3});
  Tensor h = x * 1.0, y = (h * h).sum();
  h += 100;
  y.backward();
  CHECK(numbers(x.grad()) == V{4, 6});
  CHECK(numbers(h) == V{102, 103});
}

TEST_CASE("gradients flow through writes to a view") {
  Tensor w = parameter({2, 3}), x = zeros({2, 2});
  x[0] = w * 2;
  x[{1, 1}] = w.sum();
  (x * x).sum().backward();  // 4 w0^2 + 4 w1^2 + (w0 + w1)^2
  CHECK(numbers(w.grad()) == V{26, 34});
}

// ---- What a run computes

TEST_CASE("a run computes every pending value that a live handle names: nothing twice") {
  Tensor a = here({1, 2, 3}).to("null").eval_();
  Tensor h = exp(a), left = h.sum(), right = (h + 1).sum();
  NullLaunches launches;
  eval(left);
  CHECK(is_computed(h));
  CHECK(launches.take() > 0);
  eval({h, right});
  CHECK(launches.take() == 0);
}

TEST_CASE("what no handle names is not computed for its own sake") {
  Tensor a = here({1, 2, 3}), sum;
  {
    Tensor h = exp(a);
    sum = h.sum();
  }
  Explanation e = explain(sum);
  CHECK(e.generated == 1);
  CHECK(e.bytes_written == sizeof(float));
}

TEST_CASE("a kept loss can be printed after step() without another run") {
  Tensor w = parameter({1, 2}), x = here({3, 4});
  optim::SGD opt({w}, {.lr = 0.1});
  Tensor loss = (w * x).sum();
  loss.backward();
  opt.step();
  Runs runs;
  CHECK(loss.item() == 11);
  CHECK(runs.count() == 0);
}

TEST_CASE("item() may be called anywhere: the numbers stay the same") {
  auto train = [](int place) {
    Tensor w = parameter({1, 2}), x = here({3, 4});
    optim::AdamW opt({w}, {.lr = 0.1});
    for (int i = 0; i < 3; ++i) {
      Tensor h = w * x, loss = (h * h).mean();
      if (place == 1) (void)h.sum().item();
      if (place == 2) (void)loss.item();
      loss.backward();
      if (place == 3) (void)loss.item();
      if (place == 4) (void)w.grad().sum().item();
      opt.step();
      if (place == 5) (void)w.sum().item();
    }
    return numbers(w);
  };
  V want = train(0);
  for (int place = 1; place <= 5; ++place) {
    CAPTURE(place);
    CHECK(train(place) == want);
  }
}

TEST_CASE("constants and views of computed values stay pending though a handle lives") {
  Tensor a = here({1, 2, 3, 4}), one = ones({1000}), part = a[Slice{1, 3, {}}],
         square = a.view({2, 2}).t();
  Tensor sum = a.sum();
  Runs runs;
  eval(sum);
  CHECK(runs.count() == 1);
  CHECK(!is_computed(one));
  CHECK(!is_computed(part));
  CHECK(!is_computed(square));
  synchronize();
  CHECK(runs.count() == 1);
  CHECK(numbers(part) == V{2, 3});
  CHECK(numbers(square) == V{1, 3, 2, 4});
}

TEST_CASE("a handle on a view of a pending value keeps that value") {
  Tensor a = here({1, 2, 3}), view;
  view = exp(a)[Slice{1, {}, {}}];
  Tensor sum = view.sum();
  eval(sum);
  Runs runs;
  CHECK(view.sum().item() == doctest::Approx(std::exp(2) + std::exp(3)));
  CHECK(runs.count() == 1);
  Explanation e = explain(view + 0.5);
  CHECK(e.text.find("exp") == std::string::npos);
}

TEST_CASE("explain lists every value kept for a live handle, with bytes and line") {
  Tensor a = here({1, 2, 3, 4});
  int line = __LINE__ + 1;
  Tensor kept = exp(a);
  Tensor sum = (kept * 2).sum();
  Explanation e = explain(sum);
  std::string mark = "semantics_test.cpp:" + std::to_string(line) + ")";
  size_t at = e.text.find(mark);
  REQUIRE(at != std::string::npos);
  std::string entry = e.text.substr(e.text.rfind('\n', at) + 1, at - e.text.rfind('\n', at));
  CHECK(entry.find("kept: exp") != std::string::npos);
  CHECK(entry.find("16 B") != std::string::npos);
  CHECK(!is_computed(kept));
  CHECK(explain(std::vector<Tensor>{}).text.find("kept") != std::string::npos);
}

TEST_CASE("explain's peak is the measured peak") {
  Device d("cpu:5");
  d.synchronize();
  Generator g(1);
  Tensor w1 = randn({64, 96}, d, g).eval_(), w2 = randn({96, 32}, d, g).eval_(),
         x = randn({40, 64}, d, g).eval_();
  w1.requires_grad_(), w2.requires_grad_();
  Tensor loss = softmax(matmul(gelu(matmul(x, w1)), w2), 1).square().sum();
  loss.backward();
  std::vector<Tensor> all{loss, w1.grad(), w2.grad()};
  size_t predicted = explain(all).peak_bytes;
  release_memory(d);
  d.reset_peak_memory();
  size_t before = d.memory().in_use;
  eval(all);
  CHECK(d.memory().peak - before == predicted);
}

TEST_CASE("what survives a run is never in the arena") {
  Device d("cpu:5");
  Tensor x = arange(64, {float32, d}).eval_();
  Tensor y = exp(x * 0.01), z = softmax(y.view({8, 8}), 1);
  eval(z);
  V first = numbers(y), second = numbers(z);
  for (int i = 0; i < 3; ++i)
    (x.view({8, 8}).matmul(x.view({8, 8})) * static_cast<double>(i)).sum().item();
  release_memory(d);
  CHECK(numbers(y) == first);
  CHECK(numbers(z) == second);
}

// ---- Values that change every step

TEST_CASE("learning rate, Adam's t and arguments change without another plan") {
  Tensor w = parameter({1, 2}), x = here({3, 4});
  optim::AdamW opt({w}, {.lr = 0.1});
  auto step = [&](int i) {
    opt.set_lr(0.1 / (1 + i));
    (w * x * argument(1.0 + i)).square().sum().backward();
    opt.step();
  };
  step(0);
  Plans plans;
  V last = numbers(w);
  for (int i = 1; i < 10; ++i) {
    step(i);
    V now = numbers(w);
    CHECK(now != last);
    last = now;
  }
  CHECK(plans.count() == 0);
}

TEST_CASE("random offsets make no new plan and give different numbers") {
  manual_seed(3);
  auto draw = [] { return numbers(rand({8}) + randn({8})); };
  V first = draw();
  Plans plans;
  V second = draw();
  CHECK(first != second);
  CHECK(plans.count() == 0);
  manual_seed(3);
  CHECK(draw() == first);
  CHECK(draw() == second);
}

TEST_CASE("random numbers do not depend on what runs together with them") {
  manual_seed(4);
  Tensor a = rand({5}), b = rand({5});
  V va = numbers(a), vb = numbers(b);
  manual_seed(4);
  Tensor c = rand({5});
  V vc = numbers(c);
  Tensor d = rand({5});
  CHECK(vc == va);
  CHECK(numbers(d) == vb);
}

TEST_CASE(
    "a dropout that is recorded keeps its mask, forward and backward, whatever is drawn between") {
  manual_seed(5);
  Tensor x = parameter(V(64, 1.0));
  Tensor y = dropout(x, 0.5);
  (void)rand({100}).sum().item();
  y.sum().backward();
  CHECK(numbers(x.grad()) == numbers(y));
}

TEST_CASE("pow(x, 2) is rewritten when it is recorded, and another exponent is another plan") {
  Tensor a = here({1, 2, 3});
  CHECK(numbers(pow(a, 2)) == V{1, 4, 9});
  CHECK(numbers(pow(a, 3)) == V{1, 8, 27});
  CHECK(numbers(pow(a, 0.5).square())[2] == doctest::Approx(3));
}

// ---- Second opinions

TEST_CASE("every op at its line (set_eager), unfused (set_fusion) and lazily fused give the same") {
  auto program = [] {
    manual_seed(9);
    Tensor w = parameter({0.5, -1, 2, 1}), x = arange(12, float32).view({3, 4}) / 6;
    optim::AdamW opt({w}, {.lr = 0.05});
    V all;
    for (int i = 0; i < 3; ++i) {
      Tensor h = softmax(dropout(x * w, 0.25), 1), y = h.clone();
      y[{Slice{}, 0}] *= 2;
      Tensor loss = (y.t().matmul(h) - eye(4)).square().mean();
      loss.backward();
      opt.step();
      all.push_back(loss.item());
    }
    for (double v : numbers(w)) all.push_back(v);
    return all;
  };
  V want = program();
  {
    Switch eager(set_eager, true, false);
    CHECK(close(program(), want));
  }
  {
    Switch unfused(set_fusion, false, true);
    CHECK(close(program(), want));
    Switch eager(set_eager, true, false);
    CHECK(close(program(), want));
  }
  CHECK(program() == want);
}

TEST_CASE("eagerly, each op has run at the next line") {
  Switch eager(set_eager, true, false);
  Tensor a = here({1, 2, 3});
  Runs runs;
  Tensor b = exp(a);
  CHECK(is_computed(b));
  CHECK(runs.take() == 1);
  a += 1;
  CHECK(is_computed(a));
  CHECK(numbers(b[Slice{1, {}, {}}] + 1)[0] == doctest::Approx(std::exp(2) + 1));
}

// ---- Odd sizes

TEST_CASE("tensors without elements go through everything") {
  Tensor x = zeros({0, 3}), w = parameter({1, 2, 3});
  Tensor y = (x * w).sum(0);
  y.sum().backward();
  CHECK(numbers(y) == V{0, 0, 0});
  CHECK(numbers(w.grad()) == V{0, 0, 0});
  CHECK(x.to_vector<float>().empty());
  CHECK((x + 1).eval_().shape() == Dims{0, 3});
  x += 1;
  x[Slice{0, 0, {}}] = 2;
  CHECK(x.numel() == 0);
  CHECK(numbers(matmul(zeros({2, 0}), zeros({0, 2}))) == V{0, 0, 0, 0});
  CHECK(cat({x, ones({1, 3})}, 0).shape() == Dims{1, 3});
}

TEST_CASE("eight dims: views, broadcasts, reductions, writes, gradients") {
  Dims dims{2, 1, 3, 1, 2, 1, 2, 2};
  Tensor x = arange(48, float32).view(dims).clone();
  Tensor y = x.permute({7, 6, 5, 4, 3, 2, 1, 0}) + ones({2, 1, 1, 1, 1, 1, 1, 1});
  CHECK(y.shape() == Dims{2, 2, 1, 2, 1, 3, 1, 2});
  CHECK(y.sum().item() == 47 * 48 / 2 + 48);
  x[{1, 0, 2, 0, 1, 0, 1, 1}] = 1000;
  CHECK(x.amax().item() == 1000);
  Tensor w = ones(dims).eval_();
  w.requires_grad_();
  (w.expand({2, 4, 3, 1, 2, 1, 2, 2}) * x).sum({0, 2, 4}).square().sum().backward();
  CHECK(w.grad().shape() == dims);
}
