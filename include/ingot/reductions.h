// Reductions. `dim`: one, several ({0, 2}) or, not given, all. What every function checks is said
// at the top of ops.h.
#pragma once
#include <optional>
#include <string_view>
#include <utility>

#include "ingot/tensor.h"

namespace ingot {

// ---- Sums and means

Tensor sum(const Tensor& x, const Axes& dim = {}, bool keepdim = false,
           INGOT_LOC);  ///< integers and bool: int64
Tensor mean(const Tensor& x, const Axes& dim = {}, bool keepdim = false,
            INGOT_LOC);  ///< floating only
/// Sum of squared deviations over (count - correction).
Tensor var(const Tensor& x, const Axes& dim = {}, double correction = 1, bool keepdim = false,
           INGOT_LOC);
Tensor std(const Tensor& x, const Axes& dim = {}, double correction = 1, bool keepdim = false,
           INGOT_LOC);
/// Variance (or its root) and mean at once; as var(), std() and mean().
std::pair<Tensor, Tensor> var_mean(const Tensor& x, const Axes& dim = {}, double correction = 1,
                                   bool keepdim = false, INGOT_LOC);
std::pair<Tensor, Tensor> std_mean(const Tensor& x, const Axes& dim = {}, double correction = 1,
                                   bool keepdim = false, INGOT_LOC);
Tensor prod(const Tensor& x, const Axes& dim = {}, bool keepdim = false,
            INGOT_LOC);  ///< integers and bool: int64
/// Sum and mean of the elements that are not NaN: 0 and NaN where there are none. nanmean: floating
/// only.
Tensor nansum(const Tensor& x, const Axes& dim = {}, bool keepdim = false, INGOT_LOC);
Tensor nanmean(const Tensor& x, const Axes& dim = {}, bool keepdim = false, INGOT_LOC);
/// log(sum(exp(x))), stable.
Tensor logsumexp(const Tensor& x, const Axes& dim, bool keepdim = false, INGOT_LOC);

// ---- Largest and smallest

/// Largest and smallest; NaN wins. Throw Error(Shape) over no elements.
Tensor amax(const Tensor& x, const Axes& dim = {}, bool keepdim = false, INGOT_LOC);
Tensor amin(const Tensor& x, const Axes& dim = {}, bool keepdim = false, INGOT_LOC);
Tensor max(const Tensor& x, INGOT_LOC);
Tensor min(const Tensor& x, INGOT_LOC);
Tensor max(const Tensor& a, const Tensor& b, INGOT_LOC);  ///< maximum(a, b)
Tensor min(const Tensor& a, const Tensor& b, INGOT_LOC);  ///< minimum(a, b)
/// Values and the index of the first of them along one dim.
ValuesIndices max(const Tensor& x, int64_t dim, bool keepdim = false, INGOT_LOC);
ValuesIndices min(const Tensor& x, int64_t dim, bool keepdim = false, INGOT_LOC);
/// Index of the first largest or smallest along one dim, or in the flattened tensor; int64.
Tensor argmax(const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false, INGOT_LOC);
Tensor argmin(const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false, INGOT_LOC);
struct MinMax {
  Tensor min, max;
};
/// Smallest and largest of all, or along one dim; NaN wins. Error(Shape) over no elements.
MinMax aminmax(const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false, INGOT_LOC);

// ---- Norms

/// Square root of the sum of squares of all elements.
Tensor norm(const Tensor& x, INGOT_LOC);
/// (sum of |x|^p)^(1/p); p may be 0 (how many are not 0) and plus or minus infinity (largest and
/// smallest |x|). The gradient at 0 is 0. Error(DType) unless x is floating, Error(Shape) for an
/// infinite p over no elements.
Tensor vector_norm(const Tensor& x, double p = 2, const Axes& dim = {}, bool keepdim = false,
                   INGOT_LOC);
Tensor norm(const Tensor& x, double p, const Axes& dim = {}, bool keepdim = false, INGOT_LOC);

// ---- Count

Tensor any(const Tensor& x, const Axes& dim = {}, bool keepdim = false,
           INGOT_LOC);  ///< bool: is one not 0?
Tensor all(const Tensor& x, const Axes& dim = {}, bool keepdim = false,
           INGOT_LOC);  ///< bool: is none 0?
/// How many elements are not 0: int64.
Tensor count_nonzero(const Tensor& x, const Axes& dim = {}, INGOT_LOC);

// ---- Statistics

/// Covariances of the rows of a matrix, whose columns are observations: [rows, rows], or 0-d for
/// one row or a vector. Divided by the number of observations less correction. fweights says how
/// often each was made (integers), aweights how much it counts (floating): one element for each,
/// none negative (not checked). Integers compute in float32. Error(Dim) for more than two dims,
/// Error(DType) for bool or other types of weights, Error(Shape) for another number of them.
Tensor cov(const Tensor& x, int64_t correction = 1, const Tensor& fweights = {},
           const Tensor& aweights = {}, INGOT_LOC);
/// Correlations of the rows: cov() divided by the rows' standard deviations, within [-1, 1].
Tensor corrcoef(const Tensor& x, INGOT_LOC);
/// The value below which a share q of the elements is found (all, or along dim): q is a number, or
/// a tensor whose results come along a new first dim. interpolation says what is taken between two
/// elements: "linear", "lower", "higher", "midpoint" or "nearest". NaN where there is one.
/// Error(DType) unless x and q are floating, Error(Shape) over no elements, Error(Dim) when q has
/// more than one dim, Error(Value) for another word or a number outside [0, 1].
Tensor quantile(const Tensor& x, const Operand& q, std::optional<int64_t> dim = {},
                bool keepdim = false, std::string_view interpolation = "linear", INGOT_LOC);
/// The same of the elements that are not NaN; NaN where there are none.
Tensor nanquantile(const Tensor& x, const Operand& q, std::optional<int64_t> dim = {},
                   bool keepdim = false, std::string_view interpolation = "linear", INGOT_LOC);

}  // namespace ingot
