// Running values along a dim, sorting, searching and counting. Names and defaults are PyTorch's;
// what every function checks is said at the top of ops.h. A 0-d tensor counts as one of a single
// element.
//
// Order: NaN is the largest, -0.0 and 0.0 are equal, equal elements keep their order in every sort.
// Functions marked "reads values" have a result whose shape depends on values: they run what is
// pending, wait for it once, and throw Error(State) inside a captured function.
#pragma once
#include <optional>

#include "ingot/tensor.h"

namespace ingot {

// ---- Running values along one dim

/// Sum and product of the elements up to each position, in `dtype` if given; integers and bool in
/// int64 otherwise.
Tensor cumsum(const Tensor& x, int64_t dim, std::optional<DType> dtype = {}, INGOT_LOC);
Tensor cumprod(const Tensor& x, int64_t dim, std::optional<DType> dtype = {}, INGOT_LOC);
/// log(cumsum(exp(x))), stable. Error(DType) unless x is floating.
Tensor logcumsumexp(const Tensor& x, int64_t dim, INGOT_LOC);
/// Largest and smallest so far, and the last index they were found at; NaN wins.
ValuesIndices cummax(const Tensor& x, int64_t dim, INGOT_LOC);
ValuesIndices cummin(const Tensor& x, int64_t dim, INGOT_LOC);

// ---- Order

/// Sorted along dim, and the original index of each element. Always stable.
ValuesIndices sort(const Tensor& x, int64_t dim = -1, bool descending = false, INGOT_LOC);
/// The indices of sort(); `stable` is there for compatibility with PyTorch.
Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false, bool stable = true,
               INGOT_LOC);
/// The values of sort(x, 0).
Tensor msort(const Tensor& x, INGOT_LOC);
/// The k largest (smallest) elements along dim, in order, and their indices. Error(Value) unless 0
/// <= k <= size.
ValuesIndices topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true,
                   bool sorted = true, INGOT_LOC);
/// The k-th smallest element along dim (k counts from 1), and its index. Error(Value) unless 1 <= k
/// <= size.
ValuesIndices kthvalue(const Tensor& x, int64_t k, int64_t dim = -1, bool keepdim = false,
                       INGOT_LOC);
/// The lower of the two middle elements of all, or along dim with its index; NaN wins. Error(Shape)
/// over no elements.
Tensor median(const Tensor& x, INGOT_LOC);
ValuesIndices median(const Tensor& x, int64_t dim, bool keepdim = false, INGOT_LOC);
/// The same among the elements that are not NaN.
Tensor nanmedian(const Tensor& x, INGOT_LOC);
ValuesIndices nanmedian(const Tensor& x, int64_t dim, bool keepdim = false, INGOT_LOC);

// ---- Search and count

/// int64: how many elements of each row of `sorted` [..., n] are smaller than the value (right:
/// smaller or equal). `sorted` is a vector, or has the leading dims of values [..., m].
/// Error(Shape) otherwise.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false, INGOT_LOC);
Tensor searchsorted(const Tensor& sorted, const Scalar& value, bool right = false, INGOT_LOC);
/// searchsorted(boundaries, x, right) for a vector of boundaries.
Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right = false, INGOT_LOC);

struct Unique {
  Tensor values;   ///< each value once, sorted; every NaN counts as another
  Tensor inverse;  ///< x's shape: which value each element is
  Tensor counts;   ///< how often each value occurs
};
/// The different values of all elements. Reads values.
Unique unique(const Tensor& x, INGOT_LOC);
/// How often each of 0, 1, ... occurs in a vector of integers (or the sum of their weights): as
/// long as the largest needs, and at least minlength. Error(Value) for a negative element. Reads
/// values.
Tensor bincount(const Tensor& x, const Tensor& weights = {}, int64_t minlength = 0, INGOT_LOC);
/// How many elements fall into each of `bins` equal parts of [min, max]; with min == max, of the
/// elements' own range. NaN and values outside do not count. Error(DType) unless x is floating,
/// Error(Value) for bins < 1 or max < min.
Tensor histc(const Tensor& x, int64_t bins = 100, double min = 0, double max = 0, INGOT_LOC);

}  // namespace ingot
