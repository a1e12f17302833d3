// The semantics of memory, devices and captured functions, one tiny program per sentence.
#include "semantics.h"

using namespace ingot;
using namespace semantics;

// ---- Memory

TEST_CASE("out of memory is a typed error, nothing has changed, and a retry works") {
  Device d("cpu:3");
  Tensor w = parameter(V(1000, 1), d);
  optim::AdamW opt({w}, {.lr = 0.1});
  auto loss = [&] {
    return (w.view({1000, 1}) * w).exp().softmax(1).matmul(w.view({1000, 1})).sum();
  };  // 4 MB of temporaries
  V before = numbers(w);
  loss().backward();
  d.set_memory_limit(d.memory().in_use + 1000000);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      opt.step();
      FAIL("no error");
    } catch (const OutOfMemory& e) {
      CHECK(e.kind() == ErrorKind::OutOfMemory);
      CHECK(e.limit == d.memory().limit);
      CHECK(e.requested > 1000000);
      CHECK(std::string(e.what()).find("cpu:3") != std::string::npos);
    }
    CHECK(numbers(w) == before);
    CHECK(w.grad().defined());
  }
  d.set_memory_limit(0);
  opt.step();
  CHECK(numbers(w) != before);
  CHECK(!w.grad().defined());
}

TEST_CASE("a value that had no room stays pending and is there after the limit is lifted") {
  Device d("cpu:3");
  Tensor x = ones({1000}, d).eval_(), big;
  release_memory(d);
  d.set_memory_limit(d.memory().in_use + 1000);
  big = x.view({1000, 1}) + x;
  CHECK(kind_of([&] { eval(big); }) == ErrorKind::OutOfMemory);
  CHECK(!is_computed(big));
  d.set_memory_limit(0);
  CHECK(big.sum().item() == 2e6);
}

TEST_CASE("from_data and tensor() without room throw too") {
  Device d("cpu:3");
  release_memory(d);
  d.set_memory_limit(d.memory().in_use + 1000);
  CHECK(kind_of([&] { (void)tensor(V(1000), d).eval_(); }) == ErrorKind::OutOfMemory);
  CHECK(kind_of([&] { (void)zeros({1000}, d).eval_(); }) == ErrorKind::OutOfMemory);
  d.set_memory_limit(0);
  CHECK(zeros({1000}, d).sum().item() == 0);
}

TEST_CASE("an arena that is larger than it need be makes room before memory is said to be out") {
  Device d("cpu:3");
  Tensor a = ones({512, 512}, d).eval_();
  (void)exp(a).matmul(a).softmax(1).sum().item();
  REQUIRE(d.memory().arena > (1 << 20));
  size_t rest = d.memory().in_use - d.memory().arena;
  d.set_memory_limit(rest + (1 << 20) + 4096);
  Tensor b = a + 1;  // 1 MiB that fits only without the arena
  CHECK(kind_of([&] { eval(b); }) == std::optional<ErrorKind>{});
  d.set_memory_limit(0);
}

TEST_CASE("x = x + 1 in a loop allocates nothing new") {
  Device d("cpu:3");
  Tensor x = zeros({4096}, d).eval_();
  auto step = [&] {
    x = x + 1;
    eval(x);
  };
  step();
  size_t allocations = d.memory().allocations, in_use = d.memory().in_use;
  for (int i = 0; i < 10; ++i) step();
  CHECK(d.memory().allocations == allocations);
  CHECK(d.memory().in_use == in_use);
  CHECK(x[7].item() == 11);
}

TEST_CASE("a buffer that somebody else holds is not written over") {
  Tensor x = here({1, 2, 3}), old = x, view = x[Slice{1, {}, {}}], detached = x.detach();
  x = x + 1;
  eval(x);
  CHECK(numbers(old) == V{1, 2, 3});
  CHECK(numbers(view) == V{2, 3});
  CHECK(numbers(detached) == V{1, 2, 3});
}

TEST_CASE("a training loop allocates nothing new from the second step on") {
  Device d("cpu:3");
  Generator g(1);
  Tensor w = randn({32, 16}, d, g).eval_();
  w.requires_grad_();
  optim::AdamW opt({w}, {.lr = 0.01});
  Tensor x = randn({8, 32}, d, g).eval_();
  size_t allocations = 0;
  for (int i = 0; i < 6; ++i) {
    matmul(x, w).square().mean().backward();
    opt.step();
    if (i == 1) allocations = d.memory().allocations;
  }
  CHECK(d.memory().allocations == allocations);
}

// ---- Host memory

TEST_CASE("creating from host data copies") {
  std::vector<float> data{1, 2, 3};
  Tensor x = from_data(data.data(), {3});
  data[0] = 100;
  CHECK(numbers(x) == V{1, 2, 3});
}

TEST_CASE("wrap() reads and writes the caller's memory and says when it is done") {
  static int released;
  released = 0;
  std::vector<float> data{1, 2, 3};
  if (default_device().type() != DeviceType::CPU) {  // other memory than the host's says so
    CHECK(kind_of([&] { wrap(data.data(), {3}); }) == ErrorKind::Device);
    return;
  }
  {
    Tensor x = wrap(
        data.data(), {3}, {}, [](void* n) { ++*static_cast<int*>(n); }, &released);
    CHECK(numbers(x * 2) == V{2, 4, 6});
    Tensor y = x + 1;
    x = Tensor();
    CHECK(released == 0);
    CHECK(numbers(y) == V{2, 3, 4});
    y = Tensor();
    CHECK(released == 1);
  }
  CHECK(data == std::vector<float>{1, 2, 3});
  CHECK(kind_of([&] { (void)wrap(data.data(), {3}, "null"); }) == ErrorKind::Device);
}

// ---- Devices

TEST_CASE("cpu:0 and cpu:1 have separate memory") {
  Device a("cpu:7"), b("cpu:8");
  size_t ua = a.memory().in_use, ub = b.memory().in_use;
  Tensor x = zeros({1000}, a).eval_();
  CHECK(a.memory().in_use == ua + 4000);
  CHECK(b.memory().in_use == ub);
  Tensor y = x.to(b).eval_();
  CHECK(b.memory().in_use == ub + 4000);
  CHECK(y.device() == b);
}

TEST_CASE("one plan spans devices") {
  Tensor a = here({1, 2, 3}), b = here({4, 5, 6}, "cpu:1");
  Runs runs;
  Tensor c = exp(a).to("cpu:1") * b, d = c.sum().to(default_device()) + a;
  eval(d);
  CHECK(runs.count() == 1);
  double s = std::exp(1) * 4 + std::exp(2) * 5 + std::exp(3) * 6;
  CHECK(close(numbers(d), {s + 1, s + 2, s + 3}));
}

TEST_CASE("operands on different devices throw; 0-d tensors and numbers pass") {
  Tensor a = here({1, 2}), b = here({1, 2}, "cpu:1");
  CHECK(kind_of([&] { (void)(a + b); }) == ErrorKind::Device);
  CHECK(kind_of([&] { (void)matmul(a, b); }) == ErrorKind::Device);
  CHECK(kind_of([&] { a.copy_(b); }) == std::optional<ErrorKind>{});
  Tensor c = b * a.sum();
  CHECK(c.device() == Device("cpu:1"));
  CHECK(numbers(c) == V{3, 6});
  CHECK(numbers(b + 1) == V{2, 3});
}

TEST_CASE("to(device) is differentiable") {
  Tensor w = parameter({1, 2});
  Tensor y = (w.to("cpu:1") * here({3, 4}, "cpu:1")).sum();
  CHECK(y.device() == Device("cpu:1"));
  y.backward();
  CHECK(w.grad().device() == default_device());
  CHECK(numbers(w.grad()) == V{3, 4});
}

TEST_CASE("an index error on one device leaves the parameters of the other") {
  Tensor table = parameter({1, 2, 3, 4}), w = parameter({1, 1}, "cpu:1");
  optim::SGD opt({table, w}, {.lr = 1});
  Tensor rows = embedding(table.view({2, 2}), tensor({0, 2}));
  (rows.to("cpu:1") * w).sum().backward();
  CHECK(kind_after([&] { opt.step(); }) == ErrorKind::Index);
  CHECK(numbers(table) == V{1, 2, 3, 4});
  CHECK(numbers(w) == V{1, 1});
}

namespace {

V train_mlp(const std::vector<Device>& devices, int64_t batch) {
  Generator g(7);
  auto make = [&](const Dims& shape) {
    Tensor t = (randn(shape, {}, g) * 0.3).eval_();
    return t.requires_grad_();
  };
  Tensor w1 = make({16, 8}), b1 = make({16}), w2 = make({4, 16}), b2 = make({4});
  Tensor x = randn({batch, 8}, {}, g).eval_(), target = randint(0, 4, {batch}, {}, g).eval_();
  optim::SGD opt({w1, b1, w2, b2}, {.lr = 0.2, .momentum = 0.9});
  V losses;
  for (int i = 0; i < 10; ++i) {
    auto loss_of = [&](const std::vector<Tensor>& part) {
      return cross_entropy(linear(relu(linear(part[0], w1, b1)), w2, b2), part[1]);
    };
    Tensor loss = devices.empty() ? loss_of({x, target})
                                  : data_parallel(devices, opt.params(), {x, target}, loss_of);
    loss.backward();
    opt.step();
    losses.push_back(loss.item());
  }
  return losses;
}

}  // namespace

TEST_CASE("data_parallel trains to the single device's loss") {
  for (int64_t batch : {32, 33, 1}) {
    CAPTURE(batch);
    V one = train_mlp({}, batch), two = train_mlp({default_device(), "cpu:1"}, batch);
    for (size_t i = 0; i < one.size(); ++i) CHECK(two[i] == doctest::Approx(one[i]).epsilon(1e-6));
    CHECK(one.back() < one.front());
  }
  Plans plans;
  train_mlp({default_device(), "cpu:1"}, 32);
  CHECK(plans.count() == 0);
}

// ---- capture()

namespace {

struct Model {
  Generator g{5};
  Tensor w1 = make({24, 8}), w2 = make({3, 24});
  optim::AdamW opt{{w1, w2}, {.lr = 0.01}};
  Tensor make(const Dims& shape) {
    Tensor t = (randn(shape, {}, g) * 0.3).eval_();
    return t.requires_grad_();
  }
  Tensor step(const Tensor& x, const Tensor& target) {
    Tensor loss = cross_entropy(linear(dropout(relu(linear(x, w1)), 0.2), w2), target);
    loss.backward();
    opt.step();
    return loss;
  }
};

}  // namespace

TEST_CASE("a captured step equals the plain loop bit for bit, with dropout and a schedule") {
  auto train = [](bool captured) {
    manual_seed(8);
    Model m;
    Generator data(3);
    Captured fn = capture(
        [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{m.step(in[0], in[1])}; });
    V all;
    for (int i = 0; i < 20; ++i) {
      m.opt.set_lr(0.01 * (1 + std::cos(0.1 * i)));
      Tensor x = randn({16, 8}, {}, data), target = randint(0, 3, {16}, {}, data);
      all.push_back(captured ? fn({x, target})[0].item() : m.step(x, target).item());
    }
    for (double v : numbers(m.w1)) all.push_back(v);
    return all;
  };
  V want = train(false), got = train(true);
  CHECK(got == want);
}

TEST_CASE("a captured function records once per set of shapes") {
  int calls = 0;
  Captured fn = capture([&](const std::vector<Tensor>& in) {
    ++calls;
    return std::vector<Tensor>{in[0] * 2, in[0].sum()};
  });
  for (int i = 0; i < 3; ++i) {
    double d = i;
    CHECK(numbers(fn({here({d, 1, 2})})[0]) == V{2 * d, 2, 4});
    CHECK(numbers(fn({here({d, 1})})[1]) == V{d + 1});
  }
  CHECK(calls == 2);
  CHECK(numbers(fn({here({1, 2}).to(float64)})[0]) == V{2, 4});
  CHECK(calls == 3);
}

TEST_CASE("results of a captured function are the caller's: the next call does not change them") {
  Captured fn = capture([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0] + 1, in[0]};
  });
  Tensor x = here({1, 2});
  std::vector<Tensor> a = fn({x}), b = fn({here({5, 6})}), c = fn({here({7, 8})});
  CHECK(numbers(a[0]) == V{2, 3});
  CHECK(numbers(b[0]) == V{6, 7});
  CHECK(numbers(c[0]) == V{8, 9});
  CHECK(numbers(b[1]) == V{5, 6});
}

TEST_CASE(
    "a captured function distinguishes its inputs from each other and from what else it uses") {
  Tensor a = here({1, 2}), b = here({10, 20});
  Captured sum =
      capture([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2 + in[1]}; });
  CHECK(numbers(sum({a, a})[0]) == V{3, 6});
  CHECK(numbers(sum({a, b})[0]) == V{12, 24});
  CHECK(numbers(sum({b, b})[0]) == V{30, 60});
  Captured beside =
      capture([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + a}; });
  CHECK(numbers(beside({a})[0]) == V{2, 4});
  CHECK(numbers(beside({b})[0]) == V{11, 22});
}

TEST_CASE("a captured function may return a value twice, views of it, and state") {
  Tensor state = here({0, 0});
  Captured fn = capture([&](const std::vector<Tensor>& in) {
    Tensor y = in[0] + 1;
    state.copy_(state * 0.5 + in[0]);
    return std::vector<Tensor>{y, y, y.view({2, 1}), y.flip(0), state, ones({2})};
  });
  V mean{0, 0}, before;
  std::vector<Tensor> last;
  for (int i = 0; i < 4; ++i) {
    std::vector<Tensor> r = fn({here({1.0 * i, 2})});
    for (size_t k = 0; k < 3; ++k) CHECK(numbers(r[k]) == V{i + 1.0, 3});
    CHECK(numbers(r[3]) == V{3, i + 1.0});
    if (i > 1) CHECK(numbers(last[4]) == mean);
    mean = {mean[0] * 0.5 + i, mean[1] * 0.5 + 2};
    CHECK(numbers(r[4]) == mean);
    CHECK(numbers(state) == mean);
    CHECK(numbers(r[5]) == V{1, 1});
    last = r;
  }
}

TEST_CASE("what a captured function does to its inputs in place stays inside") {
  Captured fn = capture([](const std::vector<Tensor>& in) {
    Tensor x = in[0];
    x += 1;
    return std::vector<Tensor>{x * 2};
  });
  for (int i = 0; i < 3; ++i) {
    Tensor a = here({1, 2.0 * i});
    CHECK(numbers(fn({a})[0]) == V{4, 4.0 * i + 2});
    CHECK(numbers(a) == V{1, 2.0 * i});
  }
}

TEST_CASE("reading a value inside a captured function throws, and the function can be used after") {
  bool read = true;
  Captured fn = capture([&](const std::vector<Tensor>& in) {
    Tensor y = in[0] * 3;
    if (read) (void)y.sum().item();
    return std::vector<Tensor>{y};
  });
  CHECK(kind_of([&] { fn({here({1, 2})}); }) == ErrorKind::State);
  CHECK(!is_capturing());
  read = false;
  CHECK(numbers(fn({here({1, 2})})[0]) == V{3, 6});
  CHECK(numbers(fn({here({2, 3})})[0]) == V{6, 9});
  CHECK(kind_of([&] {
          Captured prints = capture([](const std::vector<Tensor>& in) {
            (void)in[0].to_string();
            return in;
          });
          prints({here({1})});
        }) == ErrorKind::State);
}

TEST_CASE("a captured function draws on from the generators it was given, and sees another seed") {
  Generator plain(4), used(4);
  auto body = [](const Generator& g) {
    return [&g](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{rand({3}, {}, g) + in[0]};
    };
  };
  Captured fn = capture(body(used));
  Tensor zero = here({0, 0, 0});
  auto same = [&] { return numbers(fn({zero})[0]) == numbers(body(plain)({zero})[0]); };
  CHECK(same());
  CHECK(same());
  (void)rand({5}, {}, plain);
  (void)rand({5}, {}, used);
  CHECK(same());
  plain.manual_seed(9);
  used.manual_seed(9);
  CHECK(same());
  CHECK(same());
}

TEST_CASE("an index error in a repetition is raised and changes nothing") {
  Tensor table = parameter({1, 2, 3, 4});
  optim::SGD opt({table}, {.lr = 1});
  Captured fn = capture([&](const std::vector<Tensor>& in) {
    Tensor loss = embedding(table.view({2, 2}), in[0]).sum();
    loss.backward();
    opt.step();
    return std::vector<Tensor>{loss};
  });
  CHECK(fn({tensor({0, 1})})[0].item() == 10);
  V before = numbers(table);
  try {
    fn({tensor({0, 2})});
    synchronize();
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::Index);
    CHECK(std::string(e.what()).find("semantics_devices_test.cpp") != std::string::npos);
  }
  CHECK(numbers(table) == before);
  CHECK(fn({tensor({0, 0})})[0].item() == 2 * (before[0] + before[1]));
}

TEST_CASE("what was pending before a captured call is no part of it") {
  Tensor x = here({1, 2}), before = exp(x);
  Captured fn =
      capture([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + 1}; });
  (void)fn({x});
  Runs runs;
  (void)fn({x});
  CHECK(runs.count() == 1);
  CHECK(numbers(before)[0] == doctest::Approx(std::exp(1)));
}

TEST_CASE("a captured update and the plain program share the parameters") {
  Tensor w = parameter({1, 2});
  optim::SGD opt({w}, {.lr = 1});
  Captured fn = capture([&](const std::vector<Tensor>& in) {
    (w * in[0]).sum().backward();
    opt.step();
    return std::vector<Tensor>{};
  });
  fn({here({1, 1})});
  CHECK(numbers(w) == V{0, 1});
  fn({here({1, 2})});
  CHECK(numbers(w) == V{-1, -1});
  {
    NoGrad guard;
    w += 10;
  }
  CHECK(numbers(w) == V{9, 9});
  fn({here({1, 2})});
  CHECK(numbers(w) == V{8, 7});
}

TEST_CASE("accumulation inside a captured function: every segment is repeated") {
  auto train = [](bool captured) {
    Tensor w = parameter({1, 2});
    optim::SGD opt({w}, {.lr = 0.1});
    auto body = [&](const std::vector<Tensor>& in) {
      for (int k = 0; k < 3; ++k) (w * in[0]).square().sum().backward();
      opt.step();
      return std::vector<Tensor>{};
    };
    Captured fn = capture(body);
    for (int i = 0; i < 5; ++i) {
      Tensor x = here({0.1 * i, 0.5});
      if (captured)
        fn({x});
      else
        body({x});
    }
    return numbers(w);
  };
  CHECK(train(true) == train(false));
}
