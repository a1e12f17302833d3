// Functions of networks against what PyTorch gives (golden.inc, written by golden.py): type,
// shape and values, once by the oracle (is the right graph recorded?) and once by the executor (is
// it computed right?).
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cmath>

#include "graph/cell.h"
#include "support/oracle.h"

using namespace ingot;
using V = std::vector<double>;
[[maybe_unused]] static constexpr double INF = HUGE_VAL;

namespace {

Tensor ramp(const Dims& shape, int a, int m, double scale, double shift) {
  std::vector<float> v;
  for (int k = 0; k < shape.numel(); ++k)
    v.push_back(static_cast<float>((k * a) % m * scale + shift));
  return tensor(v, shape);
}

bool close(double got, double want, DType t) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || !is_float(t)) return got == want;
  return std::fabs(got - want) <= 3e-5 * (std::fabs(want) + 0.1);
}

void check(const std::string& what, const Tensor& x, DType dtype, const Dims& shape,
           const V& want) {
  INFO(what);
  CHECK_MESSAGE(x.dtype() == dtype, name_of(x.dtype()));
  REQUIRE_MESSAGE(x.shape() == shape, to_string(x.shape()));
  oracle::Oracle oracle;
  const oracle::Value value = oracle(x.cell()->current());
  V run(want.size(), NAN);
  CHECK_NOTHROW(run = x.to_vector<double>());
  for (size_t k = 0; k < want.size(); ++k) {
    double seen = value.at(static_cast<int64_t>(k));
    CHECK_MESSAGE(close(seen, want[k], dtype),
                  "oracle, element " << k << ": " << seen << ", PyTorch: " << want[k]);
    CHECK_MESSAGE(close(run[k], want[k], dtype),
                  "computed, element " << k << ": " << run[k] << ", PyTorch: " << want[k]);
  }
}

// The gradient of a sum that weights y's elements differently.
Tensor slope(const Tensor& y, const Tensor& x) {
  Tensor q = arange(y.numel()).to(float32).reshape(y.shape()) * 0.125 - 1.0;
  return grad({(y * q).sum()}, {x})[0];
}

Tensor moved(const Tensor& x, const Tensor& mean, const Tensor& var) {
  Tensor m = mean.clone(), v = var.clone();
  (void)batch_norm(x, m, v, {}, {}, true);
  return cat({m, v});
}

std::vector<Tensor> rnn_weights(int64_t gates, int64_t h, const std::vector<int64_t>& ins) {
  std::vector<Tensor> w;
  for (size_t k = 0; k < ins.size(); ++k) {
    const int n = static_cast<int>(k);
    w.push_back(ramp({gates * h, ins[k]}, 5 + n, 19, 0.0625, -0.5));
    w.push_back(ramp({gates * h, h}, 7 + n, 17, 0.0625, -0.5));
    w.push_back(ramp({gates * h}, 3, 7, 0.125, -0.5));
    w.push_back(ramp({gates * h}, 5, 11, 0.125, -0.5));
  }
  return w;
}

}  // namespace

TEST_CASE("PyTorch's values") {
  Tensor s1 = ramp({2, 4, 9}, 7, 23, 0.25, -2.5), s2 = ramp({2, 4, 6, 7}, 11, 37, 0.125, -2.0);
  Tensor s3 = ramp({1, 2, 4, 5, 6}, 13, 41, 0.125, -2.5),
         p2 = ramp({1, 2, 6, 6}, 5, 29, 0.125, 0.125);
  Tensor w1 = ramp({6, 2, 3}, 5, 19, 0.125, -1.0), w2 = ramp({6, 4, 3, 2}, 7, 31, 0.0625, -1.0);
  Tensor g2 = ramp({4, 2, 2, 3}, 7, 31, 0.0625, -1.0),
         w3 = ramp({3, 2, 2, 3, 2}, 5, 43, 0.0625, -1.25);
  Tensor t1 = ramp({4, 3, 3}, 5, 19, 0.125, -1.0), t2 = ramp({4, 3, 3, 2}, 7, 31, 0.0625, -1.0);
  Tensor t3 = ramp({2, 2, 2, 2, 3}, 5, 43, 0.0625, -1.25), b6 = ramp({6}, 3, 7, 0.5, -1.0),
         b3 = ramp({3}, 3, 7, 0.5, -1.0);
  Tensor m4 = ramp({4}, 5, 11, 0.25, -1.0), v4 = ramp({4}, 3, 7, 0.25, 0.5),
         q = ramp({1, 1, 4, 4}, 3, 3, 1.0, 0.0);
  q.requires_grad_();
  Tensor x3 = ramp({4, 3, 3}, 7, 23, 0.125, -1.25), h0 = ramp({4, 3, 2}, 5, 19, 0.125, -1.0),
         c0 = ramp({4, 3, 2}, 7, 17, 0.125, -1.0);
  std::vector<Tensor> lw = rnn_weights(4, 2, {3, 3, 4, 4}), gw = rnn_weights(3, 2, {3}),
                      pw = rnn_weights(4, 2, {3, 3});
  std::vector<Tensor> rw = rnn_weights(1, 3, {3});
  rw.resize(2);
  RnnOptions two, first, packed;
  two.num_layers = 2;
  two.bidirectional = packed.bidirectional = first.batch_first = true;
  packed.lengths = {4, 2, 3};
#define TEXT(...) #__VA_ARGS__
#define BARE(...) __VA_ARGS__
#define GOLDEN(expr, dtype, shape, values) \
  check(TEXT expr, BARE expr, dtype, BARE shape, BARE values);
#include "golden.inc"
}
