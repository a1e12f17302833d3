// Movement: the same elements under another shape, in another order, in part, or joined. No
// work by themselves: views unless stated otherwise, and a copy's elements are read where they are
// needed. What every function checks is said at the top of ops.h.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "ingot/tensor.h"

namespace ingot {

// ---- Views: another shape

/// Same elements in row-major order under another shape; one size may be -1. A view where strides
/// can express it, as in PyTorch; a copy of what was transposed, cut or expanded otherwise (view()
/// is always a view). Throws Error(Shape) when the counts differ.
Tensor reshape(const Tensor& x, const Dims& shape, INGOT_LOC);
/// contiguous() as a vector.
inline Tensor ravel(const Tensor& x, INGOT_LOC) { return x.contiguous(loc).view({-1}, loc); }
/// Merges dims start_dim to end_dim: a view or a copy as reshape() is.
Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1, INGOT_LOC);
/// One dim split into `sizes`, one of which may be -1. Error(Shape) when they do not make up its
/// size.
Tensor unflatten(const Tensor& x, int64_t dim, const Dims& sizes, INGOT_LOC);
/// Without the dims of size 1: all of them, or the named one if it is.
Tensor squeeze(const Tensor& x, INGOT_LOC);
Tensor squeeze(const Tensor& x, int64_t dim, INGOT_LOC);
/// Without the named dims of size 1.
Tensor squeeze(const Tensor& x, const Dims& dims, INGOT_LOC);
/// A new dim of size 1 before `dim`.
Tensor unsqueeze(const Tensor& x, int64_t dim, INGOT_LOC);
/// Made 1-d, 2-d or 3-d by dims of size 1 where it has fewer.
Tensor atleast_1d(const Tensor& x, INGOT_LOC);
Tensor atleast_2d(const Tensor& x, INGOT_LOC);
Tensor atleast_3d(const Tensor& x, INGOT_LOC);
/// Dims of size 1 repeated to `shape`, which may have more leading dims; -1 keeps a size.
Tensor expand(const Tensor& x, const Dims& shape, INGOT_LOC);
Tensor broadcast_to(const Tensor& x, const Dims& shape, INGOT_LOC);  ///< expand
/// All expanded to their common shape. Error(Shape) when there is none.
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors, INGOT_LOC);

// ---- Views: another order

/// Dims in another order; dims names each once.
Tensor permute(const Tensor& x, const Dims& dims, INGOT_LOC);
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1,
                 INGOT_LOC);  ///< two dims swapped
/// The transpose of a matrix; a vector or 0-d tensor as it is. Throws Error(Dim) with more dims.
Tensor t(const Tensor& x, INGOT_LOC);
/// Dims `source` moved to positions `destination`, the others in their order. Error(Dim) when one
/// is named twice or the lists differ in length.
Tensor movedim(const Tensor& x, int64_t source, int64_t destination, INGOT_LOC);
Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination, INGOT_LOC);
inline Tensor moveaxis(const Tensor& x, int64_t source, int64_t destination, INGOT_LOC) {
  return movedim(x, source, destination, loc);
}
inline Tensor moveaxis(const Tensor& x, const Dims& source, const Dims& destination, INGOT_LOC) {
  return movedim(x, source, destination, loc);
}
inline Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1, INGOT_LOC) {
  return transpose(x, axis0, axis1, loc);
}
inline Tensor swapdims(const Tensor& x, int64_t dim0, int64_t dim1, INGOT_LOC) {
  return transpose(x, dim0, dim1, loc);
}
/// The last two dims swapped. Error(Dim) with fewer than two.
Tensor mT(const Tensor& x, INGOT_LOC);

// ---- Views: a part

/// Elements start to start + length of one dim. Throws Error(Index) outside.
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length, INGOT_LOC);
/// Element `index` of one dim, which is removed. Throws Error(Index) outside.
Tensor select(const Tensor& x, int64_t dim, int64_t index, INGOT_LOC);
/// x[..., start:stop:step, ...] along one dim; bounds are clipped as in Python.
Tensor slice(const Tensor& x, int64_t dim, const Slice& range, INGOT_LOC);
/// The elements along a diagonal of the dims dim1 and dim2, as a new last dim; offset > 0 is above
/// the main one. A view. Error(Dim) when dim1 is dim2.
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1, INGOT_LOC);
/// Pieces of `size` (the last may be smaller), or of the given sizes, which must add up to the dim.
std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim = 0, INGOT_LOC);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim = 0,
                          INGOT_LOC);
/// At most `chunks` pieces of equal size (the last may be smaller).
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0, INGOT_LOC);
/// One slice per element of dim, without it.
std::vector<Tensor> unbind(const Tensor& x, int64_t dim = 0, INGOT_LOC);
/// `sections` pieces, the first ones larger by one where it does not divide; or pieces that begin
/// at the indices. Error(Value) unless sections is at least 1.
std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim = 0, INGOT_LOC);
std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& indices,
                                 int64_t dim = 0, INGOT_LOC);

// ---- New values

/// The tensor repeated this many times along each dim (a copy).
Tensor repeat(const Tensor& x, const Dims& times, INGOT_LOC);
/// repeat(), with leading ones for additional dims.
Tensor tile(const Tensor& x, const Dims& dims, INGOT_LOC);
/// Each element (or slice along dim) repeated in a row; without dim of the flattened tensor. Counts
/// in a tensor are read when the call is made. Error(Value) when negative, Error(Shape) unless
/// there is one count per slice.
Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim = {},
                         INGOT_LOC);
Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim = {},
                         INGOT_LOC);
/// The elements of these dims in reverse order (a copy).
Tensor flip(const Tensor& x, const Axes& dims, INGOT_LOC);
/// Columns (dim 1) and rows (dim 0) in reverse order (copies). Error(Dim) when there is no such
/// dim.
Tensor fliplr(const Tensor& x, INGOT_LOC);
Tensor flipud(const Tensor& x, INGOT_LOC);
/// Rotated by k quarters in the plane of two dims (a copy). Error(Dim) unless dims names two
/// different ones.
Tensor rot90(const Tensor& x, int64_t k = 1, const Dims& dims = {0, 1}, INGOT_LOC);
/// Elements shifted along one dim; those shifted past the end re-enter at the front.
Tensor roll(const Tensor& x, int64_t shift, int64_t dim, INGOT_LOC);
/// Elements shifted along dims, those shifted past the end re-entering at the front; without dims
/// the flattened tensor is shifted. Error(Value) unless there is one shift per dim.
Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims = {}, INGOT_LOC);
/// Pads with `value`: padding holds {before, after} of the last dim, then of the one before it, ...
/// as in PyTorch. Negative numbers crop.
Tensor pad(const Tensor& x, const Dims& padding, const Scalar& value = 0.0, INGOT_LOC);
/// Pads by `padding` elements ({before, after} of the last dim, then of the one before it, ...;
/// negative numbers crop): mode "constant" (value), "reflect" (mirrored, without the edge),
/// "replicate" (the edge) or "circular". Error(Value) for another mode and for too much padding
/// (reflect: less than the size; circular: at most the size).
Tensor pad(const Tensor& x, const Dims& padding, std::string_view mode, const Scalar& value = 0.0,
           INGOT_LOC);
/// Lower and upper triangle of the last two dims, the rest 0.
Tensor tril(const Tensor& x, int64_t diagonal = 0, INGOT_LOC);
Tensor triu(const Tensor& x, int64_t diagonal = 0, INGOT_LOC);
/// A vector on the diagonal of a matrix, or the diagonal of a matrix. Error(Dim) with more dims.
Tensor diag(const Tensor& x, int64_t diagonal = 0, INGOT_LOC);
/// Matrices with the last dim on their diagonal, as dims dim1 and dim2 of the result.
Tensor diag_embed(const Tensor& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1,
                  INGOT_LOC);
Tensor diagflat(const Tensor& x, int64_t offset = 0, INGOT_LOC);  ///< diag(flatten(x), offset)

// ---- Joined

/// Joined along one dim; the other sizes must agree.
Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0, INGOT_LOC);
/// Joined along a new dim.
Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0, INGOT_LOC);
/// Joined along dim 1 (0 for vectors), along dim 0 (vectors as rows), along dim 2, and vectors as
/// columns.
Tensor hstack(const std::vector<Tensor>& tensors, INGOT_LOC);
Tensor vstack(const std::vector<Tensor>& tensors, INGOT_LOC);
Tensor dstack(const std::vector<Tensor>& tensors, INGOT_LOC);
Tensor column_stack(const std::vector<Tensor>& tensors, INGOT_LOC);
inline Tensor row_stack(const std::vector<Tensor>& tensors, INGOT_LOC) {
  return vstack(tensors, loc);
}
inline Tensor concat(const std::vector<Tensor>& tensors, int64_t dim = 0, INGOT_LOC) {
  return cat(tensors, dim, loc);
}
inline Tensor concatenate(const std::vector<Tensor>& tensors, int64_t dim = 0, INGOT_LOC) {
  return cat(tensors, dim, loc);
}
/// Matrices one after the other along the diagonal, zeros elsewhere.
Tensor block_diag(const std::vector<Tensor>& tensors, INGOT_LOC);

}  // namespace ingot
