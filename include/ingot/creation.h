// New tensors: filled, from the program's own numbers, or on its memory. random.h has those of
// random numbers. What every function checks is said at the top of ops.h.
#pragma once
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "ingot/tensor.h"

namespace ingot {

// ---- Filled

/// Unspecified values (zeros in this version). Throws Error(Shape) on a negative size or more than
/// 2^63 elements, as all of these do.
Tensor empty(const Dims& shape, const Options& options = {}, INGOT_LOC);
Tensor zeros(const Dims& shape, const Options& options = {}, INGOT_LOC);  ///< all 0
Tensor ones(const Dims& shape, const Options& options = {}, INGOT_LOC);   ///< all 1
/// Without a dtype: bool, int64 or float32, by the kind of the number.
Tensor full(const Dims& shape, const Scalar& value, const Options& options = {}, INGOT_LOC);
/// Same shape, and type and device unless given.
Tensor empty_like(const Tensor& x, const Options& options = {}, INGOT_LOC);
Tensor zeros_like(const Tensor& x, const Options& options = {},
                  INGOT_LOC);                                               ///< 0 in the shape of x
Tensor ones_like(const Tensor& x, const Options& options = {}, INGOT_LOC);  ///< 1 in the shape of x
Tensor full_like(const Tensor& x, const Scalar& value, const Options& options = {}, INGOT_LOC);
/// start, start + step, ... before stop; int64 unless a number is floating. Throws Error(Value) on
/// step 0 or a wrong sign.
Tensor arange(const Scalar& stop, const Options& options = {}, INGOT_LOC);
Tensor arange(const Scalar& start, const Scalar& stop, const Options& options = {}, INGOT_LOC);
Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step,
              const Options& options = {}, INGOT_LOC);
/// steps numbers from start to stop, both included.
Tensor linspace(double start, double stop, int64_t steps, const Options& options = {}, INGOT_LOC);
/// `steps` values from base^start to base^end, evenly spaced in the exponent. Error(Value) when
/// steps is negative.
Tensor logspace(double start, double end, int64_t steps, double base = 10,
                const Options& options = {}, INGOT_LOC);
/// The identity matrix [n, m]; m is n when not given.
Tensor eye(int64_t n, std::optional<int64_t> m = {}, const Options& options = {}, INGOT_LOC);
/// [n, m] with ones on and below the diagonal (moved up by `diagonal`), zeros above.
Tensor tri(int64_t n, std::optional<int64_t> m = {}, int64_t diagonal = 0,
           const Options& options = {}, INGOT_LOC);
/// Row and column indices, [2, k] int64, of the lower and upper triangle of a [row, col] matrix.
Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, const Options& options = {},
                    INGOT_LOC);
Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, const Options& options = {},
                    INGOT_LOC);
/// One tensor per vector, all of the shape their sizes make, constant along the other dims: views.
/// indexing "ij" (matrix order) or "xy" (the first two swapped, as NumPy's default). Error(Value)
/// for another word or no tensors, Error(Shape) unless each has at most one dim.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, std::string_view indexing = "ij",
                             INGOT_LOC);
/// A 0-d tensor: bool, int64 or float32 by the kind of the number unless given.
Tensor scalar(const Scalar& value, const Options& options = {}, INGOT_LOC);
/// A 0-d number that may differ from run to run without another plan: learning rates, loss scales,
/// positions.
Tensor argument(double value, const Options& options = {}, INGOT_LOC);

// ---- From the program's own numbers

/// A copy of shape.numel() elements of host memory, of type `dtype`, in row-major order.
Tensor from_data(const void* data, DType dtype, const Dims& shape, const Options& options = {},
                 INGOT_LOC);
template <Number T>
Tensor from_data(const T* data, const Dims& shape, const Options& options = {}, INGOT_LOC) {
  return from_data(static_cast<const void*>(data), dtype_of<T>(), shape, options, loc);
}
/// The caller's host memory itself, not copied: it must stay there, and unchanged by others, until
/// on_release(context) is called (or, without one, until every tensor computed from it is done).
/// In-place calls may write to it. CPU devices only: another throws Error(Device).
Tensor wrap(void* data, DType dtype, const Dims& shape, const Options& options = {},
            void (*on_release)(void*) = nullptr, void* context = nullptr, INGOT_LOC);
template <Number T>
Tensor wrap(T* data, const Dims& shape, const Options& options = {},
            void (*on_release)(void*) = nullptr, void* context = nullptr, INGOT_LOC) {
  return wrap(static_cast<void*>(data), dtype_of<T>(), shape, options, on_release, context, loc);
}

/// tensor(3.5), tensor({1, 2}), tensor({{1.5, 2}, {3, 4}}) and so on to four levels,
/// tensor(vector), tensor(vector, shape). Literals give bool, int64 and float32, as in PyTorch; a
/// vector keeps its element type. Throws Error(Shape) for ragged lists and for a shape that does
/// not hold the vector.
inline Tensor tensor(const Scalar& value, const Options& options = {}, INGOT_LOC) {
  return scalar(value, options, loc);
}
Tensor tensor(const std::vector<Scalar>& values, const Dims& shape, const Options& options = {},
              INGOT_LOC);
template <Number T>
Tensor tensor(const std::vector<T>& values, const Dims& shape, const Options& options = {},
              INGOT_LOC);
template <Number T>
Tensor tensor(const std::vector<T>& values, const Options& options = {}, INGOT_LOC) {
  return tensor(values, Dims{static_cast<int64_t>(values.size())}, options, loc);
}

namespace detail {
/// Collects the leaves of a nested list; remembers a ragged one.
struct ListReader {
  std::vector<Scalar> values;
  Dims shape;
  bool ragged = false;
  void size(int level, size_t n) {
    if (level == shape.size())
      shape.push_back(static_cast<int64_t>(n));
    else if (shape[level] != static_cast<int64_t>(n))
      ragged = true;
  }
  void read(int, const Scalar& v);
  template <Number T>
  void read(int, T v) {
    read(0, Scalar(v));
  }
  template <class T>
  void read(int level, const std::initializer_list<T>& list) {
    size(level, list.size());
    for (const T& x : list) read(level + 1, x);
  }
  Tensor finish(const Options& options, const SourceLoc& loc) const;
};
template <class T>
Tensor from_list(const std::initializer_list<T>& list, const Options& options,
                 const SourceLoc& loc) {
  ListReader r;
  r.read(0, list);
  return r.finish(options, loc);
}
}  // namespace detail

template <Number T>
Tensor tensor(std::initializer_list<T> v, const Options& o = {}, INGOT_LOC) {
  return detail::from_list(v, o, loc);
}
template <Number T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> v, const Options& o = {}, INGOT_LOC) {
  return detail::from_list(v, o, loc);
}
template <Number T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> v,
              const Options& o = {}, INGOT_LOC) {
  return detail::from_list(v, o, loc);
}
template <Number T>
Tensor tensor(
    std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>> v,
    const Options& o = {}, INGOT_LOC) {
  return detail::from_list(v, o, loc);
}
// Lists that mix kinds of numbers.
inline Tensor tensor(std::initializer_list<Scalar> v, const Options& o = {}, INGOT_LOC) {
  return detail::from_list(v, o, loc);
}
inline Tensor tensor(std::initializer_list<std::initializer_list<Scalar>> v, const Options& o = {},
                     INGOT_LOC) {
  return detail::from_list(v, o, loc);
}

/// Throws Error(Value) when an integer type cannot hold the number: too large, too small, infinite
/// or NaN. Floats are truncated to integers and negative integers wrap in uint8, as in PyTorch.
/// Floating types take every number.
void check_fits(const Scalar& value, DType type, const char* op, const SourceLoc& loc);

}  // namespace ingot
