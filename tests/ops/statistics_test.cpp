// cov, corrcoef and quantiles against loops in float64 and by finite differences; round(decimals)
// and add(alpha).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/nn_check.h"

using namespace ingot;
using namespace ingot::check;

namespace {

using V = std::vector<double>;

void close(const Tensor& got, const V& want, double tolerance) {
  const V g = got.to(float64).to_vector<double>();
  REQUIRE(g.size() == want.size());
  for (size_t i = 0; i < g.size(); ++i) {
    if (std::isnan(want[i]))
      CHECK(std::isnan(g[i]));
    else
      CHECK(std::fabs(g[i] - want[i]) <= tolerance * std::max(1.0, std::fabs(want[i])));
  }
}

// Row i of x with how often and how much each observation counts.
V covariance(const V& x, size_t rows, const V& often, const V& much, double correction,
             bool has_much) {
  const size_t n = x.size() / rows;
  double total = 0, squares = 0;
  V mean(rows);
  for (size_t k = 0; k < n; ++k) {
    const double w = often[k] * much[k];
    total += w;
    squares += w * much[k];
    for (size_t r = 0; r < rows; ++r) mean[r] += w * x[r * n + k];
  }
  for (double& m : mean) m /= total;
  const double count = std::max(0.0, total - correction * (has_much ? squares / total : 1));
  V c;
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < rows; ++j) {
      double sum = 0;
      for (size_t k = 0; k < n; ++k)
        sum += often[k] * much[k] * (x[i * n + k] - mean[i]) * (x[j * n + k] - mean[j]);
      c.push_back(sum / count);
    }
  return c;
}

double quantile_of(V x, double q, const std::string& how) {
  std::sort(x.begin(), x.end());
  const double rank = q * static_cast<double>(x.size() - 1);
  const double low = x[static_cast<size_t>(std::floor(rank))];
  const double high = x[static_cast<size_t>(std::ceil(rank))];
  if (how == "lower") return low;
  if (how == "higher") return high;
  if (how == "nearest") return x[static_cast<size_t>(std::nearbyint(rank))];
  return low + (high - low) * (how == "midpoint" ? 0.5 : rank - std::floor(rank));
}

const V kValues{0.3, -1.2, 2.5, 0.7, -0.4, 1.9, 3.1, -2.2, 0.05, 1.1, -0.9, 0.6};

}  // namespace

TEST_CASE("cov and corrcoef") {
  const V one(4, 1), often{1, 3, 2, 1}, much{0.5, 1, 0.25, 2};
  for (DType t : {float64, float32, bfloat16}) {
    const double tolerance = t == float64 ? 1e-12 : t == float32 ? 1e-5 : 2e-2;
    const Tensor x = tensor(kValues, {3, 4}).to(t);
    const V rounded = x.to(float64).to_vector<double>();
    const Tensor f = tensor(often).to(int64), a = tensor(much).to(t);
    close(cov(x), covariance(rounded, 3, one, one, 1, false), tolerance);
    close(cov(x, 0), covariance(rounded, 3, one, one, 0, false), tolerance);
    close(cov(x, 1, f), covariance(rounded, 3, often, one, 1, false), tolerance);
    close(cov(x, 1, {}, a), covariance(rounded, 3, one, much, 1, true), tolerance);
    close(cov(x, 1, f, a), covariance(rounded, 3, often, much, 1, true), tolerance);
    CHECK(cov(x).dtype() == t);
    V c = covariance(rounded, 3, one, one, 1, false), r;
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j)
        r.push_back(c[3 * i + j] / std::sqrt(c[4 * i]) / std::sqrt(c[4 * j]));
    close(corrcoef(x), r, tolerance);
  }
  const Tensor row = tensor(V{1, 2, 4}, float64);
  CHECK(cov(row).dim() == 0);
  close(cov(row), {7.0 / 3}, 1e-12);
  close(corrcoef(row), {1}, 0);
  CHECK(cov(tensor({1, 2, 4})).dtype() == float32);
  CHECK(std::isnan(cov(tensor(V{3})).item()));
  const auto f = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{cov(in[0]), corrcoef(in[0]), cov(in[0], 1, {}, in[1])};
  };
  CHECK(gradcheck(f, {tensor(kValues, {3, 4}, float64), tensor(much, float64)}));
  const Tensor x = tensor(kValues, {3, 4});
  CHECK_THROWS_AS(cov(x.unsqueeze(0)), Error);
  CHECK_THROWS_AS(cov(x > 0.0), Error);
  CHECK_THROWS_AS(cov(x, 1, ones({3}, int64)), Error);
  CHECK(contains(message([&] { cov(x, 1, ones({4})); }, ErrorKind::DType), "fweights"));
  CHECK(contains(message([&] { cov(x, 1, {}, ones({4}, int64)); }, ErrorKind::DType), "aweights"));
}

TEST_CASE("quantile and nanquantile") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const V shares{0, 0.1, 0.37, 0.5, 0.9, 1};
  for (DType t : {float64, float32})
    for (const char* how : {"linear", "lower", "higher", "midpoint", "nearest"}) {
      const Tensor x = tensor(kValues, {3, 4}).to(t), q = tensor(shares).to(t);
      V all, by_row, by_column;
      for (double s : shares) {
        all.push_back(quantile_of(kValues, s, how));
        for (size_t r = 0; r < 3; ++r)
          by_row.push_back(quantile_of(V(kValues.begin() + static_cast<long>(4 * r),
                                         kValues.begin() + static_cast<long>(4 * r + 4)),
                                       s, how));
        for (size_t k = 0; k < 4; ++k)
          by_column.push_back(quantile_of({kValues[k], kValues[k + 4], kValues[k + 8]}, s, how));
      }
      close(quantile(x, q, {}, false, how), all, 1e-6);
      close(quantile(x, q, 1, false, how), by_row, 1e-6);
      close(quantile(x, q, 0, false, how), by_column, 1e-6);
      close(nanquantile(x, q, -1, false, how), by_row, 1e-6);
      CHECK(quantile(x, q, 1, true, how).shape() == Dims{6, 3, 1});
      CHECK(quantile(x, q, -2, true, how).shape() == Dims{6, 1, 4});
      CHECK(quantile(x, q, {}, true, how).shape() == Dims{6, 1, 1});
      CHECK(quantile(x, 0.3, {}, true, how).shape() == Dims{1, 1});
      CHECK(quantile(x, 0.3, 0, false, how).shape() == Dims{4});
      CHECK(quantile(x, 0.3, {}, false, how).dim() == 0);
    }
  Tensor gaps = tensor(V{nan, 1, 3, 2, nan, nan, 4, 5, 6}, {3, 3}, float64);
  close(quantile(gaps, 0.5, 1), {nan, nan, 5}, 0);
  close(nanquantile(gaps, 0.5, 1), {2, 2, 5}, 0);
  close(nanquantile(gaps * nan, 0.5, 1), {nan, nan, nan}, 0);
  CHECK(quantile(tensor(kValues).to(bfloat16), 0.5).dtype() == bfloat16);
  for (const char* how : {"linear", "midpoint", "nearest"})
    CHECK(gradcheck(
        [&](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{quantile(in[0], tensor(V{0.1, 0.6}, float64), 1, false, how),
                                     nanquantile(in[0], 0.4, {}, false, how)};
        },
        {tensor(kValues, {3, 4}, float64)}));
  const Tensor x = tensor(kValues);
  CHECK(contains(message([&] { quantile(x, 1.5); }, ErrorKind::Value), "1.5"));
  CHECK(contains(message([&] { quantile(x, 0.5, {}, false, "nearly"); }, ErrorKind::Value),
                 "nearly"));
  CHECK_THROWS_AS(quantile(tensor({1, 2}), 0.5), Error);
  CHECK_THROWS_AS(quantile(x, ones({1, 1})), Error);
  CHECK_THROWS_AS(quantile(x, tensor({1})), Error);
  CHECK_THROWS_AS(quantile(zeros({0}), 0.5), Error);
  CHECK_THROWS_AS(quantile(x, 0.5, 1), Error);
}

TEST_CASE("round to decimals: PyTorch's values, in 16 bits too") {
  const V x{123.456, -7.891, 1234.5, 0.125, 65000, 3.14159};
  const auto check = [&](DType t, int64_t decimals, const V& want) {
    close(round(tensor(x).to(t), decimals), want, 1e-7);
  };
  check(float32, 2,
        {123.45999908447266, -7.889999866485596, 1234.5, 0.11999999731779099, 65000,
         3.140000104904175});
  check(float32, -2, {100, 0, 1200, 0, 65000, 0});
  check(float32, -5, {0, 0, 0, 0, 100000, 0});
  check(float16, 2, {123.4375, -7.890625, 1234, 0.1199951171875, 64992, 3.140625});
  check(float16, 1, {123.375, -7.8984375, 1234, 0.0999755859375, 64992, 3.099609375});
  check(float16, 5, {123.4375, -7.890625, 1234, 0.125, 64992, 3.140625});
  check(bfloat16, 1, {123.5, -7.90625, 1232, 0.10009765625, 65024, 3.09375});
  check(bfloat16, -5, {0, 0, 0, 0, 99840, 0});
  CHECK_THROWS_AS(round(tensor({15}), -1), Error);
}

TEST_CASE("add with alpha: integers wrap, alpha fits the type") {
  const Tensor whole = tensor({1, 2}).to(int64), small = tensor({1, 2}).to(int8);
  CHECK(add(whole, int64_t{1} << 62, 4).to_vector<int64_t>() == std::vector<int64_t>{1, 2});
  CHECK(sub(whole, 3, 2).to_vector<int64_t>() == std::vector<int64_t>{-5, -4});
  CHECK(rsub(whole, 10, 3).to_vector<int64_t>() == std::vector<int64_t>{7, 4});
  CHECK(add(whole, 0.5, 3).to_vector<double>() == V{2.5, 3.5});
  CHECK(contains(message([&] { add(small, small, 300); }, ErrorKind::Value), "300"));
  CHECK(
      contains(message([&] { rsub(small, small, 0.5); }, ErrorKind::DType), "must be an integer"));
  Tensor x = tensor({1, 2}).to(int64);
  x.add_(whole, 3).sub_(2, 2);
  CHECK(x.to_vector<int64_t>() == std::vector<int64_t>{0, 4});
  CHECK_THROWS_AS(x.add_(whole, 0.5), Error);
}

TEST_CASE("the slope of sinc is exact near 0") {
  const auto slope = [](double v) {
    const double t = 3.141592653589793 * v;
    if (std::fabs(t) < 0.5) {  // by its series
      double term = -t / 3, sum = 0;
      for (int k = 1; k < 12; ++k) {
        sum += term;
        term *= -t * t / (2.0 * k * (2 * k + 3));
      }
      return 3.141592653589793 * sum;
    }
    return (std::cos(t) - std::sin(t) / t) / v;
  };
  const V x{0, -0.0, 1e-30, 1e-8, -1e-4, 0.003, 0.0999, 0.1, -0.1001, 0.15, 0.5, 1, 2.25, -3.5};
  for (DType t : {float64, float32, bfloat16, float16}) {
    Tensor p = tensor(x).to(t).eval_();
    p.requires_grad_();
    const V rounded = p.to(float64).to_vector<double>();
    V want, value;
    for (double v : rounded) want.push_back(slope(v));
    sinc(p).sum().backward();
    const V got = p.grad().to(float64).to_vector<double>();
    const double tolerance = t == float64   ? 1e-13
                             : t == float32 ? 2e-5
                             : t == float16 ? 1e-3
                                            : 8e-3;
    for (size_t i = 0; i < x.size(); ++i) {
      INFO(name_of(t) << " " << x[i]);
      CHECK(std::fabs(got[i] - want[i]) <=
            tolerance * std::fabs(want[i]) + (t == float16 ? 6e-8 : 0));
    }
    CHECK(got[0] == 0);
  }
  CHECK(gradgradcheck([](const std::vector<Tensor>& in) { return std::vector{sinc(in[0])}; },
                      {tensor(V{0, 0.01, 0.05, 0.12, -0.4, 1.3}, float64)}));
}
