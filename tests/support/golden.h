// What the golden tests share: the inputs (golden_common.py makes the same) and the comparison of
// one expression with PyTorch's type, shape and values, once by the oracle (is the right graph
// recorded?) and once computed.
#pragma once
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cmath>

#include "graph/cell.h"
#include "support/oracle.h"

namespace ingot::golden {

using V = std::vector<double>;
inline constexpr double INF = HUGE_VAL;

inline Tensor ramp(const Dims& shape, int a, int m, double scale, double shift) {
  std::vector<float> v;
  for (int k = 0; k < shape.numel(); ++k)
    v.push_back(static_cast<float>((k * a) % m * scale + shift));
  return tensor(v, shape);
}

inline bool close(double got, double want, DType t) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || !is_float(t)) return got == want;
  if (want == 0 && got == 0) return std::signbit(got) == std::signbit(want);
  double rel = t == float16 ? 2e-3 : t == bfloat16 ? 2e-2 : 2e-5;
  return std::fabs(got - want) <= rel * (std::fabs(want) + 0.1);
}

inline void check(const std::string& what, const Tensor& x, DType dtype, const Dims& shape,
                  const V& want) {
  INFO(what);
  CHECK_MESSAGE(x.dtype() == dtype, name_of(x.dtype()));
  REQUIRE_MESSAGE(x.shape() == shape, to_string(x.shape()));
  oracle::Oracle oracle;
  const oracle::Value& value = oracle(x.cell()->current());
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

struct Inputs {
  Tensor x = ramp({3, 4}, 7, 23, 0.25, -2.5), y = ramp({3, 4}, 5, 19, 0.5, -3.0),
         p = ramp({3, 4}, 11, 29, 0.125, 0.125);
  Tensor r = ramp({4}, 3, 7, 1.0, -2.0), c = ramp({2, 3, 4}, 7, 37, 0.125, -2.0),
         w = ramp({5, 4}, 7, 31, 0.125, -1.5);
  Tensor k = ramp({3, 4}, 7, 23, 1.0, -11.0).to(int64), j = ramp({3, 4}, 5, 19, 1.0, 1.0).to(int64);
  Tensor m = x > 0, lab = tensor({1, 3, 0}), idx = tensor({{0, 2, 1, 0}, {1, 1, 2, 0}});
  Tensor h = x.to(float16), z = tensor(2.5), e = zeros({0, 4});
  // NaN, infinities, zeros of both signs, very large and small numbers.
  Tensor s = tensor({double(NAN), INF, -INF, -0.0, 0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, -1e30});
  Tensor q = tensor({1.0, -0.0, 2.0, 3.0, -0.0, double(NAN), 0.0, INF, -INF, -2.0, 1e30, 1e-30});
  Tensor a = ramp({3, 3}, 5, 11, 0.25, -1.0) + 3 * eye(3),
         g = ramp({2, 4, 4}, 7, 29, 0.125, -1.5) + 4 * eye(4);
};

}  // namespace ingot::golden

#define TEXT(...) #__VA_ARGS__
#define BARE(...) __VA_ARGS__
#define GOLDEN(expr, dtype, shape, values) \
  ingot::golden::check(TEXT expr, BARE expr, dtype, BARE shape, BARE values);
