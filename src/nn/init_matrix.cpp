// Initial values that are computed on the host: truncated normal, orthogonal, sparse, and the fixed
// ones.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ingot/autograd.h"
#include "ingot/nn/init.h"
#include "ops/common.h"

namespace ingot::nn::init {
namespace {

void check(const Tensor& t, const char* op, int least, int most, const SourceLoc& loc) {
  NodeRef n = node_of(t, op, loc);
  if (!is_float(n->dtype))
    fail(ErrorKind::DType, op, "needs a floating type, not " + describe(t), loc,
         "make the tensor with float32");
  if (n->rank() < least || n->rank() > most)
    fail(ErrorKind::Shape, op,
         "expects " + std::to_string(least) +
             (most > 9 ? " dims or more" : " to " + std::to_string(most) + " dims") + ", not " +
             describe(t),
         loc);
}

Tensor write(Tensor t, const std::vector<double>& values, const SourceLoc& loc) {
  NoGrad guard;
  t.copy_(tensor(values, t.shape()).to(t.dtype()).to(t.device()), loc);
  t.eval_(loc);
  return t;
}

// The inverse of the normal distribution function, by bisection and Newton steps on erfc:
// exact to double's last bits.
double normal_quantile(double p) {
  const auto below = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  double low = -40, high = 40;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (below(middle) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

Tensor trunc_normal_(Tensor t, double mean, double std, double a, double b,
                     const Generator& generator, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check(t, "trunc_normal_", 0, 10, loc);
  if (!(a < b)) fail(ErrorKind::Value, "trunc_normal_", "a must be less than b", loc);
  if (!(std > 0)) fail(ErrorKind::Value, "trunc_normal_", "std must be positive", loc);
  const auto below = [&](double x) { return 0.5 * std::erfc(-(x - mean) / std / std::sqrt(2.0)); };
  const double low = below(a), high = below(b);
  std::vector<double> v = rand(t.shape(), float64, generator).to_vector<double>();
  for (double& x : v) x = std::clamp(mean + std * normal_quantile(low + (high - low) * x), a, b);
  return write(std::move(t), v, loc);
}

Tensor orthogonal_(Tensor t, double gain, const Generator& generator, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check(t, "orthogonal_", 2, 10, loc);
  const size_t rows = static_cast<size_t>(t.size(0)),
               columns = rows ? static_cast<size_t>(t.numel()) / rows : 0;
  if (t.numel() == 0) return t;
  std::vector<double> v = randn(t.shape(), float64, generator).to_vector<double>();
  // The shorter side's vectors are orthogonalised one after the other, twice: one pass leaves
  // rounding errors.
  const size_t vectors = std::min(rows, columns), length = std::max(rows, columns);
  const auto at = [&](size_t vector, size_t i) -> double& {
    return rows <= columns ? v[vector * columns + i] : v[i * columns + vector];
  };
  for (size_t k = 0; k < vectors; ++k) {
    for (int pass = 0; pass < 2; ++pass)
      for (size_t j = 0; j < k; ++j) {
        double dot = 0;
        for (size_t i = 0; i < length; ++i) dot += at(j, i) * at(k, i);
        for (size_t i = 0; i < length; ++i) at(k, i) -= dot * at(j, i);
      }
    double square = 0;
    for (size_t i = 0; i < length; ++i) square += at(k, i) * at(k, i);
    for (size_t i = 0; i < length; ++i) at(k, i) /= std::sqrt(square);
  }
  for (double& x : v) x *= gain;
  return write(std::move(t), v, loc);
}

Tensor eye_(Tensor t, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check(t, "eye_", 2, 2, loc);
  NoGrad guard;
  t.copy_(eye(t.size(0), t.size(1), {t.dtype(), t.device()}), loc);
  t.eval_(loc);
  return t;
}

Tensor dirac_(Tensor t, int64_t groups, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check(t, "dirac_", 3, 5, loc);
  if (groups < 1 || t.size(0) % groups != 0)
    fail(ErrorKind::Shape, "dirac_",
         "size(0) of " + describe(t) + " is not a multiple of groups = " + std::to_string(groups),
         loc);
  const Dims& shape = t.shape();
  int64_t window = 1, middle = 0;
  for (int i = 2; i < shape.size(); ++i) {
    window *= shape[i];
    middle = middle * shape[i] + shape[i] / 2;
  }
  std::vector<double> v(static_cast<size_t>(t.numel()), 0.0);
  const int64_t per_group = shape[0] / groups;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t d = 0; d < std::min(per_group, shape[1]); ++d)
      v[static_cast<size_t>(((g * per_group + d) * shape[1] + d) * window + middle)] = 1;
  return write(std::move(t), v, loc);
}

Tensor sparse_(Tensor t, double sparsity, double std, const Generator& generator, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check(t, "sparse_", 2, 2, loc);
  if (!(sparsity >= 0 && sparsity <= 1))
    fail(ErrorKind::Value, "sparse_", "sparsity must be between 0 and 1, not " + text_of(sparsity),
         loc);
  const size_t rows = static_cast<size_t>(t.size(0)), columns = static_cast<size_t>(t.size(1));
  std::vector<double> v = (randn(t.shape(), float64, generator) * std).to_vector<double>();
  const std::vector<double> order = rand(t.shape(), float64, generator).to_vector<double>();
  const size_t zeros = static_cast<size_t>(std::ceil(sparsity * static_cast<double>(rows)));
  std::vector<size_t> row(rows);
  for (size_t c = 0; c < columns; ++c) {
    std::iota(row.begin(), row.end(), size_t{0});
    std::sort(row.begin(), row.end(),
              [&](size_t a, size_t b) { return order[a * columns + c] < order[b * columns + c]; });
    for (size_t i = 0; i < zeros; ++i) v[row[i] * columns + c] = 0;
  }
  return write(std::move(t), v, loc);
}

}  // namespace ingot::nn::init
