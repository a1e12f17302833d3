// Functions on tensors, by family. Most are methods of Tensor too. Names and defaults are
// PyTorch's.
//
// What is checked everywhere, when the call is made: shapes that do not fit throw Error(Shape),
// types Error(DType), operands on different devices Error(Device) (0-d tensors and numbers pass), a
// dim outside the tensor Error(Dim), an undefined tensor Error(State). `dim` counts from the end
// when negative. Shapes broadcast by NumPy's rules; types promote by PyTorch's.
#pragma once
#include "ingot/random.h"
#include "ingot/tensor.h"

namespace ingot {

// ---- Creation

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
/// The identity matrix [n, m]; m is n when not given.
Tensor eye(int64_t n, std::optional<int64_t> m = {}, const Options& options = {}, INGOT_LOC);
/// A 0-d tensor: bool, int64 or float32 by the kind of the number unless given.
Tensor scalar(const Scalar& value, const Options& options = {}, INGOT_LOC);
/// A 0-d number that may differ from run to run without another plan: learning rates, loss scales,
/// positions.
Tensor argument(double value, const Options& options = {}, INGOT_LOC);
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

// ---- Movement: without work, and views unless stated otherwise. A copy costs no work either: its
// elements are read where they are needed.

/// Same elements in row-major order under another shape; one size may be -1. A view where strides
/// can express it, as in PyTorch; a copy of what was transposed, cut or expanded otherwise (view()
/// is always a view). Throws Error(Shape) when the counts differ.
Tensor reshape(const Tensor& x, const Dims& shape, INGOT_LOC);
/// Merges dims start_dim to end_dim: a view or a copy as reshape() is.
Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1, INGOT_LOC);
/// Without the dims of size 1: all of them, or the named one if it is.
Tensor squeeze(const Tensor& x, INGOT_LOC);
Tensor squeeze(const Tensor& x, int64_t dim, INGOT_LOC);
/// A new dim of size 1 before `dim`.
Tensor unsqueeze(const Tensor& x, int64_t dim, INGOT_LOC);
/// Dims in another order; dims names each once.
Tensor permute(const Tensor& x, const Dims& dims, INGOT_LOC);
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1,
                 INGOT_LOC);  ///< two dims swapped
/// The transpose of a matrix; a vector or 0-d tensor as it is. Throws Error(Dim) with more dims.
Tensor t(const Tensor& x, INGOT_LOC);
/// Dims of size 1 repeated to `shape`, which may have more leading dims; -1 keeps a size.
Tensor expand(const Tensor& x, const Dims& shape, INGOT_LOC);
Tensor broadcast_to(const Tensor& x, const Dims& shape, INGOT_LOC);  ///< expand
/// The tensor repeated this many times along each dim (a copy).
Tensor repeat(const Tensor& x, const Dims& times, INGOT_LOC);
/// Elements start to start + length of one dim. Throws Error(Index) outside.
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length, INGOT_LOC);
/// Element `index` of one dim, which is removed. Throws Error(Index) outside.
Tensor select(const Tensor& x, int64_t dim, int64_t index, INGOT_LOC);
/// x[..., start:stop:step, ...] along one dim; bounds are clipped as in Python.
Tensor slice(const Tensor& x, int64_t dim, const Slice& range, INGOT_LOC);
/// The elements of these dims in reverse order (a copy).
Tensor flip(const Tensor& x, const Axes& dims, INGOT_LOC);
/// Elements shifted along one dim; those shifted past the end re-enter at the front.
Tensor roll(const Tensor& x, int64_t shift, int64_t dim, INGOT_LOC);
/// Pads with `value`: padding holds {before, after} of the last dim, then of the one before it, ...
/// as in PyTorch. Negative numbers crop.
Tensor pad(const Tensor& x, const Dims& padding, const Scalar& value = 0.0, INGOT_LOC);
/// Joined along one dim; the other sizes must agree.
Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0, INGOT_LOC);
/// Joined along a new dim.
Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0, INGOT_LOC);
/// Pieces of `size` (the last may be smaller), or of the given sizes, which must add up to the dim.
std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim = 0, INGOT_LOC);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim = 0,
                          INGOT_LOC);
/// At most `chunks` pieces of equal size (the last may be smaller).
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0, INGOT_LOC);
/// Lower and upper triangle of the last two dims, the rest 0.
Tensor tril(const Tensor& x, int64_t diagonal = 0, INGOT_LOC);
Tensor triu(const Tensor& x, int64_t diagonal = 0, INGOT_LOC);

// ---- Elementwise, one operand. Those that only make sense on floating types convert integers to
// float32.

Tensor neg(const Tensor& x, INGOT_LOC);          ///< throws Error(DType) on bool: use logical_not
Tensor abs(const Tensor& x, INGOT_LOC);          ///< |x|
Tensor sign(const Tensor& x, INGOT_LOC);         ///< -1, 0 or 1
Tensor exp(const Tensor& x, INGOT_LOC);          ///< e^x
Tensor exp2(const Tensor& x, INGOT_LOC);         ///< 2^x
Tensor expm1(const Tensor& x, INGOT_LOC);        ///< exp(x) - 1, exact near 0
Tensor log(const Tensor& x, INGOT_LOC);          ///< natural; log(0) is -inf, of negatives NaN
Tensor log2(const Tensor& x, INGOT_LOC);         ///< to base 2
Tensor log10(const Tensor& x, INGOT_LOC);        ///< to base 10
Tensor log1p(const Tensor& x, INGOT_LOC);        ///< log(1 + x), exact near 0
Tensor sqrt(const Tensor& x, INGOT_LOC);         ///< NaN of negatives
Tensor rsqrt(const Tensor& x, INGOT_LOC);        ///< 1 / sqrt(x)
Tensor reciprocal(const Tensor& x, INGOT_LOC);   ///< 1 / x
Tensor square(const Tensor& x, INGOT_LOC);       ///< x * x
Tensor sin(const Tensor& x, INGOT_LOC);          ///< of radians
Tensor cos(const Tensor& x, INGOT_LOC);          ///< of radians
Tensor tan(const Tensor& x, INGOT_LOC);          ///< of radians
Tensor asin(const Tensor& x, INGOT_LOC);         ///< in radians; NaN outside [-1, 1]
Tensor acos(const Tensor& x, INGOT_LOC);         ///< in radians; NaN outside [-1, 1]
Tensor atan(const Tensor& x, INGOT_LOC);         ///< in radians
Tensor sinh(const Tensor& x, INGOT_LOC);         ///< (e^x - e^-x) / 2
Tensor cosh(const Tensor& x, INGOT_LOC);         ///< (e^x + e^-x) / 2
Tensor tanh(const Tensor& x, INGOT_LOC);         ///< sinh(x) / cosh(x)
Tensor erf(const Tensor& x, INGOT_LOC);          ///< the error function
Tensor erfc(const Tensor& x, INGOT_LOC);         ///< 1 - erf(x), exact for large x
Tensor sigmoid(const Tensor& x, INGOT_LOC);      ///< 1 / (1 + e^-x)
Tensor relu(const Tensor& x, INGOT_LOC);         ///< x where positive, 0 elsewhere; NaN stays
Tensor floor(const Tensor& x, INGOT_LOC);        ///< the largest integer not above x
Tensor ceil(const Tensor& x, INGOT_LOC);         ///< the smallest integer not below x
Tensor round(const Tensor& x, INGOT_LOC);        ///< halves to even
Tensor trunc(const Tensor& x, INGOT_LOC);        ///< rounded towards 0
Tensor isnan(const Tensor& x, INGOT_LOC);        ///< bool
Tensor isinf(const Tensor& x, INGOT_LOC);        ///< bool: either infinity
Tensor isfinite(const Tensor& x, INGOT_LOC);     ///< bool: neither infinite nor NaN
Tensor logical_not(const Tensor& x, INGOT_LOC);  ///< bool: is it 0?
Tensor bitwise_not(const Tensor& x, INGOT_LOC);  ///< of integers; of bool the opposite
/// "none": x * Phi(x); "tanh": the usual approximation. Another word throws Error(Value).
Tensor gelu(const Tensor& x, std::string_view approximate = "none", INGOT_LOC);
Tensor silu(const Tensor& x, INGOT_LOC);  ///< x * sigmoid(x)
/// log(1 + exp(beta x)) / beta; x itself where beta x is above threshold.
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20, INGOT_LOC);
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01,
                  INGOT_LOC);  ///< x, or slope * x below 0

// ---- Elementwise, two operands

Tensor add(const Tensor& a, const Operand& b, INGOT_LOC);  ///< a + b
Tensor sub(const Tensor& a, const Operand& b,
           INGOT_LOC);  ///< throws Error(DType) on bool: use logical_xor
Tensor mul(const Tensor& a, const Operand& b, INGOT_LOC);  ///< a * b
Tensor div(const Tensor& a, const Operand& b, INGOT_LOC);  ///< integers give float32
/// Powers 2, 3, 0.5, -0.5 and -1 become products, roots and reciprocals.
Tensor pow(const Tensor& a, const Operand& b, INGOT_LOC);
Tensor pow(const Scalar& a, const Tensor& b, INGOT_LOC);
Tensor maximum(const Tensor& a, const Operand& b, INGOT_LOC);    ///< NaN wins
Tensor minimum(const Tensor& a, const Operand& b, INGOT_LOC);    ///< NaN wins
Tensor atan2(const Tensor& a, const Operand& b, INGOT_LOC);      ///< the angle of the point (b, a)
Tensor fmod(const Tensor& a, const Operand& b, INGOT_LOC);       ///< sign of a, as in C
Tensor remainder(const Tensor& a, const Operand& b, INGOT_LOC);  ///< sign of b, as % in Python
Tensor floor_divide(const Tensor& a, const Operand& b, INGOT_LOC);        ///< a / b rounded down
Tensor eq(const Tensor& a, const Operand& b, INGOT_LOC);                  ///< bool: a == b
Tensor ne(const Tensor& a, const Operand& b, INGOT_LOC);                  ///< bool: a != b
Tensor lt(const Tensor& a, const Operand& b, INGOT_LOC);                  ///< bool: a < b
Tensor le(const Tensor& a, const Operand& b, INGOT_LOC);                  ///< bool: a <= b
Tensor gt(const Tensor& a, const Operand& b, INGOT_LOC);                  ///< bool: a > b
Tensor ge(const Tensor& a, const Operand& b, INGOT_LOC);                  ///< bool: a >= b
Tensor logical_and(const Tensor& a, const Operand& b, INGOT_LOC);         ///< bool: both not 0
Tensor logical_or(const Tensor& a, const Operand& b, INGOT_LOC);          ///< bool: one not 0
Tensor logical_xor(const Tensor& a, const Operand& b, INGOT_LOC);         ///< bool: just one not 0
Tensor bitwise_and(const Tensor& a, const Operand& b, INGOT_LOC);         ///< integers and bool
Tensor bitwise_or(const Tensor& a, const Operand& b, INGOT_LOC);          ///< integers and bool
Tensor bitwise_xor(const Tensor& a, const Operand& b, INGOT_LOC);         ///< integers and bool
Tensor bitwise_left_shift(const Tensor& a, const Operand& b, INGOT_LOC);  ///< a * 2^b, integers
Tensor bitwise_right_shift(const Tensor& a, const Operand& b,
                           INGOT_LOC);  ///< a / 2^b rounded down, integers

// ---- Choice

/// a where condition (bool) is true, b elsewhere.
Tensor where(const Tensor& condition, const Operand& a, const Operand& b, INGOT_LOC);
/// lo where x < lo, hi where x > hi; NaN stays.
Tensor clamp(const Tensor& x, const Scalar& lo, const Scalar& hi, INGOT_LOC);
Tensor clamp(const Tensor& x, const Tensor& lo, const Tensor& hi, INGOT_LOC);
Tensor clamp_min(const Tensor& x, const Operand& lo, INGOT_LOC);  ///< lo where x < lo; NaN stays
Tensor clamp_max(const Tensor& x, const Operand& hi, INGOT_LOC);  ///< hi where x > hi; NaN stays
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Operand& value,
                   INGOT_LOC);  ///< value at mask

// ---- Type

Tensor cast(const Tensor& x, DType dtype, INGOT_LOC);  ///< the same values as another type
/// The type a binary operation of the two computes in.
DType result_type(const Tensor& a, const Operand& b, INGOT_LOC);

// ---- Reductions. `dim`: one, several ({0, 2}) or, not given, all.

Tensor sum(const Tensor& x, const Axes& dim = {}, bool keepdim = false,
           INGOT_LOC);  ///< integers and bool: int64
Tensor mean(const Tensor& x, const Axes& dim = {}, bool keepdim = false,
            INGOT_LOC);  ///< floating only
/// Sum of squared deviations over (count - correction).
Tensor var(const Tensor& x, const Axes& dim = {}, double correction = 1, bool keepdim = false,
           INGOT_LOC);
Tensor std(const Tensor& x, const Axes& dim = {}, double correction = 1, bool keepdim = false,
           INGOT_LOC);
Tensor prod(const Tensor& x, const Axes& dim = {}, bool keepdim = false,
            INGOT_LOC);  ///< integers and bool: int64
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
Tensor any(const Tensor& x, const Axes& dim = {}, bool keepdim = false,
           INGOT_LOC);  ///< bool: is one not 0?
Tensor all(const Tensor& x, const Axes& dim = {}, bool keepdim = false,
           INGOT_LOC);  ///< bool: is none 0?
/// log(sum(exp(x))), stable.
Tensor logsumexp(const Tensor& x, const Axes& dim, bool keepdim = false, INGOT_LOC);
/// Square root of the sum of squares of all elements.
Tensor norm(const Tensor& x, INGOT_LOC);

// ---- Contraction

/// PyTorch's cases: vector times vector (0-d), matrix times vector, and matrices under broadcast
/// batch dims. Integers too. Throws Error(Shape) when the inner sizes or batches differ,
/// Error(DType) when the types differ.
Tensor matmul(const Tensor& a, const Tensor& b, INGOT_LOC);
/// x @ weight^T + bias: x [..., in], weight [out, in], bias [out] or undefined.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, INGOT_LOC);

// ---- Index. Indices are int64 or int32; one outside raises Error(Index) when the value is
// computed.

/// out[..., i, ...] = x[..., index[..., i, ...], ...] along dim; index has x's dims, each size at
/// most x's but for dim.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index, INGOT_LOC);
/// Rows of weight [n, d] by index of any shape; the gradient adds rows in a fixed order.
Tensor embedding(const Tensor& weight, const Tensor& index, INGOT_LOC);
/// x's slices along dim in the order of the 1-d index.
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index, INGOT_LOC);
/// Zeros of `shape` plus value[..., i, ...] added at index[..., i, ...] along dim, in a fixed
/// order.
Tensor scatter_add_zeros(const Dims& shape, int64_t dim, const Tensor& index, const Tensor& value,
                         INGOT_LOC);
/// int64 with one more dim of num_classes: 1 at the index.
Tensor one_hot(const Tensor& index, int64_t num_classes, INGOT_LOC);

// ---- Networks. 16-bit floats compute in float32 and are rounded once at the end.

Tensor softmax(const Tensor& x, int64_t dim,
               INGOT_LOC);  ///< exp(x) / sum(exp(x)) along dim, stable
Tensor log_softmax(const Tensor& x, int64_t dim, INGOT_LOC);  ///< log(softmax(x, dim)), stable
/// Over the last normalized_shape.size() dims, which must have these sizes; weight and bias of that
/// shape or undefined.
Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5, INGOT_LOC);
/// x / sqrt(mean(x^2) + eps) over the last dims, times weight. eps as PyTorch's default when not
/// given.
Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = {}, INGOT_LOC);
/// Zeroes elements with probability p and divides the rest by 1 - p; x itself when not training.
/// Error(Value) unless 0 <= p <= 1.
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true,
               const Generator& generator = default_generator(), INGOT_LOC);

struct AttentionOptions {
  Tensor mask{};  ///< bool: visible positions; floating: added to the scores
  double dropout_p = 0;
  bool is_causal = false;         ///< position i sees 0..i
  std::optional<double> scale{};  ///< 1 / sqrt(d) when not given
  bool enable_gqa =
      false;  ///< key and value may have fewer heads (dim -3), each for a group of the query's
};
/// softmax(q k^T * scale + mask) v over [..., T, d] operands. Throws Error(Shape) for operands that
/// do not fit each other, Error(Value) for a mask together with is_causal.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options = {}, INGOT_LOC);

struct CrossEntropyOptions {
  Tensor weight{};  ///< [C], floating: how much each class counts; undefined: all the same
  int64_t ignore_index = -100;          ///< targets with this value do not count
  std::string_view reduction = "mean";  ///< "mean", "sum" or "none"
  double label_smoothing = 0;           ///< in [0, 1]
};
/// Negative log likelihood of target under softmax(input): input [N, C, ...], [C]. target: class
/// indices without C, int64 or int32, or probabilities of the input's shape, floating. "mean"
/// divides by the sum of the targets' weights; with probabilities by N times the other sizes but C.
/// A class index outside 0..C-1 other than ignore_index raises Error(Index) when computed;
/// Error(Shape) and Error(DType) when input, target and weight do not fit.
Tensor cross_entropy(const Tensor& input, const Tensor& target,
                     const CrossEntropyOptions& options = {}, INGOT_LOC);
/// The same for log-probabilities, with class indices only.
Tensor nll_loss(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {},
                INGOT_LOC);
/// (input - target)^2, reduced: "mean", "sum" or "none".
Tensor mse_loss(const Tensor& input, const Tensor& target, std::string_view reduction = "mean",
                INGOT_LOC);

}  // namespace ingot
