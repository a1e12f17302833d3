// Attention of float32 without its matrix of scores, against the written-out form in float64.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/cached_attention.h"

using namespace ingot;

namespace {

struct Case {
  int64_t batch, heads, queries, keys, width, value_width;
  bool causal = false;
  int mask = 0;  // 1: bool [T, S]; 2: numbers [1, 1, S]; 3: bool [batch, 1, 1, S]
};

struct Inputs {
  Tensor q, k, v, g, mask;
  explicit Inputs(const Case& c) {
    const Generator gen(7);
    // As models have them: heads are cut out of one row.
    auto made = [&](int64_t rows, int64_t width) {
      return randn({c.batch, rows, c.heads, width}, {}, gen).eval_().transpose(1, 2);
    };
    q = made(c.queries, c.width), k = made(c.keys, c.width), v = made(c.keys, c.value_width);
    g = made(c.queries, c.value_width);
    if (c.mask == 1) mask = rand({c.queries, c.keys}, {}, gen) > 0.3;
    if (c.mask == 2) mask = randn({1, 1, c.keys}, {}, gen);
    if (c.mask == 3) mask = rand({c.batch, 1, 1, c.keys}, {}, gen) > 0.5;
    if (mask.defined()) mask.eval_();
  }
  /// The result and the gradients of q, k and v.
  std::vector<Tensor> run(DType t, bool causal, bool eager = false) const {
    std::vector<Tensor> x;
    for (const Tensor& each : {q, k, v}) x.push_back(each.detach().to(t).requires_grad_());
    AttentionOptions o;
    o.is_causal = causal;
    if (mask.defined()) o.mask = mask.dtype() == bool_ ? mask : mask.to(t);
    Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], o);
    if (t == float32 && !eager) CHECK(explain(y).text.find("attention") != std::string::npos);
    std::vector<Tensor> all = grad({y}, x, {g.to(t)});
    all.insert(all.begin(), y);
    eval(all);
    return all;
  }
};

double distance(const Tensor& a, const Tensor& b) {
  return (a.to(float64) - b.to(float64)).abs().max().item<double>();
}

}  // namespace

TEST_CASE("attention of float32 and its gradients are the written-out ones") {
  for (const Case& c :
       {Case{1, 2, 1100, 1000, 64, 64}, Case{1, 1, 700, 1511, 40, 24},
        Case{1, 2, 600, 600, 64, 64, true}, Case{1, 2, 1013, 300, 33, 7, true},
        Case{1, 1, 300, 900, 8, 130, true}, Case{2, 1, 1030, 1040, 16, 16, false, 1},
        Case{1, 1, 1500, 800, 8, 8, false, 2}, Case{2, 1, 1024, 1024, 16, 16, false, 3}}) {
    CAPTURE(c.queries);
    CAPTURE(c.keys);
    CAPTURE(c.causal);
    CAPTURE(c.mask);
    const Inputs in(c);
    const std::vector<Tensor> got = in.run(float32, c.causal), want = in.run(float64, c.causal);
    for (size_t i = 0; i < got.size(); ++i) CHECK(distance(got[i], want[i]) < 5e-6);
  }
}

TEST_CASE("attention's bits do not depend on the number of threads") {
  const int before = get_num_threads();
  for (const Case& c : {Case{1, 1, 1100, 1100, 32, 32}, Case{3, 7, 513, 513, 8, 8, true}}) {
    const Inputs in(c);
    set_num_threads(1);
    const std::vector<Tensor> one = in.run(float32, c.causal);
    for (int n : {2, 3}) {
      set_num_threads(n);
      const std::vector<Tensor> more = in.run(float32, c.causal);
      for (size_t i = 0; i < one.size(); ++i) CHECK((one[i] == more[i]).all().item<bool>());
    }
  }
  set_num_threads(before);
}

TEST_CASE("a query that sees nothing gives 0, one that sees little its few keys") {
  Inputs in(Case{1, 1, 1200, 900, 8, 8});
  in.mask = ones({1200, 900}, {bool_}).eval_();
  in.mask[{5}] = false;
  in.mask[{6, Slice{0, 899}}] = false;
  in.mask[{7, Slice{1, 900}}] = false;
  const std::vector<Tensor> got = in.run(float32, false), want = in.run(float64, false);
  CHECK(distance(got[0], want[0]) < 5e-6);
  CHECK((got[0].select(2, 5) == 0.0).all().item<bool>());
  CHECK((got[0].select(2, 6) != 0.0).all().item<bool>());
  Tensor nan_in = Inputs(Case{1, 1, 1200, 900, 8, 8}).q.clone();
  nan_in[{0, 0, 3, 2}] = std::nan("");
  in.mask = {};
  Tensor y = scaled_dot_product_attention(nan_in, in.k, in.v);
  CHECK(isnan(y).sum().item<int64_t>() == 8);
}

TEST_CASE("attention has second gradients") {
  const Inputs in(Case{1, 1, 512, 512, 4, 4, true});
  auto second = [&](DType t) {
    std::vector<Tensor> x;
    for (const Tensor& each : {in.q, in.k, in.v}) x.push_back(each.detach().to(t).requires_grad_());
    Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], {.is_causal = true});
    Tensor sum = zeros({}, {t});
    for (const Tensor& d : grad({(y * y * in.g.to(t)).sum()}, x, {}, true, true))
      sum = sum + (d * d * d).sum();
    std::vector<Tensor> all = grad({sum}, x);
    eval(all);
    return all;
  };
  const std::vector<Tensor> got = second(float32), want = second(float64);
  for (size_t i = 0; i < 3; ++i)
    CHECK(distance(got[i], want[i]) < 1e-4 * (1 + want[i].abs().max().item<double>()));
}

TEST_CASE("attention op by op is the same to rounding") {
  const Inputs in(Case{1, 2, 520, 520, 16, 16, true});
  const std::vector<Tensor> together = in.run(float32, true);
  set_eager(true);
  const std::vector<Tensor> one_by_one = in.run(float32, true, true);
  set_eager(false);
  for (size_t i = 0; i < together.size(); ++i) CHECK(distance(together[i], one_by_one[i]) < 5e-6);
}

TEST_CASE("attention's memory grows with the length, not with its square") {
  auto peak = [](int64_t length) {
    const Inputs in(Case{1, 2, length, length, 32, 32});
    const Device cpu("cpu");
    cpu.reset_peak_memory();
    in.run(float32, false);
    return static_cast<double>(cpu.memory().peak);
  };
  peak(2048);
  const double once = peak(2048), twice = peak(4096);
  CHECK(twice < 2.2 * once);
  CHECK(twice < 2 * 4096.0 * 4096 * 4);  // the scores alone
}

TEST_CASE("the gradients of q, k and v cut from one projection are written together") {
  const Generator gen(9);
  const Tensor x = randn({2, 520, 24}, {}, gen), w = (randn({72, 24}, {}, gen) * 0.3),
               g = randn({2, 520, 24}, {}, gen);
  eval({x, w, g});
  auto run = [&](const std::vector<int>& order, std::string* plan) {
    Tensor weight = w.detach().requires_grad_();
    const std::vector<Tensor> parts = linear(x, weight).split(24, 2);
    auto heads = [&](int i) {
      return parts[static_cast<size_t>(order[static_cast<size_t>(i)])]
          .view({2, 520, 3, 8})
          .transpose(1, 2);
    };
    Tensor y = scaled_dot_product_attention(heads(0), heads(1), heads(2), {.is_causal = true});
    Tensor d = grad({(y.transpose(1, 2).reshape({2, 520, 24}) * g).sum()}, {weight})[0];
    if (plan) *plan = explain(d).text;
    return d.eval_();
  };
  for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, {2, 0, 1}}) {
    std::string plan;
    const Tensor joined = run(order, &plan);
    CAPTURE(plan);
    // Nothing but products, attention and what comes before its gradient: no kernel puts three
    // tensors together.
    CHECK(plan.find("attention_grad") != std::string::npos);
    CHECK(plan.find(" add") == std::string::npos);
    set_fusion(false);
    const Tensor apart = run(order, nullptr);
    set_fusion(true);
    CHECK(distance(joined, apart) < 1e-6 * (1 + apart.abs().max().item<double>()));
  }
  // A part used twice is put together as before.
  auto twice = [&] {
    Tensor weight = w.detach().requires_grad_();
    const std::vector<Tensor> parts = linear(x, weight).split(24, 2);
    auto heads = [&](size_t i) { return parts[i].view({2, 520, 3, 8}).transpose(1, 2); };
    Tensor y = scaled_dot_product_attention(heads(0), heads(0), heads(2), {.is_causal = true});
    return grad({y.sum()}, {weight})[0].eval_();
  };
  const Tensor joined = twice();
  set_fusion(false);
  const Tensor apart = twice();
  set_fusion(true);
  CHECK(distance(joined, apart) < 1e-6 * (1 + apart.abs().max().item<double>()));
}

TEST_CASE("the newest token's attention reads of its cache what the mask shows") {
  struct Shape {
    int64_t batch, heads, places, width;
  };
  const Generator gen(11);
  for (const Shape& c :
       {Shape{1, 12, 256, 64}, Shape{2, 3, 70, 33}, Shape{1, 1, 1, 8}, Shape{3, 2, 19, 1}})
    for (int mask = 0; mask < 4; ++mask)
      for (bool turned : {false, true}) {
        CAPTURE(c.places);
        CAPTURE(mask);
        // Heads cut out of one row, as models have them; and caches in the transposed layout.
        auto newest = [&] {
          return randn({c.batch, 1, c.heads, c.width}, {}, gen).eval_().transpose(1, 2);
        };
        auto cache = [&] {
          if (!turned) return randn({c.batch, c.heads, c.places, c.width}, {}, gen).eval_();
          return randn({c.batch, c.heads, c.width, c.places}, {}, gen).eval_().transpose(2, 3);
        };
        Tensor q = newest(), key = newest(), value = newest(), keys = cache(), values = cache();
        Tensor visible = mask == 0   ? arange(c.places) < c.places / 3
                         : mask == 1 ? rand({c.places}, {}, gen) > 0.5
                         : mask == 2 ? zeros({c.places}, {bool_})
                                     : ones({c.places}, {bool_});
        visible = visible.view({1, 1, 1, c.places}).eval_();
        // What is hidden may be anything.
        const double nan = std::numeric_limits<double>::quiet_NaN();
        Tensor hidden = visible.logical_not().view({1, 1, c.places, 1});
        Tensor spoilt_keys = where(hidden, nan, keys).eval_(),
               spoilt = where(hidden, nan, values).eval_();
        if (turned) {
          spoilt_keys = spoilt_keys.transpose(2, 3).contiguous().eval_().transpose(2, 3);
          spoilt = spoilt.transpose(2, 3).contiguous().eval_().transpose(2, 3);
        }
        Tensor y = cached_attention(q, spoilt_keys, spoilt, visible, key, value);
        REQUIRE(y.defined());
        Tensor all = cat({visible, ones({1, 1, 1, 1}, {bool_})}, 3);
        Tensor want =
            scaled_dot_product_attention(q.to(float64), cat({keys, key}, 2).to(float64),
                                         cat({values, value}, 2).to(float64), {.mask = all});
        CHECK(distance(y, want) < 2e-6);
      }
  Tensor q = randn({1, 1, 1, 4}).requires_grad_(), k = randn({1, 1, 3, 4});
  CHECK(!cached_attention(q, k, k, ones({1, 1, 1, 3}, {bool_}), q, q).defined());
}
