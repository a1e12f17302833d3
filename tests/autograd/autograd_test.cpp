// The rules of backward() and grad(): accumulation, modes, hooks, custom functions, checkpoints,
// errors. Values are read through the oracle, so that these tests say nothing about the compiler.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>

#include "graph/handle.h"
#include "graph/recorder.h"
#include "ingot/inplace.h"
#include "ingot/profile.h"
#include "support/op_check.h"

using namespace ingot;
using namespace ingot::check;

namespace {

std::vector<double> values(const Tensor& t) {
  oracle::Value v = expected(t);
  return is_float(v.dtype) ? v.f : std::vector<double>(v.i.begin(), v.i.end());
}
double value(const Tensor& t) { return values(t).at(0); }

Tensor leaf(const std::vector<double>& v) {
  Tensor t = tensor(v);
  t.requires_grad_();
  return t;
}

template <class F>
std::string message_of(F fn, ErrorKind kind) {
  try {
    fn();
  } catch (const Error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  FAIL("nothing was thrown");
  return "";
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("backward adds to the leaves' gradients") {
  Tensor x = leaf({1, 2, 3}), y = leaf({4, 5, 6});
  CHECK(!x.grad().defined());
  (x * y).sum().backward();
  CHECK(values(x.grad()) == std::vector<double>{4, 5, 6});
  CHECK(values(y.grad()) == std::vector<double>{1, 2, 3});
  Tensor held = x.grad();
  (x * 2.0).sum().backward();
  CHECK(values(x.grad()) == std::vector<double>{6, 7, 8});
  CHECK(values(held) == std::vector<double>{6, 7, 8});  // the gradient is one tensor that grows
  x.zero_grad();
  CHECK(!x.grad().defined());
  CHECK(values(held) == std::vector<double>{6, 7, 8});
}

TEST_CASE("a value used several times gets the sum of its gradients") {
  Tensor x = leaf({2, 3});
  Tensor y = x * x;
  (y * y + y + x).sum().backward();  // x^4 + x^2 + x
  CHECK(values(x.grad()) == std::vector<double>{4 * 8 + 4 + 1, 4 * 27 + 6 + 1});
}

TEST_CASE("a gradient can be given, and must be where the result is not one element") {
  Tensor x = leaf({1, 2});
  (x * 3.0).backward(tensor(std::vector<double>{1, 10}));
  CHECK(values(x.grad()) == std::vector<double>{3, 30});
  std::string m = message_of([&] { (x * 3.0).backward(); }, ErrorKind::Autograd);
  CHECK(has(m, "more than one element"));
  CHECK(has(m, "autograd_test.cpp"));
  message_of([&] { (x * 3.0).backward(tensor(std::vector<double>{1, 2, 3})); }, ErrorKind::Shape);
}

TEST_CASE("what does not require a gradient has no backward") {
  Tensor x = leaf({1, 2});
  CHECK(has(message_of(
                [&] {
                  tensor({1.0, 2.0}).sum().backward();
                },
                ErrorKind::Autograd),
            "requires_grad_()"));
  message_of([&] { x.detach().sum().backward(); }, ErrorKind::Autograd);
  {
    NoGrad guard;
    CHECK(!(x * 2.0).requires_grad());
    {
      EnableGrad on;
      CHECK((x * 2.0).requires_grad());
    }
    CHECK(!is_grad_enabled());
  }
  CHECK((x * 2.0).requires_grad());
  CHECK(!(x > 1.0).requires_grad());
  message_of([] { tensor({1, 2}).requires_grad_(); }, ErrorKind::DType);
  message_of([&] { (x * 2.0).requires_grad_(false); }, ErrorKind::Autograd);
}

TEST_CASE("leaves") {
  Tensor x = leaf({1, 2});
  Tensor y = x * 2.0;
  CHECK(x.is_leaf());
  CHECK(!y.is_leaf());
  CHECK(y.detach().is_leaf());
  CHECK(tensor({1.0}).is_leaf());
  Tensor copy = x;
  y.sum().backward();
  CHECK(values(copy.grad()) == std::vector<double>{2, 2});
  CHECK(has(message_of([&] { y.grad(); }, ErrorKind::Autograd), "retain_grad"));
  x.requires_grad_(false);
  CHECK(!(x * 2.0).requires_grad());
}

TEST_CASE("a tensor that shares its node with another does not make the other a parameter") {
  Tensor a = tensor({1.0, 2.0});
  Tensor b = a.detach();
  b.requires_grad_();
  CHECK(!a.requires_grad());
  CHECK(b.requires_grad());
  (b * 3.0).sum().backward();
  CHECK(values(b.grad()) == std::vector<double>{3, 3});
}

TEST_CASE("a second backward needs retain_graph") {
  Tensor x = leaf({1, 2});
  Tensor y = (x * x).sum();
  y.backward({}, /*retain_graph=*/true);
  y.backward();
  CHECK(values(x.grad()) == std::vector<double>{4, 8});
  std::string m = message_of([&] { y.backward(); }, ErrorKind::Autograd);
  CHECK(has(m, "retain_graph"));
  CHECK(has(m, "freed by an earlier backward"));
  CHECK(values(x.grad()) == std::vector<double>{4, 8});
}

TEST_CASE("views straight on a leaf may be used in every step") {
  Tensor w = leaf({1, 2, 3, 4});
  Tensor m = w.reshape({2, 2}).t();
  for (int step = 0; step < 3; ++step) (m * m).sum().backward();
  CHECK(values(w.grad()) == std::vector<double>{6, 12, 18, 24});
}

TEST_CASE("grad() returns gradients and leaves .grad alone") {
  Tensor x = leaf({3}), y = leaf({5}), unused = leaf({1});
  Tensor middle = x * y;
  Tensor z = middle * middle;
  std::vector<Tensor> g = grad({z}, {x, middle}, {}, true);
  CHECK(value(g[0]) == 2 * 15 * 5);
  CHECK(value(g[1]) == 30);
  CHECK(!x.grad().defined());
  CHECK(
      has(message_of([&] { grad({z}, {unused}, {}, true); }, ErrorKind::Autograd), "allow_unused"));
  CHECK(!grad({z}, {unused}, {}, true, false, true)[0].defined());
  message_of([&] { grad({z}, {tensor({1.0})}); }, ErrorKind::Autograd);
  // Two outputs at once, weighted.
  Tensor a = x * 2.0, b = x * 3.0;
  CHECK(value(grad({a, b}, {x},
                   {tensor(std::vector<double>{1}), tensor(std::vector<double>{10})})[0]) == 32);
}

TEST_CASE("higher orders") {
  Tensor x = leaf({1.5});
  Tensor y = x * x * x * x;
  Tensor g = y;
  for (double want : {4 * 1.5 * 1.5 * 1.5, 12 * 1.5 * 1.5, 24 * 1.5, 24.0}) {
    g = grad({g}, {x}, {}, {}, /*create_graph=*/true)[0];
    CHECK(value(g) == doctest::Approx(want));
  }
  Tensor s = sin(x);
  for (int k = 0; k < 4; ++k) s = grad({s}, {x}, {}, {}, true)[0];
  CHECK(value(s) == doctest::Approx(std::sin(1.5)));
  // Through .grad: backward with create_graph, then again.
  (x * x * x).backward({}, false, true);
  Tensor first = x.grad();
  CHECK(first.requires_grad());
  x.zero_grad();
  first.backward();
  CHECK(value(x.grad()) == doctest::Approx(9));
}

TEST_CASE("hooks see and change gradients") {
  Tensor x = leaf({1, 2});
  Tensor y = x * 2.0;
  double seen = 0;
  HookHandle on_y = register_hook(y, [&](const Tensor& g) {
    seen = value(g);
    return g * 10.0;
  });
  HookHandle on_x = register_hook(x, [](const Tensor& g) { return g + 1.0; });
  (y * 3.0).sum().backward({}, true);
  CHECK(seen == 3);
  CHECK(values(x.grad()) == std::vector<double>{61, 61});
  on_y.remove();
  on_y.remove();
  x.zero_grad();
  (y * 3.0).sum().backward({}, true);
  CHECK(values(x.grad()) == std::vector<double>{7, 7});
  on_x.remove();
  HookHandle silent = register_hook(x, [](const Tensor&) { return Tensor(); });
  HookHandle bad = register_hook(y, [](const Tensor& g) { return g.sum(); });
  x.zero_grad();
  message_of([&] { (y * 3.0).sum().backward(); }, ErrorKind::Autograd);
  CHECK(!x.grad().defined());
  message_of([] { register_hook(tensor({1.0}), [](const Tensor& g) { return g; }); },
             ErrorKind::Autograd);
}

TEST_CASE("a non-leaf can keep its gradient") {
  Tensor x = leaf({1, 2});
  Tensor y = x * 2.0;
  y.retain_grad();
  CHECK(!y.grad().defined());
  (y * y).sum().backward();
  CHECK(values(y.grad()) == std::vector<double>{4, 8});
}

TEST_CASE("a parameter that goes away takes its pending gradient with it") {
  synchronize();
  size_t before = Recorder::current().size();
  {
    Tensor x = leaf({1, 2});
    (x * x).sum().backward();
    CHECK(Recorder::current().size() > before);
  }
  CHECK(Recorder::current().size() == before);
  Tensor y;
  {
    Tensor x = leaf({1, 2});
    y = (x * x).sum();
  }
  y.backward();  // nobody can ask for the gradient, but that is no error
}

TEST_CASE("in-place calls and gradients") {
  Tensor x = leaf({1, 2, 3});
  Tensor y = x * 2.0;
  Tensor z = y * y;  // recorded with the old y
  y[1] = 100.0;
  y += 1.0;
  (z + y).sum().backward();
  CHECK(values(x.grad()) == std::vector<double>{8 + 2, 16 + 0, 24 + 2});
  message_of([&] { x += 1.0; }, ErrorKind::Autograd);
  {
    NoGrad guard;
    Tensor alias = x;
    alias -= 0.5 * x.grad();
  }
  CHECK(values(x) == std::vector<double>{1 - 5, 2 - 8, 3 - 13});
  CHECK(x.requires_grad());
  CHECK(x.is_leaf());
  x.zero_grad();
  (x * 1.0).sum().backward();
  CHECK(values(x.grad()) == std::vector<double>{1, 1, 1});
}

TEST_CASE("custom functions: a saved result is differentiated through again") {
  CustomFunction ex(
      [](FunctionContext& ctx, const std::vector<Tensor>& in) {
        std::vector<Tensor> out{exp(in[0])};
        ctx.save_for_backward(out);
        return out;
      },
      [](FunctionContext& ctx, const std::vector<Tensor>& g) {
        return std::vector{g[0] * ctx.saved()[0]};
      });
  Tensor x = tensor({1.0});
  x.requires_grad_();
  Tensor g = grad({(ex({x})[0] + x * x).sum()}, {x}, {}, {}, true)[0];
  CHECK(grad({g.sum()}, {x})[0].item() == doctest::Approx(std::exp(1.0) + 2));
}

TEST_CASE("set_data: a leaf is given other data and stays itself") {
  Tensor p = ones({2}), view = p.reshape({1, 2});
  p.requires_grad_();
  Tensor kept = p.detach(), other = p;
  set_data(p, zeros({3}, float64));
  CHECK(other.dtype() == float64);
  CHECK(p.requires_grad());
  CHECK(p.is_leaf());
  CHECK(kept.to_vector<float>() == std::vector<float>{1, 1});
  CHECK(view.to_vector<float>() == std::vector<float>{1, 1});
  (p * 2).sum().backward();
  CHECK(other.grad().to_vector<double>() == std::vector<double>{2, 2, 2});
  CHECK_THROWS_AS(set_data(p, ones({3}, int64)), Error);
  CHECK_THROWS_AS(set_data(p * 2, ones({3})), Error);
}

TEST_CASE("custom functions") {
  CustomFunction scaled(
      [](FunctionContext& ctx, const std::vector<Tensor>& in) {
        ctx.save_for_backward({in[0]});
        CHECK(ctx.needs_input_grad(0));
        CHECK(!ctx.needs_input_grad(1));
        return std::vector<Tensor>{in[0] * in[0], in[0] + in[1]};
      },
      [](FunctionContext& ctx, const std::vector<Tensor>& g) {
        return std::vector<Tensor>{g[0] * ctx.saved()[0] * 100.0 + g[1], Tensor()};
      });
  Tensor x = leaf({2, 3}), c = tensor(std::vector<double>{1, 1});
  std::vector<Tensor> out = scaled({x, c});
  CHECK(values(out[0]) == std::vector<double>{4, 9});
  (out[0] * 2.0 + out[1]).sum().backward();
  CHECK(values(x.grad()) == std::vector<double>{401, 601});
  // One output alone: the other's gradient is zeros. Twice differentiated.
  Tensor g = grad({scaled({x, c})[0].sum()}, {x}, {}, {}, true)[0];
  CHECK(values(g) == std::vector<double>{200, 300});
  CHECK(values(grad({g.sum()}, {x})[0]) == std::vector<double>{100, 100});
  CustomFunction wrong(
      [](FunctionContext&, const std::vector<Tensor>& in) { return in; },
      [](FunctionContext&, const std::vector<Tensor>&) { return std::vector<Tensor>{}; }, "wrong");
  CHECK(has(message_of([&] { wrong({x})[0].sum().backward(); }, ErrorKind::Autograd), "[wrong]"));
  CustomFunction shapes([](FunctionContext&, const std::vector<Tensor>& in) { return in; },
                        [](FunctionContext&, const std::vector<Tensor>& g2) {
                          return std::vector<Tensor>{g2[0].sum()};
                        });
  message_of([&] { shapes({x})[0].sum().backward(); }, ErrorKind::Shape);
}

TEST_CASE("checkpoint computes again what it did not keep") {
  Tensor w = leaf({0.5, -1, 2}), x = leaf({1, 2, 3});
  int calls = 0;
  auto block = [&](const std::vector<Tensor>& in) {
    ++calls;
    return tanh(in[0] * w) * dropout(in[0], 0.5);
  };
  manual_seed(3);
  block({x}).sum().backward();
  std::vector<double> gx = values(x.grad()), gw = values(w.grad());
  x.zero_grad();
  w.zero_grad();
  manual_seed(3);
  calls = 0;
  Tensor y = checkpoint(block, {x});
  uint64_t after = default_generator().offset();
  CHECK(calls == 1);
  y.sum().backward();
  CHECK(calls == 2);
  CHECK(default_generator().offset() == after);
  CHECK(values(x.grad()) == gx);
  CHECK(values(w.grad()) == gw);
  // Only the captured parameter needs a gradient; grad() finds its way through; checkpoints nest.
  Tensor data = tensor(std::vector<double>{1, 2, 3});
  auto inner = [&](const std::vector<Tensor>& in) { return sin(in[0]) * w; };
  auto outer = [&](const std::vector<Tensor>& in) { return checkpoint(inner, {in[0] * w}) * 2.0; };
  Tensor plain = grad({(sin(data * w) * w * 2.0).sum()}, {w})[0];
  CHECK(values(grad({checkpoint(outer, {data}).sum()}, {w})[0]) == values(plain));
  {
    NoGrad guard;
    CHECK(!checkpoint(inner, {x}).requires_grad());
  }
}

TEST_CASE(
    "checkpoint computes again in the types of the first time, though the scope is closed by "
    "then") {
  Tensor w = leaf({0.5, -1, 2, 0.25}).to(float32).detach().requires_grad_(),
         x = tensor({1.001, 2.003, 3.007, 4.0}, {2, 2});
  auto block = [&](const std::vector<Tensor>& in) {
    return matmul(in[0], w.reshape({2, 2})).to(float32);
  };
  auto gradient = [&](bool recompute, bool autocast) {
    Tensor y;
    {
      amp::Autocast scope(bfloat16, autocast);
      y = recompute ? checkpoint(block, {x}) : block({x});
    }
    w.zero_grad();
    (y * y).sum().backward();
    return values(w.grad());
  };
  CHECK(gradient(true, true) == gradient(false, true));
  CHECK(gradient(true, true) != gradient(false, false));
  // And the other way round: a scope that is open around backward() is not the function's.
  Tensor y = checkpoint(block, {x});
  w.zero_grad();
  {
    amp::Autocast scope(bfloat16);
    (y * y).sum().backward();
  }
  CHECK(values(w.grad()) == gradient(false, false));
}

TEST_CASE(
    "in a checkpoint running statistics move once, and nothing is kept for a custom gradient") {
  const Device d("cpu:2");
  auto train = [&](bool recompute) {
    manual_seed(1);
    DeviceScope scope(d);
    nn::Sequential body;
    for (int i = 0; i < 8; ++i)
      body.push_back(nn::Sequential(nn::Linear(64, 64), nn::BatchNorm1d(64), nn::Tanh()));
    const Tensor x = randn({256, 64});
    eval(x);
    empty_cache(d);
    d.reset_peak_memory();
    for (int step = 0; step < 3; ++step) {
      Tensor y = x;
      for (size_t i = 0; i < body.size(); ++i)
        y = recompute
                ? checkpoint(
                      [body, i](const std::vector<Tensor>& in) mutable { return body[i](in[0]); },
                      {y})
                : body[i](y);
      const Tensor loss = y.square().mean();
      y = Tensor();
      loss.backward();
      NoGrad no_grad;
      for (Tensor p : body.parameters()) {
        p.sub_(p.grad() * 0.1);
        p.zero_grad();
      }
      loss.eval_();
    }
    std::vector<double> state;
    for (const auto& [name, t] : body.state_dict().tensors)
      for (double v : values(t.to(float64))) state.push_back(v);
    return std::pair(state, d.memory().peak);
  };
  const auto [plain, kept] = train(false);
  const auto [again, less] = train(true);
  // Statistics that moved twice would differ by a tenth of them.
  for (size_t i = 0; i < plain.size(); ++i)
    CHECK(again[i] == doctest::Approx(plain[i]).epsilon(1e-4));
  CHECK(static_cast<double>(less) < 0.8 * static_cast<double>(kept));
}

TEST_CASE("a chain of 100,000 operations is walked without recursion") {
  Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = y + 1.0;
  y.backward();
  CHECK(value(x.grad()) == 1);
}

TEST_CASE("recording a backward is cheap") {
  Tensor x = leaf({1, 2});
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    Tensor y = x;
    for (int i = 0; i < 1000; ++i) y = y * x;
    Tensor g = tensor(std::vector<double>{1, 1});
    auto start = std::chrono::steady_clock::now();
    std::vector<Tensor> grads = grad({y}, {x}, {g});
    best = std::min(
        best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
                      .count() /
                  1000);
  }
  MESSAGE("grad of a product chain: " << best << " us per node");  // two products and a sum each
#ifdef NDEBUG
  CHECK(best < 5);  // far above what it takes on a quiet machine
#endif
}

TEST_CASE("gradients cross devices") {
  Tensor x = leaf({1, 2});
  Tensor y = x.to("cpu:1") * 3.0;
  CHECK(y.device() == Device("cpu:1"));
  y.sum().backward();
  CHECK(x.grad().device() == Device("cpu"));
}
