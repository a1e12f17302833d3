// Covariance, correlation and quantiles, composed.
#include <algorithm>
#include <limits>

#include "ingot/creation.h"
#include "ingot/elementwise.h"
#include "ingot/movement.h"
#include "ingot/reductions.h"
#include "ingot/sorting.h"
#include "ops/composed.h"

namespace ingot {
namespace {

// Weights of observations in the type that computes.
Tensor weights_of(const Tensor& w, const char* name, bool floating, int64_t observations, DType t,
                  const SourceLoc& loc) {
  const NodeRef n = node_of(w, "cov", loc);
  if (is_float(n->dtype) != floating || n->dtype == DType::Bool)
    fail(
        ErrorKind::DType, "cov",
        std::string(name) + " must be " + (floating ? "floating" : "integers") + ": " + describe(w),
        loc);
  if (n->rank() > 1 || n->numel() != observations)
    fail(ErrorKind::Shape, "cov",
         std::string(name) + " needs one element for each of " + std::to_string(observations) +
             " observations: " + describe(w),
         loc);
  return w.reshape({observations}).to(t);
}

// x [variables, observations] in the type that computes.
Tensor covariances(const Tensor& x, int64_t correction, const Tensor& fweights,
                   const Tensor& aweights) {
  Tensor w = fweights;
  if (aweights.defined()) w = w.defined() ? w * aweights : aweights;
  if (!w.defined()) {
    const Tensor centred = x - x.mean(1, true);
    const double count = static_cast<double>(std::max<int64_t>(x.size(1) - correction, 0));
    return matmul(centred, centred.t()) / count;
  }
  const Tensor total = w.sum();
  const Tensor centred = x - (x * w).sum(1, true) / total;
  Tensor count = total - static_cast<double>(correction);
  if (aweights.defined())
    count = total - static_cast<double>(correction) * (w * aweights).sum() / total;
  return matmul(centred * w, centred.t()) / clamp_min(count, 0);
}

DType floating_type(const NodeRef& n) { return is_float(n->dtype) ? n->dtype : DType::Float32; }

Tensor between(const Tensor& low, const Tensor& high, const Tensor& rank, std::string_view how) {
  if (how == "lower") return low;
  if (how == "higher") return high;
  if (how == "nearest") return where(round(rank) == floor(rank), low, high);
  return how == "midpoint" ? lerp(low, high, 0.5) : lerp(low, high, rank - floor(rank));
}

// The quantiles q [n] along the last dim: [n, ..., 1].
Tensor quantiles(const Tensor& x, const Tensor& q, std::string_view how, bool skip_nan) {
  Tensor values = sort(x, -1).values, count;
  const Tensor missing = isnan(x);
  if (skip_nan) {
    count = (~missing).sum(-1, true).to(x.dtype());
  } else {
    count = full({}, x.size(-1), {x.dtype(), x.device()});
    values = where(missing.any(-1, true), std::numeric_limits<double>::quiet_NaN(), values);
  }
  Dims shape = Dims::filled(static_cast<int>(x.dim()) + 1, 1);
  shape[0] = q.size(0);
  const Tensor last = clamp_min(count - 1.0, 0);
  Dims all = values.shape();
  all.insert(0, q.size(0));
  Dims one = all;
  one[one.size() - 1] = 1;
  const Tensor rank = (q.reshape(shape) * last).expand(one);
  const Tensor each = values.expand(all);
  const auto at = [&](const Tensor& position) { return gather(each, -1, position.to(int64)); };
  return between(at(floor(rank)), at(ceil(rank)), rank, how);
}

Tensor quantile_of(const char* op, const Tensor& input, const Operand& q,
                   std::optional<int64_t> dim, bool keepdim, std::string_view how, bool skip_nan,
                   const SourceLoc& place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  const NodeRef n = floating_node(input, op, loc);
  constexpr std::string_view known[] = {"linear", "lower", "higher", "midpoint", "nearest"};
  if (std::find(std::begin(known), std::end(known), how) == std::end(known))
    fail(ErrorKind::Value, op, "interpolation is \"" + std::string(how) + "\"", loc,
         "use \"linear\", \"lower\", \"higher\", \"midpoint\" or \"nearest\"");
  const DType wide = compute_type(n->dtype);
  Tensor shares;
  if (q.tensor) {
    const NodeRef shares_node = floating_node(*q.tensor, op, loc);
    if (shares_node->rank() > 1)
      fail(ErrorKind::Dim, op, "q is a number or a vector, not " + describe(*q.tensor), loc);
    shares = q.tensor->to(wide);
  } else {
    const double share = q.scalar.to<double>();
    if (!(share >= 0 && share <= 1))
      fail(ErrorKind::Value, op, "q is " + text_of(share) + ", which is outside [0, 1]", loc);
    shares = full({}, share, {wide, n->device});
  }
  const bool of_all = !dim || n->rank() == 0;
  const int64_t rank = n->rank();
  Tensor x = input.to(wide);
  x = of_all ? x.reshape({-1}) : x.movedim(*dim, -1);
  if (x.size(-1) == 0)
    fail(ErrorKind::Shape, op, "there are no elements to choose from: " + describe(input), loc);
  Tensor y = quantiles(x, shares.reshape({-1}), how, skip_nan);
  if (!keepdim) {
    y = y.squeeze(-1);
  } else if (of_all) {
    Dims shape = Dims::filled(static_cast<int>(rank) + 1, 1);
    shape[0] = y.size(0);
    y = y.reshape(shape);
  } else {
    y = y.movedim(-1, (*dim < 0 ? *dim + rank : *dim) + 1);
  }
  return (shares.dim() == 0 ? y.squeeze(0) : y).to(n->dtype);
}

}  // namespace

Tensor cov(const Tensor& x, int64_t correction, const Tensor& fweights, const Tensor& aweights,
           SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  const NodeRef n = node_of(x, "cov", loc);
  if (n->rank() > 2)
    fail(ErrorKind::Dim, "cov", "takes a matrix or a vector, not " + describe(x), loc);
  if (n->dtype == DType::Bool)
    fail(ErrorKind::DType, "cov", "takes numbers, not " + describe(x), loc,
         "convert with .to(float32)");
  const DType type = floating_type(n), wide = compute_type(type);
  const Tensor rows = (n->rank() < 2 ? x.reshape({1, -1}) : x).to(wide);
  const auto weights = [&](const Tensor& w, const char* name, bool floating) {
    return w.defined() ? weights_of(w, name, floating, rows.size(1), wide, loc) : Tensor();
  };
  return covariances(rows, correction, weights(fweights, "fweights", false),
                     weights(aweights, "aweights", true))
      .squeeze()
      .to(type);
}

Tensor corrcoef(const Tensor& x, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  const DType type = floating_type(node_of(x, "corrcoef", loc));
  const Tensor c = cov(x.dtype() == DType::Bool ? x : x.to(compute_type(type)), 1, {}, {}, loc);
  if (c.dim() == 0) return (c / c).to(type);
  const Tensor deviation = sqrt(c.diagonal());
  return clamp(c / deviation.unsqueeze(1) / deviation.unsqueeze(0), -1, 1).to(type);
}

Tensor quantile(const Tensor& x, const Operand& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation, SourceLoc loc) {
  return quantile_of("quantile", x, q, dim, keepdim, interpolation, false, loc);
}
Tensor nanquantile(const Tensor& x, const Operand& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation, SourceLoc loc) {
  return quantile_of("nanquantile", x, q, dim, keepdim, interpolation, true, loc);
}

}  // namespace ingot
