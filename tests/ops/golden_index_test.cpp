// Scans, sorting, searching, reductions and index functions against what PyTorch gives
// (golden_index.inc, written by golden_index.py): type, shape and values, once by the oracle and
// once by the executor.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cmath>

#include "graph/cell.h"
#include "support/oracle.h"

using namespace ingot;
using V = std::vector<double>;
static constexpr double INF = HUGE_VAL;

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
  double rel = t == float16 ? 2e-3 : 2e-5;
  return std::fabs(got - want) <= rel * (std::fabs(want) + 0.1);
}

void check(const std::string& what, const Tensor& x, DType dtype, const Dims& shape,
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

Tensor assigned(const Tensor& x, const Indices& index, const Operand& value) {
  Tensor out = x.clone();
  out[index] = value;
  return out;
}
Tensor increased(const Tensor& x, const Indices& index, const Operand& value) {
  Tensor out = x.clone();
  out[index] += value;
  return out;
}

}  // namespace

TEST_CASE("PyTorch's values of scans, sorts and index functions") {
  Tensor x = ramp({3, 4}, 7, 23, 0.25, -2.5), y = ramp({3, 4}, 5, 19, 0.5, -3.0),
         c = ramp({2, 3, 4}, 7, 37, 0.125, -2.0);
  Tensor k = ramp({3, 4}, 7, 23, 1.0, -11.0).to(int64), d = k % 4,
         v = index_select(k.flatten(), 0, tensor({0, 4, 1, 1, 8, 0})) % 5;
  Tensor m = x > 0, lab = tensor({1, 3, 0}), idx = tensor({{0, 2, 1, 0}, {1, 1, 2, 0}});
  Tensor nan = tensor({1.0, HUGE_VAL - HUGE_VAL, -2.0, INF, -INF, HUGE_VAL - HUGE_VAL, 0.0, -0.0});
  Tensor z = tensor(2.5), e = zeros({0, 4}), h = x.to(float16);
#define TEXT(...) #__VA_ARGS__
#define BARE(...) __VA_ARGS__
#define GOLDEN(expr, dtype, shape, values) \
  check(TEXT expr, BARE expr, dtype, BARE shape, BARE values);
#include "golden_index.inc"
}
