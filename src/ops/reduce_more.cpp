// Reductions composed from those of reduce.cpp. What two of them share is one value of the graph,
// computed once.
#include "ingot/reductions.h"

#include <cmath>
#include <limits>

#include "ops/common.h"

namespace ingot {
namespace {

void check_floating(const Tensor& x, const char* op, const SourceLoc& loc) {
  if (!is_float(node_of(x, op, loc)->dtype))
    fail(ErrorKind::DType, op, "needs a floating type, not " + describe(x), loc,
         "convert with x.to(float32)");
}

DType wide(DType t) { return is_half(t) ? DType::Float32 : t; }

}  // namespace

std::pair<Tensor, Tensor> var_mean(const Tensor& x, const Axes& dim, double correction,
                                   bool keepdim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return {var(x, dim, correction, keepdim, loc), mean(x, dim, keepdim, loc)};
}

std::pair<Tensor, Tensor> std_mean(const Tensor& x, const Axes& dim, double correction,
                                   bool keepdim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return {ingot::std(x, dim, correction, keepdim, loc), mean(x, dim, keepdim, loc)};
}

MinMax aminmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  Axes axes = dim ? Axes(*dim) : Axes();
  return {amin(x, axes, keepdim, loc), amax(x, axes, keepdim, loc)};
}

// Roots and powers have no gradient at 0; there a constant takes their place.
Tensor vector_norm(const Tensor& x, double p, const Axes& dim, bool keepdim, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  check_floating(x, "vector_norm", loc);
  if (p != p) fail(ErrorKind::Value, "vector_norm", "p is NaN", loc);
  DType t = x.dtype();
  Tensor f = x.to(wide(t));
  if (std::isinf(p)) return p > 0 ? amax(abs(x), dim, keepdim) : amin(abs(x), dim, keepdim);
  if (p == 0) return sum((f != 0).to(f.dtype()), dim, keepdim).to(t);
  if (p == 1) return sum(abs(f), dim, keepdim).to(t);
  auto root = [](const Tensor& s, auto take) {
    return where(s == 0, 0.0, take(where(s == 0, 1.0, s)));
  };
  if (p == 2) return root(sum(f * f, dim, keepdim), [](const Tensor& s) { return sqrt(s); }).to(t);
  if (p < 0) {
    Tensor a = abs(f);
    Tensor powers =
        where(a == 0, std::numeric_limits<double>::infinity(), pow(where(a == 0, 1.0, a), p));
    return pow(sum(powers, dim, keepdim), 1 / p).to(t);
  }
  Tensor powers = root(abs(f), [p](const Tensor& a) { return pow(a, p); });
  return root(sum(powers, dim, keepdim), [p](const Tensor& s) { return pow(s, 1 / p); }).to(t);
}

Tensor norm(const Tensor& x, double p, const Axes& dim, bool keepdim, SourceLoc loc) {
  return vector_norm(x, p, dim, keepdim, loc);
}

Tensor count_nonzero(const Tensor& x, const Axes& dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  node_of(x, "count_nonzero", loc);
  LocScope scope(loc);
  return sum(x.dtype() == DType::Bool ? x : x != 0, dim);
}

Tensor nansum(const Tensor& x, const Axes& dim, bool keepdim, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  if (!is_float(node_of(x, "nansum", loc)->dtype)) return sum(x, dim, keepdim);
  return sum(where(isnan(x), 0.0, x), dim, keepdim);
}

Tensor nanmean(const Tensor& x, const Axes& dim, bool keepdim, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  check_floating(x, "nanmean", loc);
  Tensor f = x.to(wide(x.dtype())), gone = isnan(f);
  Tensor count = sum(logical_not(gone).to(f.dtype()), dim, keepdim);
  return (sum(where(gone, 0.0, f), dim, keepdim) / count).to(x.dtype());
}

}  // namespace ingot
