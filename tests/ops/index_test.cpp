// Indexing with tensors, writing by index, results of data-dependent shape: what belongs to what,
// gradients, errors, capture.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <algorithm>
#include <cmath>
#include <functional>

using namespace ingot;
using V = std::vector<double>;

namespace {

V of(const Tensor& x) { return x.to_vector<double>(); }

template <class F>
Error error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  FAIL("nothing was thrown");
  return Error(ErrorKind::Internal, "", "");
}

#define CHECK_ERROR(kind_, words, ...)                                                             \
  do {                                                                                             \
    const uint32_t line = __LINE__;                                                                \
    Error e = error_of([&] { __VA_ARGS__; });                                                      \
    CHECK(e.kind() == ErrorKind::kind_);                                                           \
    CHECK_MESSAGE(std::string(e.what()).find(words) != std::string::npos, e.what());               \
    CHECK_MESSAGE(                                                                                 \
        std::string(e.what()).find("index_test.cpp:" + std::to_string(line)) != std::string::npos, \
        e.what());                                                                                 \
  } while (false)

}  // namespace

TEST_CASE("x[tensor] is a new tensor; x[tensor] = and += write to x") {
  Tensor x = arange(0, 6, float32).reshape({2, 3}), i = tensor({1, 0, 1});
  Tensor y = x[i];
  y += 100.0;
  y.mul_(2);
  x[i].add_(50);
  CHECK(of(x) == V{0, 1, 2, 3, 4, 5});
  auto z = x[i];
  z += 1;
  z = y;
  CHECK(of(x) == V{0, 1, 2, 3, 4, 5});
  Tensor same = x;
  x[{Slice{}, tensor({0, 2})}] = tensor({10, 20});
  CHECK(of(same) == V{10, 1, 20, 10, 4, 20});
  x[i] += 1;  // every row once, though one is named twice
  CHECK(of(same) == V{11, 2, 21, 11, 5, 21});
  x[x > 10] *= 2;
  x[{0, tensor({1})}] -= 5;
  x[x == 5] /= 2;
  CHECK(of(same) == V{22, -3, 42, 22, 2.5, 42});
  Tensor part = x[1];
  part[tensor({0, 1})] = 7;  // through the view into x
  CHECK(of(x) == V{22, -3, 42, 7, 7, 42});
  x[0] += 1;  // plain views as before
  x[{1, 2}] = 0;
  CHECK(of(x) == V{23, -2, 43, 7, 7, 0});
}

TEST_CASE("of several values for one place the last one stays; accumulate counts all") {
  Tensor x = zeros({3}), i = tensor({2, 0, 2, 2});
  x[i] = tensor({1.0, 2.0, 3.0, 4.0});
  CHECK(of(x) == V{2, 0, 4});
  x.index_put_(i, 1, true);
  CHECK(of(x) == V{3, 0, 7});
  CHECK(of(index_put(x, x > 2, 9)) == V{9, 0, 9});
  CHECK(of(index_put(x, x > 2, 9, true)) == V{12, 0, 16});
  CHECK(of(scatter(x, 0, i, tensor({1.0, 2.0, 3.0, 4.0}))) == V{2, 0, 4});
  x.scatter_(0, tensor({0}), 5)
      .index_add_(0, tensor({1, 1}), ones({2}))
      .put_(tensor({-1}), tensor({8.0}));
  CHECK(of(x) == V{5, 2, 8});
  x.masked_scatter_(x > 4, tensor({1.0, 2.0, 3.0}))
      .index_fill_(0, tensor({1}), -1)
      .index_copy_(0, tensor({0}), tensor({6.0}));
  CHECK(of(x) == V{6, -1, 2});
}

TEST_CASE("gradients through indices, masks and assignments") {
  Tensor x = arange(1, 7, float64).reshape({2, 3}).requires_grad_(),
         v = tensor({1.0, 2.0}, float64).requires_grad_();
  auto values = [](const std::vector<Tensor>& in) {
    Tensor y = in[0] * 1.0;
    y[{tensor({0, 1, 0}), tensor({2, 0, 2})}] = tensor({5.0, 6.0, 7.0}, float64) * in[1][0];
    y[in[0].detach() > 4.5] += in[1][{tensor({1, 0})}] * 2;
    return std::vector<Tensor>{
        y * y, in[0][{Slice{}, tensor({1, 1, 2})}] * in[0][tensor({{1}, {0}})].sum(1),
        masked_select(in[0], in[0].detach() > 2.5) * 3};
  };
  GradCheck first = gradcheck(values, {x, v}), second = gradgradcheck(values, {x, v});
  CHECK_MESSAGE(first.ok, first.report);
  CHECK_MESSAGE(second.ok, second.report);
  Tensor e = arange(1, 9, float64).reshape({4, 2}).requires_grad_();
  embedding(e, tensor({0, 2, 2, 1}), 2).sum().backward();
  CHECK(of(e.grad()) == V{1, 1, 1, 1, 0, 0, 0, 0});
  Tensor zero = zeros({3}).requires_grad_();
  vector_norm(zero).backward();
  CHECK(of(zero.grad()) == V{0, 0, 0});
}

TEST_CASE("gradients of gradients") {
  Tensor x = tensor({{0.3, -1.2, 0.9, 2.1}, {1.7, 0.4, -0.8, 0.6}}, float64).requires_grad_(),
         y = (arange(1, 9, float64).reshape({2, 4}) / 4).requires_grad_();
  Tensor i = tensor({{0, 2, 0, 1}, {3, 3, 0, 1}});
  using List = std::vector<Tensor>;
  const std::vector<std::pair<const char*, std::function<Tensor(const List&)>>> all = {
      {"cumsum", [](const List& t) { return cumsum(t[0] * t[1], 1); }},
      {"cumprod", [](const List& t) { return cumprod(t[0] * t[1], 1); }},
      {"logcumsumexp", [](const List& t) { return logcumsumexp(t[0] * t[1], 1); }},
      {"cummax", [](const List& t) { return cummax(t[0] * t[0], 1).values * t[1]; }},
      {"sort", [](const List& t) { return sort(t[0] * t[0], 1).values * t[1]; }},
      {"topk", [](const List& t) { return topk(t[0] * t[0] * t[1], 2).values; }},
      {"scatter", [i](const List& t) { return square(scatter(t[0], 1, i, t[1])); }},
      {"scatter_add", [i](const List& t) { return square(scatter_add(t[0], 1, i, t[1])); }},
      {"scatter prod", [i](const List& t) { return scatter_reduce(t[0], 1, i, t[1], "prod"); }},
      {"scatter mean",
       [i](const List& t) { return square(scatter_reduce(t[0], 1, i, t[1], "mean", false)); }},
      {"scatter amax",
       [i](const List& t) { return square(scatter_reduce(t[0], 1, i, t[1], "amax")); }},
      {"norm",
       [](const List& t) {
         return vector_norm(t[0] * t[1], 3, 1) + vector_norm(t[0] * t[1], 2, 1);
       }},
      {"std_mean", [](const List& t) { return std_mean(t[0] * t[1], 1).first; }},
      {"masked_scatter",
       [](const List& t) { return square(masked_scatter(t[0], t[0].detach() > 0.5, t[1])); }},
  };
  for (const auto& each : all) {
    const auto& name = each.first;
    GradFunction fn = [f = each.second](const List& in) { return List{f(in)}; };
    GradCheck first = gradcheck(fn, {x, y}), second = gradgradcheck(fn, {x, y});
    CHECK_MESSAGE(first.ok, name << ": " << first.report);
    CHECK_MESSAGE(second.ok, name << ": " << second.report);
  }
}

TEST_CASE("bad indices are named where they were written") {
  Tensor x = arange(0, 12, float32).reshape({3, 4}), rows = tensor({0, 3});
  CHECK_ERROR(Index, "3", x[rows].eval_());
  CHECK_ERROR(Index, "-4", x[tensor({0, -4})].eval_());
  CHECK_ERROR(Index, "5", x[{tensor({0, 1}), tensor({1, 5})}].eval_());
  CHECK_ERROR(Index, "7", scatter(x, 1, full({3, 1}, 7), 1).eval_());
  CHECK_ERROR(Index, "12", take(x, tensor({12})).eval_());
  CHECK_ERROR(Index, "2", masked_scatter(x, x > 1, ones({1})).eval_());
  CHECK_ERROR(Index, "more indices", x[{rows, rows, rows}]);
  CHECK_ERROR(Index, "differs", x[tensor({true, false})]);
  CHECK_ERROR(DType, "int64, int32 or bool", x[tensor({0.5})]);
  CHECK_ERROR(Shape, "broadcast", x[{rows, tensor({0, 1, 2})}]);
  CHECK_ERROR(Shape, "does not fit", x[rows] = ones({3, 3}));
  CHECK_ERROR(DType, "differ in type", scatter(x, 0, tensor({{0}}), tensor({{1}})));
  CHECK_ERROR(Shape, "does not fit", scatter(x, 0, zeros({1, 5}, int64), ones({1, 5})));
  CHECK_ERROR(DType, "int64 or int32", scatter(x, 0, zeros({1, 4}), 1));
  CHECK_ERROR(Value, "no reduction", scatter_reduce(x, 0, zeros({1, 4}, int64), x, "max"));
  CHECK_ERROR(Shape, "slices", index_add(x, 0, rows, ones({3, 4})));
  CHECK_ERROR(Dim, "dim 2", cumsum(x, 2));
  CHECK_ERROR(DType, "floating", logcumsumexp(rows, 0));
  CHECK_ERROR(Value, "k is 5", topk(x, 5));
  CHECK_ERROR(Value, "k is 0", kthvalue(x, 0));
  CHECK_ERROR(Shape, "zero elements", median(zeros({0})));
  CHECK_ERROR(Shape, "does not fit", searchsorted(x, ones({2, 4})));
  CHECK_ERROR(Shape, "vector", bucketize(x, x));
  CHECK_ERROR(Value, "negative", bincount(tensor({1, -1})));
  CHECK_ERROR(DType, "integers", bincount(ones({2})));
  CHECK_ERROR(Value, "bins", histc(x, 0));
  CHECK_ERROR(DType, "must be bool", masked_select(x, rows));
  CHECK_ERROR(Shape, "broadcast", masked_select(x, ones({5}, bool_)));
  CHECK_ERROR(Index, "padding_idx", embedding(x, rows, 9));
  CHECK_ERROR(DType, "floating", vector_norm(rows));
  CHECK(of(x) == of(arange(0, 12, float32)));
}

TEST_CASE("a failed write leaves the old value") {
  Tensor x = arange(0, 3, float32).eval_();
  CHECK_THROWS_AS((x[tensor({0, 9})] = 5, x.eval_()), Error);
  CHECK(of(x) == V{0, 1, 2});
}

TEST_CASE("what depends on values cannot be captured, the rest can") {
  Tensor x = arange(0, 6, float32).reshape({2, 3}).eval_();
  for (auto f : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& t) { return nonzero(t); },
           [](const Tensor& t) { return unique(t).values; },
           [](const Tensor& t) { return masked_select(t, t > 1); },
           [](const Tensor& t) { return Tensor(t[t > 1]); },
           [](const Tensor& t) { return bincount(t.to(int64).flatten()); }}) {
    Captured c =
        capture([f](const std::vector<Tensor>& in) { return std::vector<Tensor>{f(in[0])}; });
    Error e = error_of([&] { c({x}); });
    CHECK(e.kind() == ErrorKind::State);
  }
  Captured c = capture([](const std::vector<Tensor>& in) {
    Tensor y = in[0].clone();
    y[{tensor({1, 0}), tensor({2, 2})}] += 10;
    y.index_put_(y > 12, 0);
    return std::vector<Tensor>{y, sort(y, 1, true).values, cumsum(y, 0)};
  });
  for (int n = 0; n < 3; ++n) {
    auto r = c({x + n});
    if (n == 0) CHECK(of(r[0]) == V{0, 1, 12, 3, 4, 0});
    if (n == 0) CHECK(of(r[1]) == V{12, 1, 0, 4, 3, 0});
    if (n == 1) CHECK(of(r[2]) == V{1, 2, 0, 5, 7, 0});
  }
}

TEST_CASE("long lines, and more of them than threads") {
  Tensor x = (arange(0, 300000) * 7919 % 300007).to(float32);
  std::vector<float> s = sort(x).values.to_vector<float>();
  CHECK(std::is_sorted(s.begin(), s.end()));
  Tensor order = argsort(x, 0, true);
  CHECK(of(take(x, order)[Slice{0, 2}]) == of(topk(x, 2).values));
  CHECK(cumsum(ones({300000}), 0)[-1].item() == 300000);
  CHECK(cumsum(ones({1000, 40}), 0)[{-1, 7}].item() == 1000);
  CHECK(unique(x % 100).values.numel() == 100);
  CHECK(nonzero(x > 1e9).numel() == 0);
  CHECK(masked_select(x, x < 10).numel() == (x < 10).sum().item<int64_t>());
}
