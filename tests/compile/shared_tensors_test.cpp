// Several threads at one tensor: some write to it in place, others compute with it, read it,
// differentiate through it. Values race as the threads do; here all writers leave a value that can
// be distinguished from a torn one.
#include "semantics.h"

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "graph/leaf.h"

using namespace ingot;
using namespace semantics;

namespace {

constexpr int kTurns = 200;

// Runs all of them at once, each so many times.
void at_once(const std::vector<std::function<void(int)>>& all, int turns = kTurns) {
  std::atomic<size_t> ready{0};
  std::vector<std::thread> threads;
  std::vector<std::string> errors(all.size());
  for (size_t k = 0; k < all.size(); ++k)
    threads.emplace_back([&, k] {
      ++ready;
      while (ready.load() < all.size()) std::this_thread::yield();
      try {
        for (int i = 0; i < turns; ++i) all[k](i);
      } catch (const std::exception& e) {
        errors[k] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& e : errors) CHECK(e == "");
}

bool all_equal(const Tensor& x) {
  const V v = numbers(x);
  for (double e : v)
    if (e != v[0]) return false;
  return true;
}

struct Net {
  Tensor w1 = parameter({0.5, -0.25, 0.125, 1, 0.75, -1}), w2 = parameter({1, -1, 0.5});
  Tensor operator()(const Tensor& x) const {
    return tanh(x.view({1, 2}).matmul(w1.view({2, 3}))).matmul(w2.view({3, 1})).sum();
  }
};

}  // namespace

TEST_CASE(
    "one tensor is written to by some threads and read by others, and nobody reads half a value") {
  Tensor x = zeros({64});
  std::atomic<int> torn{0};
  const auto look = [&](const Tensor& t) { torn += !all_equal(t); };
  at_once({
      [&](int) { x.add_(1); },
      [&](int i) { x.fill_(i); },
      [&](int i) { x.copy_(full({64}, i)); },
      [&](int i) { set_data(x, full({64}, i)); },
      [&](int) { look(x); },
      [&](int) { look(x * 2 + 1); },
      [&](int) {
        look(x.view({8, 8}).t().sum(0));
      },
      [&](int) { torn += x[0].item() < 0; },
      [&](int i) {
        torn += x.dim() != 1 || x.shape()[0] != 64, x.set_name("x" + std::to_string(i));
      },
      [&](int) { torn += describe(x.cell()->current()).empty() || x.name().size() > 4; },
  });
  CHECK(torn == 0);
}

TEST_CASE("threads write to their own parts of one tensor and lose none of it") {
  constexpr int kParts = 4;
  Tensor x = zeros({kParts, 16});
  std::vector<std::function<void(int)>> all;
  for (int k = 0; k < kParts; ++k)
    all.push_back([&x, k](int) { k % 2 ? x[k].add_(1) : x.t().select(1, k).add_(1); });
  at_once(all);
  CHECK(numbers(x) == V(kParts * 16, kTurns));
}

TEST_CASE("a view is written to and read while its base is, and while both are given other data") {
  Tensor x = zeros({4, 8}), row = x[1], part = row.narrow(0, 2, 4), flat = x.view({32});
  std::atomic<int> torn{0};
  at_once({
      [&](int i) { x.fill_(i); },
      [&](int i) { row.fill_(i); },
      [&](int i) { part.copy_(full({4}, i)); },
      [&](int) { torn += numbers(row).size() != 8; },
      [&](int) { torn += !all_equal(part); },
      [&](int) { torn += numbers(flat.sum()).size() != 1; },
      [&](int) {
        Tensor again = x[1].narrow(0, 2, 4);
        torn += !all_equal(again);
      },
      [&](int i) {
        if (i % 8 == 0) set_data(row, full({8}, i));
      },
  });
  CHECK(torn == 0);
}

TEST_CASE("a view that was made while its base was written to shows what is written last") {
  for (int round = 0; round < 20; ++round) {
    Tensor x = zeros({8});
    std::vector<Tensor> views(kTurns);
    at_once({[&](int i) { x.fill_(i + 1); },
             [&](int i) { views[static_cast<size_t>(i)] = x.narrow(0, 2, 4); }});
    for (const Tensor& v : views) CHECK(numbers(v) == V(4, kTurns));
  }
}

TEST_CASE("several threads follow one view of a base that is written to") {
  Tensor x = zeros({4, 8}), row = x[1], part = row.narrow(0, 2, 4);
  std::atomic<int> bad{0};
  const auto follow = [&](int) {
    for (int i = 0; i < 20; ++i) bad += part.numel() != 4;
  };
  at_once(
      {[&](int i) { x.fill_(i); }, [&](int i) { row.fill_(i); }, follow, follow, follow, follow});
  CHECK(bad == 0);
}

TEST_CASE("one thread trains a model that others infer with") {
  Net net;
  optim::SGD sgd({net.w1, net.w2}, {.lr = 1e-3, .momentum = 0.9});
  std::atomic<int> bad{0};
  const auto infer = [&](int i) {
    NoGrad guard;
    bad += !std::isfinite(net(here({1.0 * i, 2})).item());
  };
  at_once({[&](int i) {
             sgd.zero_grad();
             net(here({1, 0.01 * i})).backward();
             sgd.step();
           },
           infer, infer, [&](int) { bad += numbers(net.w1).size() != 6; }});
  CHECK(bad == 0);
}

TEST_CASE("two threads train one model") {
  Net net;
  optim::SGD a({net.w1, net.w2}, {.lr = 1e-3}), b({net.w1, net.w2}, {.lr = 1e-3});
  const auto train = [&](optim::Optimizer& o, int i) {
    o.zero_grad();
    net(here({1, 0.01 * i})).backward();
    o.step(/*keep_gradients=*/true);
  };
  at_once({[&](int i) { train(a, i); }, [&](int i) { train(b, i); }});
  for (double v : numbers(net.w1)) CHECK(std::isfinite(v));
}

TEST_CASE("gradients that several threads add to one leaf all arrive") {
  Tensor w = parameter({1, 2, 3});
  const auto add = [&](int) { (w * 2).sum().backward(); };
  at_once({add, add, add, [&](int) {
             if (Tensor g = w.grad(); g.defined()) CHECK(all_equal(g));
           }});
  CHECK(numbers(w.grad()) == V(3, 2.0 * 3 * kTurns));
}

TEST_CASE("gradients are read, set and cleared while others are added") {
  Tensor w = parameter({1, 2, 3});
  std::atomic<int> torn{0}, called{0};
  at_once({
      [&](int) { (w * 2).sum().backward(); },
      [&](int) { w.square().sum().backward(); },
      [&](int) { w.zero_grad(); },
      [&](int) { w.set_grad(ones({3})); },
      [&](int) {
        Tensor g = w.grad();
        torn += g.defined() && g.numel() != 3;
      },
      [&](int) {
        HookHandle h = register_hook(w, [&](const Tensor&) { return ++called, Tensor(); });
        w.sum().backward();
        h.remove();
      },
      [&](int i) { w.requires_grad_(true), w.set_name("w" + std::to_string(i)); },
      [&](int) { torn += !w.is_leaf() || !w.requires_grad(); },
  });
  CHECK(torn == 0);
  CHECK(called >= kTurns);
}

TEST_CASE("one recorded graph is walked by several threads") {
  for (bool keep : {true, false}) {
    constexpr int kRounds = 150;
    std::atomic<int> walked{0}, freed{0};
    for (int round = 0; round < kRounds; ++round) {
      Tensor w = parameter({1, 2, 3});
      Tensor y = exp((w * w).narrow(0, 0, 2).t()) * 3;
      y.retain_grad();
      Tensor loss = y.sum() + CustomFunction(
                                  [](FunctionContext& ctx, const std::vector<Tensor>& in) {
                                    ctx.save_for_backward(in);
                                    return std::vector<Tensor>{in[0].sum()};
                                  },
                                  [](FunctionContext& ctx, const std::vector<Tensor>& g) {
                                    return std::vector<Tensor>{ctx.saved()[0] * g[0]};
                                  },
                                  "scaled")({y})[0];
      loss.eval_();
      const auto walk = [&](int) {
        try {
          if (keep) grad({loss}, {w}, {}, /*retain_graph=*/true);
          loss.backward({}, keep);
          ++walked;
        } catch (const Error& e) {  // "was freed by an earlier backward()"
          freed += e.kind() == ErrorKind::Autograd;
        }
        y.grad();
      };
      at_once({walk, walk, walk}, 1);
    }
    CHECK(walked + freed == 3 * kRounds);
    CHECK(walked >= (keep ? 3 : 1) * kRounds);
  }
}

TEST_CASE("pieces of one value are differentiated while another thread computes what is pending") {
  Tensor x = parameter(V(24, 1.0));
  Tensor pending = zeros({4});
  at_once({[&](int) {
             Tensor sum = zeros({2});
             for (int i = 0; i < 12; ++i) sum = sum + x.narrow(0, 2 * i, 2) * (i + 1);
             pending.copy_(sum.detach().sum());
             CHECK(numbers(grad({sum.sum()}, {x})[0])[23] == 12);
           },
           [&](int) { numbers(pending); }});
}

TEST_CASE("modules are moved and loaded while others compute with them") {
  nn::Linear fc(3, 2);
  const StateDict other = nn::Linear(3, 2).state_dict();
  std::atomic<int> bad{0};
  at_once({[&](int i) { i % 2 ? fc.to(float64) : fc.to(float32); },
           [&](int) {
             NoGrad guard;
             bad += fc.weight().sum().numel() != 1;
           }});
  at_once({[&](int) { fc.load_state_dict(other); },
           [&](int) {
             NoGrad guard;
             bad += !std::isfinite(fc(ones({1, 3}).to(fc.weight().dtype())).sum().item());
           }});
  CHECK(bad == 0);
}
