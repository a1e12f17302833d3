// Reductions beyond those of ops.h. `dim`: one, several ({0, 2}) or, not given, all; what every
// function checks is said at the top of ops.h.
#pragma once
#include <utility>

#include "ingot/tensor.h"

namespace ingot {

/// Variance (or its root) and mean at once; as var(), std() and mean().
std::pair<Tensor, Tensor> var_mean(const Tensor& x, const Axes& dim = {}, double correction = 1,
                                   bool keepdim = false, INGOT_LOC);
std::pair<Tensor, Tensor> std_mean(const Tensor& x, const Axes& dim = {}, double correction = 1,
                                   bool keepdim = false, INGOT_LOC);

struct MinMax {
  Tensor min, max;
};
/// Smallest and largest of all, or along one dim; NaN wins. Error(Shape) over no elements.
MinMax aminmax(const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false, INGOT_LOC);

/// (sum of |x|^p)^(1/p); p may be 0 (how many are not 0) and plus or minus infinity (largest and
/// smallest |x|). The gradient at 0 is 0. Error(DType) unless x is floating, Error(Shape) for an
/// infinite p over no elements.
Tensor vector_norm(const Tensor& x, double p = 2, const Axes& dim = {}, bool keepdim = false,
                   INGOT_LOC);
Tensor norm(const Tensor& x, double p, const Axes& dim = {}, bool keepdim = false, INGOT_LOC);

/// How many elements are not 0: int64.
Tensor count_nonzero(const Tensor& x, const Axes& dim = {}, INGOT_LOC);
/// Sum and mean of the elements that are not NaN: 0 and NaN where there are none. nanmean: floating
/// only.
Tensor nansum(const Tensor& x, const Axes& dim = {}, bool keepdim = false, INGOT_LOC);
Tensor nanmean(const Tensor& x, const Axes& dim = {}, bool keepdim = false, INGOT_LOC);

}  // namespace ingot
