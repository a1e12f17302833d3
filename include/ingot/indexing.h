// Reading and writing by index. Names, argument order and defaults are PyTorch's; what every
// function checks is said at the top of ops.h. Indices are int64 or int32; one outside the dim
// raises Error(Index), naming the line, when the value is computed. Negative ones count from the
// end in index_fill, index_put, take and put, and are outside elsewhere. Of several values for one
// position the last one wins, every time.
//
// Functions marked "reads values" have a result whose shape depends on values: they run what is
// pending, wait for it once, and throw Error(State) inside a captured function.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "ingot/tensor.h"

namespace ingot {

// ---- Reading along one dim

/// out[..., i, ...] = x[..., index[..., i, ...], ...] along dim; index has x's dims, each size at
/// most x's but for dim.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index, INGOT_LOC);
/// gather() with x and index broadcast against each other outside dim; without dim, in the
/// flattened x.
Tensor take_along_dim(const Tensor& x, const Tensor& index, std::optional<int64_t> dim = {},
                      INGOT_LOC);
/// x's slices along dim in the order of the 1-d index.
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index, INGOT_LOC);

// ---- Writing along one dim. `index` has x's dims; sizes no larger than src's, nor (but for dim)
// than x's.

/// x with out[..., index[..., i, ...], ...] = src[..., i, ...] along dim.
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Operand& src, INGOT_LOC);
/// x with src added there, in a fixed order.
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, INGOT_LOC);
/// reduce: "sum", "prod", "mean", "amax" or "amin" of the values for a position, with x's own
/// element when include_self; positions without values keep x's. Error(Value) for another word.
Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce, bool include_self = true, INGOT_LOC);
/// index: a vector. x with x[..., index[i], ...] += alpha * source[..., i, ...].
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha = 1, INGOT_LOC);
/// index: a vector. x with x[..., index[i], ...] = source[..., i, ...], or = value.
Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                  INGOT_LOC);
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Operand& value,
                  INGOT_LOC);
/// Zeros of `shape` plus value[..., i, ...] added at index[..., i, ...] along dim, in a fixed
/// order.
Tensor scatter_add_zeros(const Dims& shape, int64_t dim, const Tensor& index, const Tensor& value,
                         INGOT_LOC);

// ---- In the flattened tensor

/// Elements of the flattened x; index's shape.
Tensor take(const Tensor& x, const Tensor& index, INGOT_LOC);
/// x with the flattened x[index[i]] = source[i], or += with accumulate. source has as many elements
/// as index.
Tensor put(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate = false,
           INGOT_LOC);

// ---- By several indices: x[...] in function form

/// x with x[indices] = values (broadcast, cast to x's type), or += with accumulate: then every
/// value for a position counts. Masks read values, but for x[mask] = one number.
Tensor index_put(const Tensor& x, const Indices& indices, const Operand& values,
                 bool accumulate = false, INGOT_LOC);

// ---- Masks: bool tensors that broadcast with x

/// The elements where mask is true, as a vector. Reads values.
Tensor masked_select(const Tensor& x, const Tensor& mask, INGOT_LOC);
/// x with the positions where mask is true filled, in order, by the elements of source. Too few of
/// them: Error(Index) when computed.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source, INGOT_LOC);
/// int64 [count, dims]: where x is not zero, in row-major order. Reads values.
Tensor nonzero(const Tensor& x, INGOT_LOC);
Tensor argwhere(const Tensor& x, INGOT_LOC);
/// The columns of nonzero(condition), one vector for each dim. Reads values.
std::vector<Tensor> where(const Tensor& condition, INGOT_LOC);

// ---- Classes and embeddings

/// int64 with one more dim of num_classes: 1 at the index.
Tensor one_hot(const Tensor& index, int64_t num_classes, INGOT_LOC);
/// one_hot() for as many classes as the largest index needs. Reads values; Error(Value) for a
/// negative one.
Tensor one_hot(const Tensor& index, INGOT_LOC);
/// Rows of weight [n, d] by index of any shape; the gradient adds rows in a fixed order.
Tensor embedding(const Tensor& weight, const Tensor& index, INGOT_LOC);
/// Rows of weight by index; the row padding_idx takes no gradient. Error(Index) when weight has no
/// such row.
Tensor embedding(const Tensor& weight, const Tensor& index, int64_t padding_idx, INGOT_LOC);

}  // namespace ingot
