// What only a GPU shows. Skipped where there is none. Each case prints a line; the order is from
// simple to whole.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>

#include "ingot/ingot.h"
#include "ingot/models.h"
#include "neural/lstm_check.h"
#include "plugin/conv_cases.h"
#include "plugin/library_cases.h"
#include "runtime/backend.h"
#include "runtime/storage.h"

using namespace ingot;
using namespace ingot::test;

namespace {

bool no_gpu() {
  if (backend_for(DeviceType::CUDA)) return false;
  std::printf("skipped, no GPU: %s\n", missing_reason(DeviceType::CUDA).c_str());
  return true;
}
Backend& gpu() { return *backend_for(DeviceType::CUDA); }
double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double d = 0, n = 0;
  for (size_t i = 0; i < a.size(); ++i)
    d += std::pow(double(a[i]) - b[i], 2), n += std::pow(double(b[i]), 2);
  return std::sqrt(d / std::max(n, 1e-30));
}

}  // namespace

TEST_CASE("a: device, memory, copies") {
  if (no_gpu()) return;
  Backend& b = gpu();
  DeviceRates r = b.rates(0);
  std::printf("a: %d device(s); %s, predicted %.0f GB/s, %.0f TFLOP/s in 16 bits, %.1f GiB free\n",
              b.device_count(), r.name.c_str(), r.memory_gbs, r.flops_16 / 1e12,
              double(b.free_memory(0)) / (1 << 30));
  size_t n = size_t{256} << 20;
  std::vector<char> in(n), out(n);
  for (size_t i = 0; i < n; ++i) in[i] = static_cast<char>(i * 2654435761u >> 7);
  void *p = b.allocate(0, n), *q = b.allocate(0, n);
  double t0 = now();
  b.copy_from_host(0, p, in.data(), n);
  b.synchronize(0);
  double t1 = now();
  for (int i = 0; i < 20; ++i) b.copy_on_device(0, q, p, n);
  b.synchronize(0);
  double t2 = now();
  b.copy_to_host(0, out.data(), q, n);
  double t3 = now();
  CHECK(in == out);
  std::printf("a: host to device %.1f GB/s, device to host %.1f GB/s, on the device %.0f GB/s\n",
              double(n) / (t1 - t0) / 1e9, double(n) / (t3 - t2) / 1e9,
              40.0 * double(n) / (t2 - t1) / 1e9);
  b.deallocate(0, p, n);
  b.deallocate(0, q, n);
  CHECK(b.allocate(0, size_t{1} << 42) == nullptr);
}

TEST_CASE("b: library calls with random strides") {
  if (no_gpu()) return;
  std::mt19937 gen(2);
  int bad = 0, count = 600;
  for (int n = 0; n < count; ++n) {
    LibrarySpec s = n % 6 == 5 ? random_scatter(gen, n % 12 == 5) : random_matmul(gen, n % 6 < 4);
    if (n % 5 == 1) s = n % 2 ? random_gelu_matmul(gen) : random_bias_gradient(gen);
    if (n % 20 == 2) s = random_relu_gradient(gen);
    if (n >= 300)
      s = n % 3 == 0   ? random_write(gen, n % 2, n % 4 == 3)
          : n % 3 == 1 ? random_scan(gen, n % 2 ? 200000 : 700)
                       : random_sort(gen, n % 2 ? 200000 : 2048);
    CAPTURE(n);
    CAPTURE(to_string(s));
    int64_t extent = index_extent(s);
    CallMemory got(s, 3, extent), want = got;
    reference(s, want);
    run_call(gpu(), s, got);
    std::string wrong = difference(s, got, want);
    CHECK(wrong == "");
    bad += !wrong.empty();
  }
  std::printf("b: %d of %d library calls right\n", count - bad, count);
}

TEST_CASE("c: products of every shape family against float64") {
  if (no_gpu()) return;
  Device d("cuda");
  struct Shape {
    int64_t b, m, k, n;
    bool ta, tb;
  };
  for (DType t : {float64, float32, float16, bfloat16})
    for (Shape s : {Shape{1, 256, 512, 384, false, false},
                    {1, 256, 512, 384, true, false},
                    {1, 256, 512, 384, false, true},
                    {6, 64, 128, 96, false, true},
                    {1, 1, 300, 70, false, false},
                    {1, 333, 77, 1, false, false},
                    {3, 65, 33, 129, true, true}}) {
      auto make = [&](int64_t r, int64_t c, bool transposed) {
        Tensor x = s.b > 1 ? randn(transposed ? Dims{s.b, c, r} : Dims{s.b, r, c})
                           : randn(transposed ? Dims{c, r} : Dims{r, c});
        x = x.to(t);
        eval(x);
        return std::pair<Tensor, bool>(x, transposed);
      };
      auto a = make(s.m, s.k, s.ta), b = make(s.k, s.n, s.tb);
      auto product = [&](const Device& where, DType as) {
        Tensor x = a.first.to(as).to(where), y = b.first.to(as).to(where);
        if (s.ta) x = x.transpose(-1, -2);
        if (s.tb) y = y.transpose(-1, -2);
        return x.matmul(y).to(float32).to("cpu").to_vector<float>();
      };
      double e = distance(product(d, t), product("cpu", float64));
      double most = t == bfloat16 ? 5e-3 : t == float16 ? 1e-3 : 1e-6;
      CHECK_MESSAGE(e < most, name_of(t), " ", s.b, "x", s.m, "x", s.k, "x", s.n, ": ", e);
    }
  std::printf("c: products compared\n");
}

namespace {

std::vector<float> losses(const Device& device, int steps) {
  manual_seed(3);
  set_default_device("cpu");
  nn::Linear a(32, 64), b(64, 8);
  Tensor x = randn({48, 32}), y = randint(0, 8, {48});
  eval({x, y});
  a.to(device);
  b.to(device);
  x = x.to(device);
  y = y.to(device);
  std::vector<Tensor> p = a.parameters();
  for (const Tensor& t : b.parameters()) p.push_back(t);
  optim::AdamW opt(p, {.lr = 0.01});
  std::vector<float> out;
  for (int i = 0; i < steps; ++i) {
    opt.zero_grad();
    Tensor loss = cross_entropy(b(gelu(a(x))), y);
    loss.backward();
    opt.set_lr(0.01 / (1 + 0.1 * i));
    opt.step();
    out.push_back(static_cast<float>(loss.item()));
  }
  return out;
}

}  // namespace

TEST_CASE("d: a training loop gives the CPU's curve, and the same bits twice") {
  if (no_gpu()) return;
  std::vector<float> cpu = losses("cpu", 50), one = losses("cuda", 50), two = losses("cuda", 50);
  double e = distance(one, cpu);
  CHECK(e < 1e-4);
  CHECK(one == two);
  std::printf("d: 50 steps: distance to the CPU %.2e, %s twice\n", e,
              one == two ? "same bits" : "DIFFERENT BITS");
}

TEST_CASE("e: an index error is raised and the context lives on") {
  if (no_gpu()) return;
  Device d("cuda");
  Tensor table = arange(0, 12).to(float32).reshape({6, 2}).to(d);
  auto pick = [&](std::vector<int64_t> at) {
    return table.index_select(0, from_data(at.data(), {static_cast<int64_t>(at.size())}).to(d))
        .sum()
        .item();
  };
  CHECK(pick({1, 2, 5}) == 35);
  CHECK_THROWS_AS(pick({1, 2, 6}), Error);
  CHECK(pick({0, 0, 1}) == 7);
  std::printf("e: index error raised, next run well\n");
}

TEST_CASE("f: two threads, and 5000 steps with flat memory") {
  if (no_gpu()) return;
  auto work = [](double* out) {
    set_default_device("cuda");
    Tensor x = ones({1000});
    for (int i = 0; i < 200; ++i) {
      x = x * 1.01;
      if (i % 10 == 0) eval(x);
    }
    *out = x.sum().item();
  };
  double a = 0, b = 0;
  std::thread t1(work, &a), t2(work, &b);
  t1.join();
  t2.join();
  CHECK(a == b);
  set_default_device("cuda");
  Tensor w = randn({256, 256}), x = randn({256, 256});
  eval({w, x});
  size_t early = 0;
  double begin = now();
  for (int i = 0; i < 5000; ++i) {
    w = (w * 0.999 + tanh(x) * 0.001);
    eval(w);
    if (i == 100) early = gpu().free_memory(0);
  }
  w.sum().item();
  std::printf(
      "f: threads agree; 5000 steps at %.1f us, free memory moved by %lld KiB\n",
      (now() - begin) / 5000 * 1e6,
      (static_cast<long long>(early) - static_cast<long long>(gpu().free_memory(0))) / 1024);
  CHECK(early <= gpu().free_memory(0) + (4 << 20));
  set_default_device("cpu");
}

TEST_CASE("g: attention in 16 bits, with masks and grouped heads, against float32 on the CPU") {
  if (no_gpu()) return;
  struct Form {
    const char* name;
    bool causal, additive, boolean, grouped;
  };
  const int64_t B = 2, H = 4, T = 256, D = 64;
  for (Form f : {Form{"plain", false, false, false, false},
                 {"causal", true, false, false, false},
                 {"additive", false, true, false, false},
                 {"boolean", false, false, true, false},
                 {"grouped", true, false, false, true}}) {
    CAPTURE(f.name);
    manual_seed(5);
    int64_t heads = f.grouped ? 2 : H;
    Tensor q = randn({B, H, T, D}).to(bfloat16), k = randn({B, heads, T, D}).to(bfloat16),
           v = randn({B, heads, T, D}).to(bfloat16);
    Tensor g = randn({B, H, T, D}).to(bfloat16), mask;
    if (f.additive) mask = randn({1, H, T, T}).to(bfloat16);
    if (f.boolean) mask = (rand({B, 1, T, T}) > 0.3) | eye(T).to(DType::Bool);
    eval({q, k, v, g});
    auto run = [&](Device d, DType t, bool gradients) {
      Tensor a = q.to(d).to(t), b = k.to(d).to(t), c = v.to(d).to(t);
      for (Tensor* x : {&a, &b, &c}) *x = x->detach().requires_grad_(gradients);
      AttentionOptions o;
      o.is_causal = f.causal;
      o.enable_gqa = f.grouped;
      if (mask.defined()) o.mask = f.boolean ? mask.to(d) : mask.to(d).to(t);
      Tensor y = scaled_dot_product_attention(a, b, c, o);
      std::vector<Tensor> all{y};
      if (gradients)
        for (const Tensor& x : grad({y}, {a, b, c}, {g.to(d).to(t)})) all.push_back(x);
      std::vector<std::vector<float>> out;
      for (const Tensor& x : all) out.push_back(x.to(float32).to(Device("cpu")).to_vector<float>());
      return out;
    };
    auto want = run(Device("cpu"), float32, true), got = run(Device("cuda"), bfloat16, true),
         alone = run(Device("cuda"), bfloat16, false);
    for (size_t i = 0; i < want.size(); ++i) {
      CAPTURE(i);
      CHECK(distance(got[i], want[i]) < 1e-2);
    }
    CHECK(distance(alone[0], want[0]) < 1e-2);
    std::printf("g: %-9s o %.1e dq %.1e dk %.1e dv %.1e\n", f.name, distance(got[0], want[0]),
                distance(got[1], want[1]), distance(got[2], want[2]), distance(got[3], want[3]));
  }
  // A head whose elements are not contiguous, which cuDNN does not take.
  NoGrad guard;
  manual_seed(6);
  Tensor q = randn({B, H, D, T}), k = randn({B, H, T, D});
  eval({q, k});
  auto run = [&](const Device& d, DType t) {
    Tensor a = q.to(d).to(t).eval_(), b = k.to(d).to(t).eval_();
    return scaled_dot_product_attention(a.transpose(2, 3), b, b)
        .to(float32)
        .to("cpu")
        .to_vector<float>();
  };
  const double apart = distance(run(Device("cuda"), bfloat16), run(Device("cpu"), float32));
  CHECK(apart < 1e-2);
  std::printf("g: apart     o %.1e\n", apart);
}

TEST_CASE("h: scans, sorts and writes by index agree with the CPU and take this long") {
  if (no_gpu()) return;
  Device d("cuda");
  Tensor x = randn({1 << 20}), m = randn({512, 4096}), wide = randn({64, 50257}),
         at = (rand({1 << 20}, float64) * (1 << 20)).to(int64);
  eval({x, m, wide, at});
  struct Row {
    const char* name;
    std::function<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&)> f;
    double near;
  };
  const Row rows[] = {
      {"cumsum of 2^20", [](auto& a, auto&, auto&, auto&) { return cumsum(a, 0); }, 1e-4},
      {"cumsum of 512 x 4096, dim 1", [](auto&, auto& b, auto&, auto&) { return cumsum(b, 1); },
       1e-4},
      {"cumsum of 512 x 4096, dim 0", [](auto&, auto& b, auto&, auto&) { return cumsum(b, 0); },
       1e-4},
      {"cummax of 2^20",
       [](auto& a, auto&, auto&, auto&) { return cummax(a, 0).indices.to(float32); }, 0},
      {"argsort of 2^20", [](auto& a, auto&, auto&, auto&) { return argsort(a, 0).to(float32); },
       0},
      {"argsort of 2^20 int64",
       [](auto&, auto&, auto&, auto& i) { return argsort(i, 0).to(float32); }, 0},
      {"argsort of 512 x 4096",
       [](auto&, auto& b, auto&, auto&) { return argsort(b, 1).to(float32); }, 0},
      {"topk 50 of 64 x 50257", [](auto&, auto&, auto& c, auto&) { return topk(c, 50).values; }, 0},
      {"scatter of 2^20", [](auto& a, auto&, auto&, auto& i) { return scatter(a, 0, i, a * 2.0); },
       0},
      {"scatter_add of 2^20",
       [](auto& a, auto&, auto&, auto& i) { return scatter_add(a, 0, i, a); }, 1e-5},
      {"searchsorted 2^20 in 2^20",
       [](auto& a, auto&, auto&, auto&) {
         return searchsorted(sort(a).values, a * 0.5).to(float32);
       },
       0},
      {"x[mask] of 2^20", [](auto& a, auto&, auto&, auto&) { return Tensor(a[a > 0]); }, 0},
      {"unique of 2^20",
       [](auto&, auto&, auto&, auto& i) { return unique(i % 1000).counts.to(float32); }, 0},
  };
  Tensor gx = x.to(d), gm = m.to(d), gw = wide.to(d), gi = at.to(d);
  eval({gx, gm, gw, gi});
  for (const Row& r : rows) {
    std::vector<float> want = r.f(x, m, wide, at).to_vector<float>(),
                       got = r.f(gx, gm, gw, gi).to_vector<float>();
    REQUIRE(want.size() == got.size());
    double off = distance(got, want);
    CHECK_MESSAGE(off <= r.near, r.name << ": off by " << off);
    double best = 1e9;
    for (int n = 0; n < 6; ++n) {
      synchronize();
      double t0 = now();
      eval(r.f(gx, gm, gw, gi));
      synchronize();
      best = std::min(best, now() - t0);
    }
    std::printf("h: %-30s %8.1f us, off by %.1e\n", r.name, best * 1e6, off);
  }
}

TEST_CASE(
    "i: a run that finds no memory says how much it wanted, and goes well once there is room") {
  if (no_gpu()) return;
  Device d("cuda");
  const size_t free = gpu().free_memory(0),
               left = free > (size_t{8} << 30) ? size_t{1} << 30 : size_t{1} << 24;
  const int64_t n = static_cast<int64_t>(left / 2);  // twice as many bytes as are left, in float32
  auto kept = [&] { return (arange(n, Options{float32, d}) * 0.0 + 1.0).eval_().amax().item(); };
  auto within = [&] {
    return (arange(n, Options{float32, d}) * 0.0 + 1.0).cumsum(0)[-1].item();
  };  // the arena's
  synchronize();
  const size_t taken = gpu().free_memory(0) - left;
  void* most = gpu().allocate(0, taken);
  REQUIRE(most != nullptr);
  std::string what;
  try {
    kept();
  } catch (const OutOfMemory& e) {
    what = e.what();
    CHECK(e.requested >= static_cast<size_t>(n) * 4);
  }
  CHECK(what.find(left >> 30 ? "no room for 2.00 GiB" : "no room for 32.00 MiB") !=
        std::string::npos);
  CHECK(what.find("free") != std::string::npos);
  CHECK_THROWS_AS(within(), OutOfMemory);
  CHECK(ones({1000}, d).sum().item() == 1000);  // what does fit continues
  gpu().deallocate(0, most, taken);
  CHECK(kept() == 1);
  CHECK(within() > 1 << 22);
  std::printf("i: %s; and well again with room\n", what.substr(0, 100).c_str());
}

TEST_CASE("j: what is repeated takes new inputs, new addresses and new shapes") {
  if (no_gpu()) return;
  Device d("cuda");
  Captured step = capture([](const std::vector<Tensor>& in) {
    Tensor y = tanh(in[0].matmul(in[1])) + in[0].sum();
    return std::vector<Tensor>{y, y.amax({0})};
  });
  int runs = 0;
  for (int i = 0; i < 60; ++i) {
    const int64_t rows = i < 20 ? 8 : 3 + i % 5;  // first one shape, then five in turn
    Tensor x = randn({rows, 16}), w = randn({16, 4});
    eval({x, w});
    Tensor ballast = i % 3 ? zeros({1000 + i}, d).eval_() : Tensor();  // so that addresses move
    auto plain = [&](const Tensor& a, const Tensor& b) { return tanh(a.matmul(b)) + a.sum(); };
    std::vector<float> want = plain(x, w).to_vector<float>();
    Tensor gx = x.to(d), gw = w.to(d);
    std::vector<float> once = plain(gx, gw).to_vector<float>(),
                       kept = step({gx, gw})[0].to_vector<float>();
    CHECK(distance(once, want) < 1e-4);
    CHECK(distance(kept, want) < 1e-4);
    runs += 2;
  }
  std::printf("j: %d runs of 6 shapes agree with the CPU\n", runs);
}

TEST_CASE("k: LSTMs in every type, with their gradients, against float64 on the CPU") {
  if (no_gpu()) return;
  const Device d("cuda");
  CHECK(lstm_recorded(8, d, bfloat16) == lstm_recorded(50, d, bfloat16));
  std::printf("k: float32 off by %.1e, bfloat16 by %.1e, float16 by %.1e\n",
              check_lstm(d, float32, float32, 1e-4), check_lstm(d, float32, bfloat16, 4e-2),
              check_lstm(d, float32, float16, 5e-3));
  for (int64_t gates : {3, 1})
    std::printf("k: %s float32 off by %.1e, bfloat16 by %.1e, float16 by %.1e\n",
                gates == 3 ? "GRUs" : "RNNs", check_lstm(d, float32, float32, 1e-4, gates),
                check_lstm(d, float32, bfloat16, 5e-2, gates),
                check_lstm(d, float32, float16, gates == 1 ? 2e-2 : 5e-3, gates));
  nn::LSTM layer(512, 1024);
  layer.to(d);
  Tensor x = randn({128, 64, 512}).to(d);
  eval(x);
  double best = 1e9;
  for (int n = 0; n < 6; ++n) {
    synchronize();
    const double t0 = now();
    {
      amp::Autocast scope(bfloat16);
      layer(x).output.to(float32).sum().backward();
    }
    std::vector<Tensor> gradients;
    for (const Tensor& p : layer.parameters()) gradients.push_back(p.grad());
    eval(gradients);
    synchronize();
    best = std::min(best, now() - t0);
    for (Tensor& p : layer.parameters()) p.zero_grad();
  }
  std::printf(
      "k: 128 steps of 64 x 1024 in bfloat16, forward and backward: %.0f us, %.1f us a step and "
      "way\n",
      best * 1e6, best * 1e6 / 256);
}

TEST_CASE("l: convolutions with batch norm, residual and ReLU as one call, against the CPU") {
  if (no_gpu()) return;
  const ConvInputs cpu = conv_inputs();
  NoGrad guard;
  for (DType t : {float32, float16, bfloat16}) {
    double farthest = 0;
    for (const ConvCase& c : conv_cases()) {
      CAPTURE(std::string(c.name));
      CAPTURE(std::string(name_of(t)));
      // The values of this type, computed in float64 on the CPU.
      const ConvInputs here = cpu.moved(Device("cpu"), t).moved(Device("cpu"), float64),
                       there = cpu.moved(Device("cuda"), t);
      const auto want = c.run(here).to(float32).to_vector<float>(),
                 got = c.run(there).to(float32).to("cpu").to_vector<float>();
      const double d = distance(got, want);
      CHECK(d < (t == float32 ? 1e-6 : t == float16 ? 2e-3 : 1.2e-2));
      farthest = std::max(farthest, d);
    }
    std::printf("l: %-8s farthest %.1e\n", std::string(name_of(t)).c_str(), farthest);
  }
  for (bool odd : {false, true})  // by cuDNN, and by cuDNN and a kernel
    for (bool relu : {false, true}) CHECK(residual_call_difference(gpu(), odd, relu) < 1e-3);
  // NaN stays NaN after a ReLU.
  Tensor x = full({1, 8, 6, 6}, NAN, {bfloat16, "cuda"}),
         w = zeros({8, 8, 3, 3}, {bfloat16, "cuda"}), b = zeros({8}, {bfloat16, "cuda"});
  eval({x, w, b});
  CHECK(std::isnan(relu(conv2d(x, w, b, 1, 1)).to(float32).sum().item()));
}

TEST_CASE("m: a ResNet at inference agrees with its unfused self and the CPU") {
  if (no_gpu()) return;
  manual_seed(3);
  models::ResNet model = models::resnet50({.num_classes = 10});
  {
    NoGrad guard;  // statistics and weights that norms have after training
    for (auto& [name, p] : model.named_parameters())
      if (name.find("bn") != std::string::npos || name.find("downsample.1") != std::string::npos)
        p.copy_(rand(p.shape()) * 0.5 + 0.5);
  }
  model.eval();
  NoGrad guard;
  Tensor x = randn({4, 3, 64, 64});
  const auto want = model(x).to_vector<float>();
  for (DType t : {float32, bfloat16}) {
    model.to(t);
    model.to("cuda");
    Tensor y = x.to(t).to("cuda");
    eval(y);
    const auto fused = model(y).to(float32).to("cpu").to_vector<float>();
    set_fusion(false);
    const auto plain = model(y).to(float32).to("cpu").to_vector<float>();
    set_fusion(true);
    const double d = distance(fused, want), p = distance(plain, want);
    std::printf("m: %-8s fused %.1e, unfused %.1e from float32 on the CPU\n",
                std::string(name_of(t)).c_str(), d, p);
    CHECK(d < (t == float32 ? 1e-4 : std::max(2 * p, 3e-2)));
    model.to("cpu");
  }
}

TEST_CASE("n: a training step maps what it is said to take") {
  if (no_gpu()) return;
  const Device d("cuda");
  auto train = [&](int64_t layers, int64_t batch) {
    models::GPT model(
        {.layers = layers, .heads = 12, .width = 768, .context = 512, .vocabulary = 8192});
    model.to(d);
    model.to(bfloat16);
    optim::AdamW optimiser(model.parameters(), {.lr = 1e-4, .master_weights = true});
    Tensor x = randint(0, 8192, {batch, 512}).to(d);
    for (int i = 0; i < 4; ++i) {
      cross_entropy(model(x).view({-1, 8192}).to(float32), x.view(-1)).backward();
      optimiser.step();
    }
    synchronize();
    return std::pair{static_cast<double>(d.memory().peak),
                     static_cast<double>(gpu().free_memory(0))};
  };
  train(1, 1);  // what libraries take for themselves is there now
  synchronize();
  (void)ArenaLease(d, size_t{256} << 20);  // large blocks that earlier cases have left go back
  release_arena(d);
  d.reset_peak_memory();
  const auto before = static_cast<double>(gpu().free_memory(0)),
             kept = static_cast<double>(d.memory().in_use);
  const auto [peak, free] = train(8, 16);
  std::printf("n: %.1f MiB at peak, %.1f MiB mapped beside the %.1f MiB that were there\n",
              (peak - kept) / 1048576, (before - free) / 1048576, kept / 1048576);
  CHECK(before - free > 0);
  CHECK(before - free <= 1.02 * peak);
}

TEST_CASE(
    "o: first convolutions of images over blocks of pixels, with their gradients, against "
    "float64") {
  if (no_gpu()) return;
  for (const Stem& f : stems()) {
    CAPTURE(f.channels);
    CAPTURE(f.window);
    const auto [y_far, g_far] = stem_distance(f, Device("cuda"));
    CHECK(y_far < 4e-3);
    CHECK(g_far < 1e-2);
    std::printf("o: %d channels, window %d: y %.1e, gradient %.1e\n", static_cast<int>(f.channels),
                static_cast<int>(f.window), y_far, g_far);
  }
}

TEST_CASE(
    "q: products of few rows, attention of one query, gradients of short attention, against "
    "float64") {
  if (no_gpu()) return;
  std::mt19937 gen(17);
  int bad = 0, count = 120;
  for (int n = 0; n < count; ++n) {
    LibrarySpec s = n % 2 ? random_row_attention(gen) : random_row_matmul(gen);
    CAPTURE(n);
    CAPTURE(to_string(s));
    CallMemory got(s, 3), want = got;
    n % 2 ? attention_reference(s, want) : reference(s, want);
    run_call(gpu(), s, got);
    std::string wrong = difference(s, got, want);
    CHECK(wrong == "");
    bad += !wrong.empty();
  }
  for (int n = 0; n < 12; ++n) {
    LibrarySpec s = random_short_attention(gen, 256);
    CAPTURE(to_string(s));
    CallMemory got(s, 3);
    short_attention(s, got);
    CallMemory want = got;
    short_attention_reference(s, want);
    run_call(gpu(), s, got);
    for (size_t i = 0; i < 3; ++i)
      CHECK(distance(s, i, got, want) < (s.operands[0].dtype == bfloat16 ? 6e-3 : 1e-3));
  }
  std::printf("q: %d of %d calls right\n", count - bad, count);
}

TEST_CASE(
    "p: the arena grows where it is, graphs captured before stay valid, and its memory comes "
    "back") {
  if (no_gpu()) return;
  const Device d("cuda");
  Tensor x = rand({256, 512}).to(d).to(bfloat16).eval_(),
         w = (rand({512, 512}) * 0.004).to(d).to(bfloat16).eval_();
  auto small = [&] {
    Tensor y = x;
    for (int i = 0; i < 6; ++i) y = y.matmul(w).tanh();
    // Attention's gradient clears memory on the way, which is not a kernel of ours.
    Tensor heads = y.reshape({2, 128, 8, 64}).transpose(1, 2).detach().requires_grad_();
    Tensor dy =
        grad({scaled_dot_product_attention(heads, heads, heads).to(float32).sum()}, {heads})[0];
    return y.to(float32).sum().item() + dy.to(float32).abs().sum().item();
  };
  // Attention's gradient adds up in any order: not every bit is the same each time.
  const doctest::Approx want = doctest::Approx(small()).epsilon(1e-3);
  release_arena(d);                        // what libraries take for themselves is there now
  (void)ArenaLease(d, size_t{256} << 20);  // and large blocks that are kept for later go back
  release_arena(d);
  const size_t empty = gpu().free_memory(0);
  for (int i = 0; i < 3; ++i) CHECK(small() == want);
  void* const at = ArenaLease(d, 1).data();
  REQUIRE(at != nullptr);
  const size_t sizes[] = {size_t{256} << 20, size_t{257} << 20,
                          std::min(empty / 4, size_t{16} << 30)};
  for (size_t bytes : sizes) {
    Tensor busy = randn({4096, 4096}).to(d).to(bfloat16).eval_();
    for (int i = 0; i < 8; ++i) busy = busy.matmul(busy) * 0.01;  // the device works meanwhile
    eval(busy);
    const double begin = now();
    void* grown = ArenaLease(d, bytes).data();
    std::printf("p: %5zu MiB in %.2f ms, %s\n", bytes >> 20, (now() - begin) * 1e3,
                grown == at ? "where it was" : "elsewhere");
    CHECK(grown == at);
    CHECK(small() == want);
    const size_t taken = empty - gpu().free_memory(0);
    CHECK(taken >= bytes);
    CHECK(static_cast<double>(taken) <=
          1.02 * static_cast<double>(bytes) + (512 << 20));  // and the tensors
  }
  synchronize();
  release_arena(d);
  CHECK(empty - gpu().free_memory(0) <= size_t{512} << 20);
  for (int i = 0; i < 3; ++i) CHECK(small() == want);
  CHECK(ArenaLease(d, 1).data() == at);
}
