// In-place calls: copies see them, views write through to their base, copies do not.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cstdlib>

#include "graph/cell.h"
#include "graph/leaf.h"
#include "graph/node.h"
#include "support/oracle.h"

using namespace ingot;
using V = std::vector<double>;

namespace {

// Every program runs twice: once only recorded and read by the oracle, once with each value
// computed when it is looked at, so that the next write meets computed nodes.
bool computing = false;

V values(const Tensor& x) {
  oracle::Oracle oracle;
  const oracle::Value& v = oracle(x.cell()->current());
  V out;
  for (int64_t k = 0; k < v.numel(); ++k) out.push_back(v.at(k));
  if (computing) {
    CHECK(x.to_vector<double>() == out);
    x.eval_();
  }
  return out;
}

#define BOTH_WAYS                            \
  SUBCASE("recorded") { computing = false; } \
  SUBCASE("computed") { computing = true; }

struct GradOff {
  bool was = grad_enabled();
  GradOff() { set_grad_enabled(false); }
  ~GradOff() { set_grad_enabled(was); }
};

}  // namespace

TEST_CASE("arithmetic in place") {
  BOTH_WAYS
  Tensor x = arange(4, float32), copy = x;
  x += 1;
  x *= tensor({1.0, 2.0, 3.0, 4.0});
  x -= 0.5;
  x /= 2;
  CHECK(values(copy) == V{0.25, 1.75, 4.25, 7.75});
  CHECK(values(x.fill_(3)) == V{3, 3, 3, 3});
  CHECK(values(x.zero_()) == V{0, 0, 0, 0});
  CHECK(values(x.copy_(tensor({1, 2, 3, 4}))) == V{1, 2, 3, 4});
  CHECK(values(x.clamp_(2, 3)) == V{2, 2, 3, 3});
  CHECK(x.dtype() == float32);
  Tensor i = tensor({5, 6});
  i += 1;
  i.copy_(tensor({1.9, -1.9}));
  CHECK(values(i) == V{1, -1});
  CHECK(i.dtype() == int64);
}

TEST_CASE("assignment through an index") {
  BOTH_WAYS
  Tensor x = zeros({2, 3});
  x[0] = 1;
  x[{1, 2}] = 5;
  CHECK(values(x) == V{1, 1, 1, 0, 0, 5});
  x[{Slice{}, 1}] = tensor({7, 8});
  CHECK(values(x) == V{1, 7, 1, 0, 8, 5});
  x[{Ellipsis, Slice{{}, {}, 2}}] *= 10;
  CHECK(values(x) == V{10, 7, 10, 0, 8, 50});
  x[1] = x[0];
  CHECK(values(x) == V{10, 7, 10, 10, 7, 10});
  x[Ellipsis] = 2;
  CHECK(values(x) == V{2, 2, 2, 2, 2, 2});
  x[{0, Slice{{}, {}, -1}}] = tensor({1, 2, 3});
  CHECK(values(x) == V{3, 2, 1, 2, 2, 2});
  x[{NewAxis, 1}] += 1;
  CHECK(values(x) == V{3, 2, 1, 3, 3, 3});
}

TEST_CASE("views of views write through") {
  BOTH_WAYS
  Tensor x = arange(6).reshape({2, 3}).clone();
  x.view(-1)[0] = 100;
  CHECK(values(x) == V{100, 1, 2, 3, 4, 5});
  x.t()[1] = -1;
  CHECK(values(x) == V{100, -1, 2, 3, -1, 5});
  Tensor row = x[1];
  row += 10;
  CHECK(values(row) == V{13, 9, 15});
  CHECK(values(x) == V{100, -1, 2, 13, 9, 15});
  row[0] = 0;
  CHECK(values(row) == V{0, 9, 15});
  CHECK(values(x) == V{100, -1, 2, 0, 9, 15});
  x.permute({1, 0}).view({2, 3}).zero_();
  CHECK(values(x) == V{0, 0, 0, 0, 0, 0});
  x[{Slice{{}, {}, -1}, Slice{{}, {}, -1}}][{0, 0}] = 9;
  CHECK(values(x) == V{0, 0, 0, 0, 0, 9});
  x.unsqueeze(0).squeeze(0)[0].fill_(4);
  CHECK(values(x) == V{4, 4, 4, 0, 0, 9});
  x.narrow(1, 1, 2).add_(1);
  CHECK(values(x) == V{4, 5, 5, 0, 1, 10});
}

TEST_CASE("a view taken earlier follows its base, for reading and writing") {
  BOTH_WAYS
  Tensor x = zeros({3}), before = x[Slice{0, 2}];
  x += 1;
  CHECK(values(before) == V{1, 1});
  before[0] = 5;
  CHECK(values(x) == V{5, 1, 1});
  CHECK(values(before) == V{5, 1});
}

TEST_CASE("views of every kind follow, and views of views") {
  BOTH_WAYS
  Tensor x = zeros({2, 3});
  Tensor turned = x.t(), flat = x.view({6}), row = x[1], wide = x[0].expand({2, 3}),
         same = x.detach();
  std::vector<Tensor> columns = x.chunk(3, 1);
  Tensor part = flat[Slice{1, 5}][Slice{1, 3}];  // elements 2 and 3
  x += 1;
  row *= 2;
  flat[0] = 9;
  CHECK(values(x) == V{9, 1, 1, 2, 2, 2});
  CHECK(values(turned) == V{9, 2, 1, 2, 1, 2});
  CHECK(values(wide) == V{9, 1, 1, 9, 1, 1});
  CHECK(values(same) == V{9, 1, 1, 2, 2, 2});
  CHECK(values(columns[2]) == V{1, 2});
  CHECK(values(part) == V{1, 2});
  part += 10;
  CHECK(values(x) == V{9, 1, 11, 12, 2, 2});
  CHECK(values(row) == V{12, 2, 2});
}

namespace {

struct Taken {
  const char* what;
  Tensor (*take)(const Tensor&);
  bool shares;  // with its base, as in PyTorch 2.13
};

constexpr Taken kTaken[] = {
    {"reshape",
     [](const Tensor& x) {
       return x.reshape({6, 4});
     },
     true},
    {"reshape, dims merged",
     [](const Tensor& x) {
       return x.reshape({2, 12}).reshape({24});
     },
     true},
    {"reshape of swapped dims, one split",
     [](const Tensor& x) {
       return x.transpose(0, 1).reshape({3, 2, 2, 2});
     },
     true},
    {"reshape of swapped dims, merged",
     [](const Tensor& x) {
       return x.transpose(0, 1).reshape({6, 4});
     },
     false},
    {"reshape of permuted",
     [](const Tensor& x) {
       return x.permute({2, 0, 1}).reshape({24});
     },
     false},
    {"reshape of a slice",
     [](const Tensor& x) {
       return x[{Slice{}, Slice{1, 3}}].reshape({16});
     },
     false},
    {"reshape of a slice, one run",
     [](const Tensor& x) {
       return x[{Slice{}, Slice{1, 3}}].reshape({2, 8});
     },
     true},
    {"reshape of every other",
     [](const Tensor& x) {
       return x.view(24)[Slice{0, 24, 2}].reshape({3, 4});
     },
     true},
    {"reshape of expanded",
     [](const Tensor& x) {
       return x[Slice{0, 1}].expand({2, 3, 4}).reshape({24});
     },
     false},
    {"reshape of a column",
     [](const Tensor& x) {
       return x[{Ellipsis, 1}].reshape({6});
     },
     true},
    {"reshape of a view of a view",
     [](const Tensor& x) {
       return x.detach().unsqueeze(0).squeeze(0).reshape({4, 6});
     },
     true},
    {"reshape of transposed twice",
     [](const Tensor& x) { return x.transpose(0, 2).transpose(0, 2).reshape({24}); }, true},
    {"flatten", [](const Tensor& x) { return x.flatten(); }, true},
    {"flatten of transposed", [](const Tensor& x) { return x.transpose(0, 2).flatten(); }, false},
    {"flatten of two dims", [](const Tensor& x) { return x.transpose(0, 2).flatten(0, 1); }, false},
    {"ravel", [](const Tensor& x) { return ravel(x); }, true},
    {"ravel of transposed", [](const Tensor& x) { return ravel(x.transpose(0, 1)); }, false},
    {"ravel of expanded",
     [](const Tensor& x) {
       return ravel(x[{0, 0, Slice{0, 1}}].expand({3}));
     },
     false},
    {"contiguous", [](const Tensor& x) { return x.contiguous(); }, true},
    {"contiguous row", [](const Tensor& x) { return x[1].contiguous(); }, true},
    {"contiguous of transposed", [](const Tensor& x) { return x.transpose(1, 2).contiguous(); },
     false},
    {"contiguous of a slice",
     [](const Tensor& x) {
       return x[{Slice{}, Slice{1, 3}}].contiguous();
     },
     false},
    {"contiguous of expanded",
     [](const Tensor& x) {
       return x[Slice{0, 1}].expand({3, 3, 4}).contiguous();
     },
     false},
    {"contiguous of transposed twice",
     [](const Tensor& x) { return x.transpose(1, 2).transpose(1, 2).contiguous(); }, true},
    {"flip", [](const Tensor& x) { return x.flip(0); }, false},
    {"fliplr", [](const Tensor& x) { return fliplr(x); }, false},
    {"rot90", [](const Tensor& x) { return rot90(x); }, false},
    {"rot90, two quarters", [](const Tensor& x) { return rot90(x, 2); }, false},
    {"rot90, three quarters", [](const Tensor& x) { return rot90(x, 3); }, false},
    {"rot90, four quarters", [](const Tensor& x) { return rot90(x, 4); }, false},
    {"roll by 0", [](const Tensor& x) { return roll(x, 0, 0); }, false},
    {"unfold", [](const Tensor& x) { return x.unfold(2, 2, 2); }, true},
    {"unfold with gaps", [](const Tensor& x) { return x.unfold(1, 1, 2); }, true},
    {"unfold, the last step cut", [](const Tensor& x) { return x.view(24).unfold(0, 3, 7); }, true},
    {"unfold, one window", [](const Tensor& x) { return x.unfold(0, 2, int64_t{1} << 40); }, true},
    {"unfold of transposed", [](const Tensor& x) { return x.transpose(0, 2).unfold(0, 2, 2); },
     true},
    {"reshape of windows side by side",
     [](const Tensor& x) { return x.view(24).unfold(0, 4, 4).reshape({24}); }, true},
    {"unflatten of transposed",
     [](const Tensor& x) {
       return x.transpose(0, 2).unflatten(0, {2, 2});
     },
     true},
    {"diagonal of a slice",
     [](const Tensor& x) {
       return diagonal(x[{0, Slice{}, Slice{1, 4}}]);
     },
     true},
    {"squeeze of transposed",
     [](const Tensor& x) { return x.unsqueeze(1).transpose(0, 3).squeeze(1); }, true},
    {"interpolate to the same size", [](const Tensor& x) { return interpolate(x, {.size = 4}); },
     false},
};

}  // namespace

TEST_CASE("what shares elements with its base, and what is a copy") {
  BOTH_WAYS
  for (const Taken& t : kTaken) {
    CAPTURE(t.what);
    Tensor x = arange(24, float32).reshape({2, 3, 4}).clone();
    if (computing) x.eval_();
    const Tensor y = t.take(x);
    const V before = values(y);
    x += 100;
    V shifted = before;
    for (double& v : shifted) v += t.shares ? 100 : 0;
    CHECK(values(y) == shifted);
    const V base = values(x);
    Tensor(y).mul_(2);
    for (double& v : shifted) v *= 2;
    CHECK(values(y) == shifted);
    CHECK((values(x) != base) == t.shares);
  }
}

TEST_CASE("a copy of a view keeps the history") {
  BOTH_WAYS
  Tensor x = arange(6, float32).reshape({2, 3}).clone().requires_grad_();
  Tensor y = x.t().contiguous(), z = x.flip(1), w = x.t().reshape({-1});
  y.mul_(2);
  CHECK(y.requires_grad());
  (y.sum() + (z * z).sum() + w[0] * 5).backward();
  CHECK(values(x.grad()) == V{7, 4, 6, 8, 10, 12});
}

TEST_CASE("what is written through windows lands where they are") {
  BOTH_WAYS
  Tensor x = zeros({7});
  x.unfold(0, 2, 3).copy_(tensor({{1, 2}, {3, 4}}));
  CHECK(values(x) == V{1, 2, 0, 3, 4, 0, 0});
  x.unfold(0, 1, 3)[2] = 9;
  CHECK(values(x) == V{1, 2, 0, 3, 4, 0, 9});
  Tensor m = zeros({4, 2});
  m.unfold(0, 2, 2)[1] = tensor({{1, 2}, {3, 4}});
  CHECK(values(m) == V{0, 0, 0, 0, 1, 3, 2, 4});
  CHECK_THROWS_AS(x.unfold(0, 3, 2) += 1, Error);
  CHECK_THROWS_AS(x.unfold(0, 8, 1), Error);
  CHECK_THROWS_AS(x.unfold(0, 1, 0), Error);
  Tensor b = zeros({4}, bool_), i = zeros({4}, int64);
  b.unfold(0, 2, 2)[1] = true;
  i.unfold(0, 2, 2)[1] = 5;
  CHECK(values(b) == V{0, 0, 1, 1});
  CHECK(values(i) == V{0, 0, 5, 5});
  CHECK(tensor(5.0).unfold(0, 1, 1).shape() == Dims{1});
}

TEST_CASE("what is written without gradients leaves the history") {
  BOTH_WAYS
  const auto gradient_after = [](void (*write)(Tensor&)) {
    Tensor x = ones({2}).requires_grad_(), w = ones({2}).requires_grad_(), y = x * 3;
    if (computing) y.eval_();
    write(y);
    CHECK(y.requires_grad());
    CHECK_FALSE(y.is_leaf());
    (y * w).sum().backward();
    V all = values(x.grad());
    for (double v : values(w.grad())) all.push_back(v);
    return all;
  };
  CHECK(gradient_after([](Tensor& y) {
          NoGrad guard;
          y.mul_(2);
        }) == V{3, 3, 6, 6});
  CHECK(gradient_after([](Tensor& y) { y.detach().clamp_(-1, 1); }) == V{3, 3, 1, 1});
  CHECK(gradient_after([](Tensor& y) { y.detach()[0] = 0; }) == V{3, 3, 0, 3});
  CHECK(gradient_after([](Tensor& y) {
          NoGrad guard;
          y[1] = 7;
        }) == V{3, 3, 3, 7});
  CHECK(gradient_after([](Tensor& y) {
          NoGrad guard;
          for (int i = 0; i < 100; ++i) y.add_(1);
        }) == V{3, 3, 103, 103});
  CHECK(gradient_after([](Tensor& y) {
          y.detach().mul_(2);
          y.mul_(2);
          y.detach().mul_(2);
        }) == V{6, 6, 24, 24});
}

TEST_CASE("what is written without gradients gives no history") {
  BOTH_WAYS
  Tensor w = ones({2}).requires_grad_(), v = w * 2, y = zeros({2}), z = zeros({2});
  {
    NoGrad guard;
    y.copy_(v);
  }
  z.detach().copy_(v);
  CHECK_FALSE(y.requires_grad());
  CHECK_FALSE(z.requires_grad());
  CHECK(v.requires_grad());
  CHECK(values(y) == V{2, 2});
  CHECK(values(z) == V{2, 2});
}

TEST_CASE("second-order gradients pass a write without gradients") {
  Tensor x = tensor({2.0}).requires_grad_(), y = x * x * x;
  y.detach().mul_(2);
  Tensor g = grad({y * y}, {x}, {}, true, true)[0];
  // y = 16 with the gradient 3 x^2: g = 2 y 3 x^2, and g's own gradient is 2 (3 x^2)^2 + 2 y 6 x.
  CHECK(g.to_vector<double>() == V{384});
  g.backward();
  CHECK(x.grad().to_vector<double>() == V{672});
}

TEST_CASE("a long chain of views follows and is released without recursion") {
  Tensor x = zeros({2}), v = x;
  for (int i = 0; i < 10000; ++i) v = v[Slice{0, 2}].view({1, 2}).view({2});
  x.fill_(3);
  CHECK(v.to_vector<float>() == std::vector<float>{3, 3});
}

TEST_CASE("gradients go through a view that was taken before its base changed") {
  BOTH_WAYS
  Tensor x = ones({3}).requires_grad_(), y = x * 2, v = y[Slice{1, 3}];
  y *= 3;
  CHECK(v.requires_grad());
  v.sum().backward();
  CHECK(values(x.grad()) == V{0, 6, 6});
  // A base that gets a history by an in-place call gives it to its views; what detach() gave has
  // none.
  Tensor w = ones({2}).requires_grad_(), base = zeros({3}), later = base[Slice{1, 3}],
         cut = base.detach();
  base[1] = w[0] * 5;
  CHECK(later.requires_grad());
  CHECK_FALSE(cut.requires_grad());
  CHECK(values(cut) == V{0, 5, 0});
  later.sum().backward();
  CHECK(values(w.grad()) == V{5, 0});
}

TEST_CASE("what becomes a leaf is no view any more") {
  BOTH_WAYS
  Tensor from = ones({3}), x = from.detach().requires_grad_();
  {
    NoGrad guard;
    x.mul_(2);
  }
  CHECK(x.requires_grad());
  CHECK(values(x) == V{2, 2, 2});
  CHECK(values(from) == V{1, 1, 1});
  optim::SGD opt({x}, {.lr = 0.5});
  (x * x).sum().backward();
  opt.step();
  NoGrad guard;
  x.clamp_(0, 0.25);
  CHECK(x.requires_grad());
  CHECK(values(x) == V{0, 0, 0});
}

TEST_CASE("clones and results are on their own") {
  BOTH_WAYS
  Tensor x = zeros({2}), y = x.clone(), z = x + 0, w = pow(x, 1);
  x += 1;
  y += 2;
  w += 3;
  CHECK(values(x) == V{1, 1});
  CHECK(values(y) == V{2, 2});
  CHECK(values(z) == V{0, 0});
  CHECK(values(w) == V{3, 3});
}

TEST_CASE("a detached tensor shares the value") {
  BOTH_WAYS
  Tensor x = zeros({2});
  x.detach() += 1;
  CHECK(values(x) == V{1, 1});
}

TEST_CASE("a computed value is assigned, so that a failed run leaves it") {
  Tensor x = tensor({1.0, 2.0});
  x += 1;
  CHECK(x.cell()->current()->op == Op::Assign);
  Tensor y = zeros({2});
  y += 1;
  if (!std::getenv("INGOT_EAGER")) CHECK(y.cell()->current()->op == Op::Add);
}

TEST_CASE("a leaf stays a leaf when it is updated without gradients") {
  BOTH_WAYS
  Tensor p = tensor({1.0, 2.0});
  LeafMeta* meta = new LeafMeta;
  p.cell()->meta.set(meta);
  p.cell()->current()->leaf.set(meta);
  p.cell()->current()->requires_grad = true;
  CHECK_THROWS_AS(p += 1, Error);
  CHECK_THROWS_AS(p[0] = 1, Error);
  CHECK(values(p) == V{1, 2});
  {
    GradOff off;
    p -= 1;
    p[0] = 7;
  }
  CHECK(values(p) == V{7, 1});
  CHECK(p.cell()->current()->requires_grad);
  CHECK(p.cell()->current()->leaf.get() == meta);
  CHECK(p.cell()->current()->op == Op::Assign);
  p.detach().zero_();
  CHECK(values(p) == V{0, 0});
  CHECK(p.cell()->current()->requires_grad);
}

TEST_CASE("a mistake changes nothing") {
  Tensor x = tensor({{1, 2}, {3, 4}});
  NodeRef before = x.cell()->current();
  CHECK_THROWS_AS(x += 1.5, Error);
  CHECK_THROWS_AS(x += ones({3}, int64), Error);
  CHECK_THROWS_AS(x[0] = ones({3}), Error);
  CHECK_THROWS_AS(x[2] = 0, Error);
  CHECK_THROWS_AS(x.unsqueeze(0).expand({2, 2, 2}) += 1, Error);
  CHECK(x.cell()->current() == before);
}
