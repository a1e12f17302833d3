// Gradients of Scatter and Scan. All of it is written with differentiable functions; what only says
// where the gradient goes (which position was the last, where the zeros are) is not differentiated.
#include <limits>

#include "autograd/rules.h"
#include "graph/lift.h"
#include "ingot/ops.h"

namespace ingot::autograd {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor scan(ScanKind kind, const Tensor& x, int axis) {
  return make(Op::Scan, {node_of(x)}, {ScanAttrs{axis, kind}});
}
// From each position to the end.
Tensor scan_back(ScanKind kind, const Tensor& x, int axis) {
  return flip(scan(kind, flip(x, axis), axis), axis);
}

// out_i is the product of x_j up to i. With w = g * out, the gradient is the sum of w from j on,
// over x_j. The first zero z of a line needs the products without it; positions after it only
// meet products with a zero.
Tensor product_scan_back(const RuleCall& c, int axis) {
  Tensor x = lift(c.input(0)), out = lift(&c.n);
  Tensor zero = x == 0.0;
  Tensor zeros = scan(ScanKind::Sum, zero.to(int64), axis);
  Tensor first = logical_and(zero, zeros == 1);
  Tensor before = scan_back(ScanKind::Sum, c.g * out, axis) / where(zero, 1.0, x);
  Tensor without = scan(ScanKind::Prod, where(first, 1.0, x), axis);
  Tensor at_first = scan_back(ScanKind::Sum, c.g * without, axis);
  return where(zeros == 0, before, where(first, at_first, 0.0));
}

// The gradient is sum over i >= j of g_i exp(x_j - out_i): taken in logarithms, positive and
// negative g apart.
Tensor log_scan_back(const RuleCall& c, int axis) {
  Tensor x = lift(c.input(0)), out = lift(&c.n);
  auto part = [&](const Tensor& g) {
    Tensor some = logical_and(g > 0.0, out != -kInf);
    Tensor logs = where(some, log(where(some, g, 1.0)) - out, -kInf);
    return exp(scan_back(ScanKind::LogSum, logs, axis) + x);
  };
  Tensor away = x == -kInf;
  return where(away, 0.0, part(c.g) - part(-c.g));
}

struct Scattered {
  Tensor base, index, value;
  IndexAttrs at;  // the check is the forward's

  explicit Scattered(const RuleCall& c)
      : base(lift(c.input(0))), index(lift(c.input(1))), value(lift(c.input(2))) {
    at = {c.attrs<ScatterAttrs>().axis, c.attrs<ScatterAttrs>().check};
  }
  Tensor gathered(const Tensor& x) const {
    return make(Op::Gather, {node_of(x), node_of(index)}, {at});
  }
  Tensor scattered(ScatterMode mode, const Tensor& to, const Tensor& v) const {
    return make(Op::Scatter, {node_of(to), node_of(index), node_of(v)},
                {ScatterAttrs{at.axis, mode, at.check}});
  }
  Tensor added(const Tensor& v) const {
    return make(Op::ScatterAdd, {node_of(index), node_of(v)}, {at, base.shape()});
  }
};

// Of several values for one position the last one stays and takes the gradient.
void set_rule(const RuleCall& c) {
  Scattered s(c);
  if (c.wants(0)) c.out[0] = s.scattered(ScatterMode::Set, c.g, zeros_like(s.value));
  if (!c.wants(2)) return;
  Dims along = Dims::filled(s.index.dim(), 1);
  along[s.at.axis] = s.index.size(s.at.axis);
  Tensor place =
      arange(along[s.at.axis], {int64, s.base.device()}).reshape(along).expand(s.index.shape());
  Tensor last =
      s.scattered(ScatterMode::Set, zeros(s.base.shape(), {int64, s.base.device()}), place);
  c.out[2] = where(s.gathered(last) == place, s.gathered(c.g), 0.0);
}

// The product of the other factors; see product_back() in rules_reduce.cpp.
void product_rule(const RuleCall& c) {
  Scattered s(c);
  if (c.wants(0)) c.out[0] = c.g * s.scattered(ScatterMode::Prod, ones_like(s.base), s.value);
  if (!c.wants(2)) return;
  Tensor zero = s.value == 0.0;
  Tensor factors = where(zero, 1.0, s.value);
  Tensor zeros = s.gathered(s.added(zero.to(s.value.dtype())));
  Tensor others = s.gathered(s.scattered(ScatterMode::Prod, s.base, factors)) / factors;
  c.out[2] = where(where(zero, zeros == 1.0, zeros == 0.0), s.gathered(c.g) * others, 0.0);
}

// Equal extremes share the gradient.
void extreme_rule(const RuleCall& c) {
  Scattered s(c);
  Tensor out = lift(&c.n);
  Tensor from_base = (s.base == out).to(out.dtype()),
         from_value = (s.value == s.gathered(out)).to(out.dtype());
  Tensor share = c.g / (from_base + s.added(from_value));
  if (c.wants(0)) c.out[0] = share * from_base;
  if (c.wants(2)) c.out[2] = s.gathered(share) * from_value;
}

}  // namespace

namespace gradient {

void scatter(const RuleCall& c) {
  switch (c.attrs<ScatterAttrs>().mode) {
    case ScatterMode::Set:
      return set_rule(c);
    case ScatterMode::Prod:
      return product_rule(c);
    case ScatterMode::Max:
    case ScatterMode::Min:
      return extreme_rule(c);
  }
}

void scan(const RuleCall& c) {
  const ScanAttrs& a = c.attrs<ScanAttrs>();
  if (!c.wants(0)) return;
  if (a.kind == ScanKind::Sum) c.out[0] = scan_back(ScanKind::Sum, c.g, a.axis);
  if (a.kind == ScanKind::Prod) c.out[0] = product_scan_back(c, a.axis);
  if (a.kind == ScanKind::LogSum) c.out[0] = log_scan_back(c, a.axis);
}

}  // namespace gradient
}  // namespace ingot::autograd
