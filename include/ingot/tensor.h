// Tensor: a handle on a value that may not have been computed yet. Copies share one cell; in-place
// calls rebind it, so every copy sees the change. Functions on tensors are in ops.h; most are
// methods here under the same name. Threads may use and write to one tensor at once: values race,
// memory does not. A handle that is itself assigned to is a variable like any other.
//
// Every function takes a trailing SourceLoc that defaults to the caller's line and ends up in error
// messages. Operators cannot have one, so one of their operands is a TensorArg or Operand, which
// takes the line as it is made.
#pragma once
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ingot/device.h"
#include "ingot/dtype.h"
#include "ingot/error.h"
#include "ingot/shape.h"
#include "ingot/source.h"
#include "ingot/standard.h"

namespace ingot {

struct Cell;  // what copies of a Tensor share; internal
class Tensor;
class Generator;  // random.h
const Generator& default_generator();
class IndexedTensor;
struct IndexPlace;  // the target of an index with tensors
void retain(Cell* c);
void release(Cell* c);

/// bool, the integers and the floating types of C++.
template <class T>
concept Number = std::is_arithmetic_v<T>;

/// The element type that holds a T: float32 for float, int64 for int64_t, ...
template <Number T>
constexpr DType dtype_of() {
  if (std::is_same_v<T, bool>) return DType::Bool;
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DType::Float32 : DType::Float64;
  if (sizeof(T) == 1) return std::is_signed_v<T> ? DType::Int8 : DType::UInt8;
  return sizeof(T) == 2 ? DType::Int16 : sizeof(T) == 4 ? DType::Int32 : DType::Int64;
}

/// A number as written in the program: its kind (bool, integer, floating) takes part in promotion
/// as in PyTorch.
struct Scalar {
  enum class Kind : uint8_t { Bool, Int, Float } kind = Kind::Int;
  double f = 0;
  int64_t i = 0;
  Scalar() = default;
  template <Number T>
  Scalar(T v)  // NOLINT(google-explicit-constructor)
      : kind(std::is_same_v<T, bool>       ? Kind::Bool
             : std::is_floating_point_v<T> ? Kind::Float
                                           : Kind::Int),
        f(static_cast<double>(v)) {
    if constexpr (!std::is_floating_point_v<T>) i = static_cast<int64_t>(v);
  }
  /// The number as a T.
  template <Number T>
  T to() const {
    return kind == Kind::Float ? static_cast<T>(f) : static_cast<T>(i);
  }
};

/// start:stop:step as in Python; a missing field is std::nullopt. Slice{} takes everything. Steps
/// may be negative.
struct Slice {
  std::optional<int64_t> start{}, stop{}, step{};
};
struct EllipsisType {};
/// In an index: all remaining dims, complete.
inline constexpr EllipsisType Ellipsis{};
struct NewAxisType {};
/// In an index: a new dim of size 1.
inline constexpr NewAxisType NewAxis{};

/// One entry of an index: an integer (drops the dim), a Slice, Ellipsis, NewAxis, or a tensor:
/// int64 or int32 (elements of the dim, by index) or bool (a mask over as many dims as it has). A
/// tensor must live until the index is used.
struct IndexItem {
  enum class Kind : uint8_t { At, Range, Dots, New, Places };
  Kind kind;
  uint8_t given;  // bit 0: start, bit 1: stop, bit 2: step
  int64_t start, stop, step;
  const Tensor* places;  // Places
  IndexItem() = default;
  template <class T>
  requires std::is_integral_v<T> IndexItem(T at)  // NOLINT(google-explicit-constructor)
      : kind(Kind::At),
        given(1),
        start(static_cast<int64_t>(at)),
        stop(0),
        step(1),
        places(nullptr) {}
  IndexItem(const Slice& s)  // NOLINT(google-explicit-constructor)
      : kind(Kind::Range),
        given(static_cast<uint8_t>((s.start ? 1 : 0) | (s.stop ? 2 : 0) | (s.step ? 4 : 0))),
        start(s.start.value_or(0)),
        stop(s.stop.value_or(0)),
        step(s.step.value_or(1)),
        places(nullptr) {}
  IndexItem(EllipsisType)
      : kind(Kind::Dots), given(0), start(0), stop(0), step(1), places(nullptr) {}  // NOLINT
  IndexItem(NewAxisType)
      : kind(Kind::New), given(0), start(0), stop(0), step(1), places(nullptr) {}  // NOLINT
  IndexItem(const Tensor& t)
      : kind(Kind::Places), given(0), start(0), stop(0), step(1), places(&t) {}  // NOLINT
};

/// What is between the brackets of x[...]: one item or a braced list of them, and the caller's
/// line.
class Indices {
 public:
  static constexpr int kMax = 2 * kMaxDims;
  Indices(std::initializer_list<IndexItem> items, SourceLoc loc = SourceLoc::current())
      : Indices(items.begin(), items.size(), loc) {}
  Indices(const std::vector<IndexItem>& items, SourceLoc loc = SourceLoc::current())  // NOLINT
      : Indices(items.data(), items.size(), loc) {}
  template <class T>
  requires std::is_convertible_v<T, IndexItem> Indices(const T& item,
                                                       SourceLoc loc = SourceLoc::current())
      : loc_(loc), n_(1) {  // NOLINT
    items_[0] = IndexItem(item);
  }
  size_t size() const {
    return n_;
  }  ///< as written; past kMax the items are not kept and indexing throws
  const IndexItem& operator[](size_t i) const { return items_[i]; }
  const SourceLoc& loc() const { return loc_; }

 private:
  Indices(const IndexItem* items, size_t n, SourceLoc loc) : loc_(loc), n_(n) {
    for (size_t i = 0; i < n && i < kMax; ++i) items_[i] = items[i];
  }
  SourceLoc loc_;
  size_t n_;
  IndexItem items_[kMax];
};

/// Which dims a reduction runs over: one number, a braced list, or nothing for all of them.
/// Negative ones count from the end.
class Axes {
 public:
  Axes() = default;
  template <class T>
  requires std::is_integral_v<T> Axes(T dim)
      : dims_{static_cast<int64_t>(dim)}, all_(false) {}  // NOLINT
  Axes(std::initializer_list<int64_t> dims) : dims_(dims), all_(dims.size() == 0) {}
  Axes(const std::vector<int64_t>& dims) : dims_(dims), all_(dims.empty()) {}  // NOLINT
  Axes(const Dims& dims) : dims_(dims), all_(dims.empty()) {}                  // NOLINT
  bool all() const { return all_; }
  const Dims& dims() const { return dims_; }

 private:
  Dims dims_;
  bool all_ = true;
};

/// Element type and device of a new tensor. What is not given: float32 (or what the function says),
/// the default device. Written as zeros({2, 3}), zeros({2, 3}, int64), zeros({2, 3}, "cpu:1"),
/// zeros({2, 3}, {int64, "cpu:1"}).
struct Options {
  std::optional<DType> dtype;
  std::optional<Device> device;
  Options() = default;
  Options(DType t) : dtype(t) {}                 // NOLINT(google-explicit-constructor)
  Options(const Device& d) : device(d) {}        // NOLINT(google-explicit-constructor)
  Options(const char* d) : device(Device(d)) {}  // NOLINT(google-explicit-constructor)
  Options(DType t, const Device& d) : dtype(t), device(d) {}
};

/// A tensor operand together with the line it was written on.
struct TensorArg {
  const Tensor& tensor;
  SourceLoc loc;
  TensorArg(const Tensor& t, SourceLoc l = SourceLoc::current()) : tensor(t), loc(l) {}  // NOLINT
};

/// A tensor or a number together with the line it was written on.
struct Operand {
  const Tensor* tensor;  ///< null: the number
  Scalar scalar;
  SourceLoc loc;
  Operand(const Tensor& t, SourceLoc l = SourceLoc::current()) : tensor(&t), loc(l) {}  // NOLINT
  Operand(const Scalar& s, SourceLoc l = SourceLoc::current())
      : tensor(nullptr), scalar(s), loc(l) {}  // NOLINT
  template <Number T>
  Operand(T v, SourceLoc l = SourceLoc::current())
      : tensor(nullptr), scalar(v), loc(l) {}  // NOLINT
};

/// Values and where they were found: max(x, dim), min(x, dim).
struct ValuesIndices;
/// Sign and logarithm of the absolute value of a determinant: slogdet(x).
struct SignLogdet;

#define INGOT_LOC SourceLoc loc = SourceLoc::current()

/// A multidimensional array, on any device. Tensor() is undefined: using it throws Error(State).
class Tensor {
 public:
  Tensor() : cell_(nullptr) {}
  Tensor(const Tensor& o) : cell_(o.cell_) {
    if (cell_) retain(cell_);
  }
  Tensor(Tensor&& o) noexcept : cell_(::std::exchange(o.cell_, nullptr)) {}
  ~Tensor() {
    if (cell_) release(cell_);
  }
  /// Makes this handle name o's value; other copies of the old handle keep theirs.
  Tensor& operator=(const Tensor& o) & {
    Tensor copy(o);
    ::std::swap(cell_, copy.cell_);
    return *this;
  }
  Tensor& operator=(Tensor&& o) & noexcept {
    ::std::swap(cell_, o.cell_);
    return *this;
  }
  /// x[...] = v: writes v (broadcast, cast) into x. Throws as copy_ does.
  void operator=(const Operand& v) &&;

  /// false for Tensor().
  bool defined() const { return cell_ != nullptr; }
  /// Sizes of the dims.
  Dims shape(INGOT_LOC) const;
  Dims sizes(INGOT_LOC) const { return shape(loc); }
  /// Size of one dim; a negative one counts from the end. Throws Error(Dim) outside the tensor's
  /// dims.
  int64_t size(int64_t dim, INGOT_LOC) const;
  /// Number of dims.
  int dim(INGOT_LOC) const { return shape(loc).size(); }
  /// Number of elements.
  int64_t numel(INGOT_LOC) const { return shape(loc).numel(); }
  DType dtype(INGOT_LOC) const;
  Device device(INGOT_LOC) const;
  /// The name shown in errors and plans ("" when there is none), and how it is given.
  ::std::string name(INGOT_LOC) const;
  Tensor& set_name(::std::string name, INGOT_LOC);

  // ---- Host data out. Each of these runs what is pending and waits for it.

  /// The one element. Throws Error(Shape) when there are more or none.
  template <Number T = double>
  T item(INGOT_LOC) const {
    return scalar_value(loc).to<T>();
  }
  Scalar scalar_value(INGOT_LOC) const;
  /// All elements in row-major order, converted to T.
  template <Number T>
  ::std::vector<T> to_vector(INGOT_LOC) const {
    const Tensor now = snapshot(loc);
    ::std::vector<T> v(static_cast<size_t>(now.numel(loc)));
    if constexpr (::std::is_same_v<T, bool>) {
      ::std::vector<uint8_t> bytes = now.to(DType::Bool, loc).template to_vector<uint8_t>(loc);
      for (size_t i = 0; i < bytes.size(); ++i) v[i] = bytes[i] != 0;
    } else {
      now.copy_to(v.data(), dtype_of<T>(), loc);
    }
    return v;
  }
  /// Writes all elements in row-major order to dst, which has room for numel() of them: in the
  /// tensor's own type, or converted to `as`.
  void copy_to(void* dst, INGOT_LOC) const;
  void copy_to(void* dst, DType as, INGOT_LOC) const;
  /// A snapshot of the value: later writes to this tensor do not reach it. Nothing is copied.
  /// Reading size and elements from it while other threads write is consistent.
  Tensor snapshot(INGOT_LOC) const;
  /// As operator<< prints it.
  ::std::string to_string(INGOT_LOC) const;
  /// Runs what is pending below this tensor (see eval() in runtime.h); returns it.
  const Tensor& eval_(INGOT_LOC) const;

  // ---- Autograd (autograd.h says more).

  /// Adds d(this)/d(leaf) into grad() of every leaf that requires it. This must be a single element
  /// unless `gradient` (same shape) is given. Throws Error(Autograd) when nothing here requires a
  /// gradient or the history is gone.
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false,
                INGOT_LOC) const;
  /// The accumulated gradient; undefined before the first backward(). Throws Error(Autograd) on a
  /// non-leaf that does not retain its gradient.
  Tensor grad(INGOT_LOC) const;
  /// Replaces the accumulated gradient; Tensor() clears it. Throws Error(Shape) unless shapes
  /// agree.
  void set_grad(const Tensor& gradient, INGOT_LOC) const;
  void zero_grad(INGOT_LOC) const { set_grad({}, loc); }
  bool requires_grad(INGOT_LOC) const;
  /// Marks a leaf as a parameter. Throws Error(DType) unless the type is floating, Error(Autograd)
  /// on a non-leaf.
  Tensor& requires_grad_(bool on = true, INGOT_LOC);
  /// No history: made by the program rather than by an operation that is differentiated through.
  bool is_leaf(INGOT_LOC) const;
  /// Keeps the gradient of this non-leaf in grad() too.
  void retain_grad(INGOT_LOC) const;
  /// The same value without history.
  Tensor detach(INGOT_LOC) const;

  // ---- Indexing.

  /// x[3], x[Slice{1, 5}], x[{0, Slice{1, 5}, Ellipsis}]: a view; writing to it (x[...] = v, x[...]
  /// += v) writes to x. Throws Error(Index) outside the tensor or with more items than dims. With
  /// tensors among the items, x[{rows, Slice{}, mask}], a new tensor: integer tensors broadcast
  /// against each other and pick elements, a mask selects the positions where it is true (its
  /// values are read: Error(State) inside a captured function). The selected dims are where the
  /// items were if those are neighbours, else first, as in PyTorch. x[...] = v and x[...] += v
  /// still write to x (of several values for one position the last one wins); methods such as
  /// add_() change the new tensor alone. An index outside its dim raises Error(Index) when the
  /// value is computed.
  IndexedTensor operator[](const Indices& index) const;

  // ---- In place. Other handles of the same tensor see the change; a view writes through to its
  // base, and views taken earlier from that base show the change. v is broadcast to this shape and
  // cast to this type. Throws Error(Shape) where that is impossible, Error(DType) for a floating
  // result in an integer tensor, Error(Autograd) on a leaf that requires gradients (use no_grad).

  Tensor& operator+=(const Operand& v) { return add_(v, v.loc); }
  Tensor& operator-=(const Operand& v) { return sub_(v, v.loc); }
  Tensor& operator*=(const Operand& v) { return mul_(v, v.loc); }
  Tensor& operator/=(const Operand& v) { return div_(v, v.loc); }
  Tensor& add_(const Operand& v, INGOT_LOC);
  Tensor& sub_(const Operand& v, INGOT_LOC);
  Tensor& mul_(const Operand& v, INGOT_LOC);
  Tensor& div_(const Operand& v, INGOT_LOC);
  Tensor& add_(const Operand& v, const Scalar& alpha, INGOT_LOC);  ///< this += alpha * v
  Tensor& sub_(const Operand& v, const Scalar& alpha, INGOT_LOC);
  Tensor& div_(const Operand& v, ::std::string_view rounding_mode, INGOT_LOC);
  Tensor& clamp_(const Scalar& lo, const Scalar& hi, INGOT_LOC);
  Tensor& copy_(const Operand& v, INGOT_LOC);
  Tensor& fill_(const Scalar& v, INGOT_LOC);
  Tensor& fill_(const Tensor& v, INGOT_LOC);  ///< a 0-d tensor: Error(Shape) otherwise
  Tensor& zero_(INGOT_LOC);
  Tensor& masked_fill_(const Tensor& mask, const Operand& value, INGOT_LOC);
  Tensor& lerp_(const Tensor& end, const Operand& weight, INGOT_LOC);
  Tensor& addcmul_(const Tensor& a, const Tensor& b, const Scalar& value = 1, INGOT_LOC);
  Tensor& addcdiv_(const Tensor& a, const Tensor& b, const Scalar& value = 1, INGOT_LOC);
  Tensor& nan_to_num_(double nan = 0, ::std::optional<double> posinf = {},
                      ::std::optional<double> neginf = {}, INGOT_LOC);
  Tensor& logit_(::std::optional<double> eps = {}, INGOT_LOC);
  Tensor& round_(int64_t decimals, INGOT_LOC);
  Tensor& leaky_relu_(double negative_slope = 0.01, INGOT_LOC);
  Tensor& elu_(double alpha = 1, INGOT_LOC);
  Tensor& hardtanh_(double min_val = -1, double max_val = 1, INGOT_LOC);
  Tensor& threshold_(double threshold, double value, INGOT_LOC);
  Tensor& tril_(int64_t diagonal = 0, INGOT_LOC);
  Tensor& triu_(int64_t diagonal = 0, INGOT_LOC);
  /// `value` along the main diagonal of a matrix.
  Tensor& fill_diagonal_(const Scalar& value, INGOT_LOC);
  /// Replaced by random values (creation.h): uniform in [from, to), normal, 1 with probability p,
  /// integers, exponential.
  Tensor& uniform_(double from = 0, double to = 1, const Generator& generator = default_generator(),
                   INGOT_LOC);
  Tensor& normal_(double mean = 0, double std = 1, const Generator& generator = default_generator(),
                  INGOT_LOC);
  Tensor& bernoulli_(double p = 0.5, const Generator& generator = default_generator(), INGOT_LOC);
  Tensor& random_(int64_t from, int64_t to, const Generator& generator = default_generator(),
                  INGOT_LOC);
  Tensor& exponential_(double lambd = 1, const Generator& generator = default_generator(),
                       INGOT_LOC);
#define INGOT_UNARY_(name) Tensor& name##_(INGOT_LOC);
#define INGOT_BINARY_(name) Tensor& name##_(const Operand& b, INGOT_LOC);
#include "ingot/methods.def"

  // ---- Type, device and copies.

  /// Converted to another type; this tensor itself when it has it.
  Tensor to(DType dtype, INGOT_LOC) const;
  /// On another device (differentiable); this tensor itself when it is there.
  Tensor to(const Device& device, INGOT_LOC) const;
  Tensor to(const char* device, INGOT_LOC) const { return to(Device(device), loc); }
  Tensor to(const Device& device, DType dtype, INGOT_LOC) const {
    return to(dtype, loc).to(device, loc);
  }
  Tensor cpu(INGOT_LOC) const;
  /// This tensor; of a view whose elements are not in row-major order in its base a separate tensor
  /// with the same value and history. (Both read as row-major.)
  Tensor contiguous(INGOT_LOC) const;
  /// Does contiguous() give this tensor? A result of an operation always is.
  bool is_contiguous(INGOT_LOC) const;
  Tensor clone(INGOT_LOC) const;  ///< A separate tensor with the same value and history.

  // ---- Movement (ops.h).

  Tensor reshape(const Dims& shape, INGOT_LOC) const;
  /// reshape() whose result is always a view.
  Tensor view(const Dims& shape, INGOT_LOC) const;
  template <Number T>
  Tensor view(T n, INGOT_LOC) const {
    return view(Dims{static_cast<int64_t>(n)}, loc);
  }
  Tensor view_as(const Tensor& other, INGOT_LOC) const { return view(other.shape(loc), loc); }
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1, INGOT_LOC) const;
  Tensor squeeze(INGOT_LOC) const;
  Tensor squeeze(int64_t dim, INGOT_LOC) const;
  Tensor unsqueeze(int64_t dim, INGOT_LOC) const;
  Tensor permute(const Dims& dims, INGOT_LOC) const;
  Tensor transpose(int64_t dim0, int64_t dim1, INGOT_LOC) const;
  Tensor t(INGOT_LOC) const;
  Tensor expand(const Dims& shape, INGOT_LOC) const;
  Tensor expand_as(const Tensor& other, INGOT_LOC) const { return expand(other.shape(loc), loc); }
  Tensor broadcast_to(const Dims& shape, INGOT_LOC) const { return expand(shape, loc); }
  Tensor narrow(int64_t dim, int64_t start, int64_t length, INGOT_LOC) const;
  Tensor select(int64_t dim, int64_t index, INGOT_LOC) const;
  Tensor slice(int64_t dim, const Slice& range, INGOT_LOC) const;
  Tensor flip(const Axes& dims, INGOT_LOC) const;
  Tensor repeat(const Dims& times, INGOT_LOC) const;
  ::std::vector<Tensor> split(int64_t size, int64_t dim = 0, INGOT_LOC) const;
  ::std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0, INGOT_LOC) const;
  Tensor tril(int64_t diagonal = 0, INGOT_LOC) const;
  Tensor triu(int64_t diagonal = 0, INGOT_LOC) const;
  ::std::vector<Tensor> split(const ::std::vector<int64_t>& sizes, int64_t dim = 0,
                              INGOT_LOC) const;
  ::std::vector<Tensor> tensor_split(int64_t sections, int64_t dim = 0, INGOT_LOC) const;
  ::std::vector<Tensor> unbind(int64_t dim = 0, INGOT_LOC) const;
  Tensor unflatten(int64_t dim, const Dims& sizes, INGOT_LOC) const;
  /// Windows of one dim every `step` elements, as a last dim: a view. It can be written to where
  /// the windows do not overlap. Error(Value) when none fits.
  Tensor unfold(int64_t dim, int64_t size, int64_t step, INGOT_LOC) const;
  Tensor movedim(int64_t source, int64_t destination, INGOT_LOC) const;
  Tensor movedim(const Dims& source, const Dims& destination, INGOT_LOC) const;
  Tensor swapaxes(int64_t axis0, int64_t axis1, INGOT_LOC) const {
    return transpose(axis0, axis1, loc);
  }
  Tensor swapdims(int64_t dim0, int64_t dim1, INGOT_LOC) const {
    return transpose(dim0, dim1, loc);
  }
  Tensor roll(const Dims& shifts, const Dims& dims = {}, INGOT_LOC) const;
  Tensor roll(int64_t shift, int64_t dim, INGOT_LOC) const;
  Tensor rot90(int64_t k = 1, const Dims& dims = {0, 1}, INGOT_LOC) const;
  Tensor tile(const Dims& dims, INGOT_LOC) const;
  Tensor repeat_interleave(int64_t repeats, ::std::optional<int64_t> dim = {}, INGOT_LOC) const;
  Tensor repeat_interleave(const Tensor& repeats, ::std::optional<int64_t> dim = {},
                           INGOT_LOC) const;
  Tensor diag(int64_t diagonal = 0, INGOT_LOC) const;
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1, INGOT_LOC) const;
  Tensor diag_embed(int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1, INGOT_LOC) const;
  Tensor new_zeros(const Dims& shape, const Options& options = {}, INGOT_LOC) const;
  Tensor new_ones(const Dims& shape, const Options& options = {}, INGOT_LOC) const;
  Tensor new_full(const Dims& shape, const Scalar& value, const Options& options = {},
                  INGOT_LOC) const;

  // ---- Elementwise (ops.h).

  Tensor neg(INGOT_LOC) const;
  Tensor abs(INGOT_LOC) const;
  Tensor sign(INGOT_LOC) const;
  Tensor exp(INGOT_LOC) const;
  Tensor exp2(INGOT_LOC) const;
  Tensor expm1(INGOT_LOC) const;
  Tensor log(INGOT_LOC) const;
  Tensor log2(INGOT_LOC) const;
  Tensor log10(INGOT_LOC) const;
  Tensor log1p(INGOT_LOC) const;
  Tensor sqrt(INGOT_LOC) const;
  Tensor rsqrt(INGOT_LOC) const;
  Tensor reciprocal(INGOT_LOC) const;
  Tensor square(INGOT_LOC) const;
  Tensor sin(INGOT_LOC) const;
  Tensor cos(INGOT_LOC) const;
  Tensor tan(INGOT_LOC) const;
  Tensor tanh(INGOT_LOC) const;
  Tensor erf(INGOT_LOC) const;
  Tensor sigmoid(INGOT_LOC) const;
  Tensor relu(INGOT_LOC) const;
  Tensor floor(INGOT_LOC) const;
  Tensor ceil(INGOT_LOC) const;
  Tensor round(INGOT_LOC) const;
  Tensor trunc(INGOT_LOC) const;
  Tensor isnan(INGOT_LOC) const;
  Tensor isinf(INGOT_LOC) const;
  Tensor isfinite(INGOT_LOC) const;
  Tensor logical_not(INGOT_LOC) const;
  Tensor add(const Operand& b, INGOT_LOC) const;
  Tensor sub(const Operand& b, INGOT_LOC) const;
  Tensor mul(const Operand& b, INGOT_LOC) const;
  Tensor div(const Operand& b, INGOT_LOC) const;
  Tensor pow(const Operand& b, INGOT_LOC) const;
  Tensor maximum(const Operand& b, INGOT_LOC) const;
  Tensor minimum(const Operand& b, INGOT_LOC) const;
  Tensor eq(const Operand& b, INGOT_LOC) const;
  Tensor ne(const Operand& b, INGOT_LOC) const;
  Tensor lt(const Operand& b, INGOT_LOC) const;
  Tensor le(const Operand& b, INGOT_LOC) const;
  Tensor gt(const Operand& b, INGOT_LOC) const;
  Tensor ge(const Operand& b, INGOT_LOC) const;
  Tensor logical_and(const Operand& b, INGOT_LOC) const;
  Tensor logical_or(const Operand& b, INGOT_LOC) const;
  Tensor logical_xor(const Operand& b, INGOT_LOC) const;
  Tensor clamp(const Scalar& lo, const Scalar& hi, INGOT_LOC) const;
  Tensor clamp_min(const Scalar& lo, INGOT_LOC) const;
  Tensor clamp_max(const Scalar& hi, INGOT_LOC) const;
  Tensor add(const Operand& b, const Scalar& alpha, INGOT_LOC) const;
  Tensor sub(const Operand& b, const Scalar& alpha, INGOT_LOC) const;
  Tensor div(const Operand& b, ::std::string_view rounding_mode, INGOT_LOC) const;
  Tensor round(int64_t decimals, INGOT_LOC) const;
  Tensor logit(::std::optional<double> eps = {}, INGOT_LOC) const;
  Tensor lerp(const Tensor& end, const Operand& weight, INGOT_LOC) const;
  Tensor addcmul(const Tensor& a, const Tensor& b, const Scalar& value = 1, INGOT_LOC) const;
  Tensor addcdiv(const Tensor& a, const Tensor& b, const Scalar& value = 1, INGOT_LOC) const;
  Tensor nan_to_num(double nan = 0, ::std::optional<double> posinf = {},
                    ::std::optional<double> neginf = {}, INGOT_LOC) const;
  Tensor isclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                 bool equal_nan = false, INGOT_LOC) const;
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false,
                INGOT_LOC) const;
  bool equal(const Tensor& other, INGOT_LOC) const;
  /// this where condition is true, other elsewhere.
  Tensor where(const Tensor& condition, const Operand& other, INGOT_LOC) const;
#define INGOT_UNARY(name) Tensor name(INGOT_LOC) const;
#define INGOT_BINARY(name) Tensor name(const Operand& b, INGOT_LOC) const;
#include "ingot/methods.def"
  /// this where mask is false, value where it is true.
  Tensor masked_fill(const Tensor& mask, const Operand& value, INGOT_LOC) const;

  // ---- Reductions (ops.h).

  Tensor sum(const Axes& dim = {}, bool keepdim = false, INGOT_LOC) const;
  Tensor mean(const Axes& dim = {}, bool keepdim = false, INGOT_LOC) const;
  Tensor var(const Axes& dim = {}, double correction = 1, bool keepdim = false, INGOT_LOC) const;
  Tensor std(const Axes& dim = {}, double correction = 1, bool keepdim = false, INGOT_LOC) const;
  Tensor prod(const Axes& dim = {}, bool keepdim = false, INGOT_LOC) const;
  Tensor amax(const Axes& dim = {}, bool keepdim = false, INGOT_LOC) const;
  Tensor amin(const Axes& dim = {}, bool keepdim = false, INGOT_LOC) const;
  Tensor max(INGOT_LOC) const;
  Tensor min(INGOT_LOC) const;
  ValuesIndices max(int64_t dim, bool keepdim = false, INGOT_LOC) const;
  ValuesIndices min(int64_t dim, bool keepdim = false, INGOT_LOC) const;
  Tensor argmax(::std::optional<int64_t> dim = {}, bool keepdim = false, INGOT_LOC) const;
  Tensor argmin(::std::optional<int64_t> dim = {}, bool keepdim = false, INGOT_LOC) const;
  Tensor any(const Axes& dim = {}, bool keepdim = false, INGOT_LOC) const;
  Tensor all(const Axes& dim = {}, bool keepdim = false, INGOT_LOC) const;
  Tensor logsumexp(const Axes& dim, bool keepdim = false, INGOT_LOC) const;
  Tensor norm(INGOT_LOC) const;

  // ---- Linear algebra, indexing, networks (ops.h).

  Tensor matmul(const Tensor& other, INGOT_LOC) const;
  Tensor mm(const Tensor& other, INGOT_LOC) const;
  Tensor bmm(const Tensor& other, INGOT_LOC) const;
  Tensor mv(const Tensor& vec, INGOT_LOC) const;
  Tensor dot(const Tensor& other, INGOT_LOC) const;
  Tensor vdot(const Tensor& other, INGOT_LOC) const;
  Tensor inner(const Tensor& other, INGOT_LOC) const;
  Tensor outer(const Tensor& vec2, INGOT_LOC) const;
  Tensor kron(const Tensor& other, INGOT_LOC) const;
  Tensor addmm(const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
               const Scalar& alpha = 1, INGOT_LOC) const;
  Tensor addmv(const Tensor& mat, const Tensor& vec, const Scalar& beta = 1,
               const Scalar& alpha = 1, INGOT_LOC) const;
  Tensor addr(const Tensor& vec1, const Tensor& vec2, const Scalar& beta = 1,
              const Scalar& alpha = 1, INGOT_LOC) const;
  Tensor addbmm(const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1,
                const Scalar& alpha = 1, INGOT_LOC) const;
  Tensor baddbmm(const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1,
                 const Scalar& alpha = 1, INGOT_LOC) const;
  Tensor matrix_power(int64_t n, INGOT_LOC) const;
  Tensor cholesky(bool upper = false, INGOT_LOC) const;
  SignLogdet slogdet(INGOT_LOC) const;
  Tensor gather(int64_t dim, const Tensor& index, INGOT_LOC) const;
  Tensor index_select(int64_t dim, const Tensor& index, INGOT_LOC) const;
  // sorting.h, indexing.h, reductions.h; the forms with an underscore write into this tensor and
  // return it.
  Tensor cumsum(int64_t dim, ::std::optional<DType> dtype = {}, INGOT_LOC) const;
  Tensor cumprod(int64_t dim, ::std::optional<DType> dtype = {}, INGOT_LOC) const;
  Tensor logcumsumexp(int64_t dim, INGOT_LOC) const;
  ValuesIndices cummax(int64_t dim, INGOT_LOC) const;
  ValuesIndices cummin(int64_t dim, INGOT_LOC) const;
  ValuesIndices sort(int64_t dim = -1, bool descending = false, INGOT_LOC) const;
  Tensor argsort(int64_t dim = -1, bool descending = false, bool stable = true, INGOT_LOC) const;
  ValuesIndices topk(int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true,
                     INGOT_LOC) const;
  ValuesIndices kthvalue(int64_t k, int64_t dim = -1, bool keepdim = false, INGOT_LOC) const;
  Tensor median(INGOT_LOC) const;
  ValuesIndices median(int64_t dim, bool keepdim = false, INGOT_LOC) const;
  Tensor norm(double p, const Axes& dim = {}, bool keepdim = false, INGOT_LOC) const;
  Tensor count_nonzero(const Axes& dim = {}, INGOT_LOC) const;
  Tensor nansum(const Axes& dim = {}, bool keepdim = false, INGOT_LOC) const;
  Tensor nanmean(const Axes& dim = {}, bool keepdim = false, INGOT_LOC) const;
  Tensor take(const Tensor& index, INGOT_LOC) const;
  Tensor take_along_dim(const Tensor& index, ::std::optional<int64_t> dim = {}, INGOT_LOC) const;
  Tensor masked_select(const Tensor& mask, INGOT_LOC) const;
  Tensor nonzero(INGOT_LOC) const;
  Tensor scatter(int64_t dim, const Tensor& index, const Operand& src, INGOT_LOC) const;
  Tensor scatter_add(int64_t dim, const Tensor& index, const Tensor& src, INGOT_LOC) const;
  Tensor scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src,
                        ::std::string_view reduce, bool include_self = true, INGOT_LOC) const;
  Tensor index_add(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha = 1,
                   INGOT_LOC) const;
  Tensor index_copy(int64_t dim, const Tensor& index, const Tensor& source, INGOT_LOC) const;
  Tensor index_fill(int64_t dim, const Tensor& index, const Operand& value, INGOT_LOC) const;
  Tensor masked_scatter(const Tensor& mask, const Tensor& source, INGOT_LOC) const;
  Tensor& scatter_(int64_t dim, const Tensor& index, const Operand& src, INGOT_LOC);
  Tensor& scatter_add_(int64_t dim, const Tensor& index, const Tensor& src, INGOT_LOC);
  Tensor& scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src,
                          ::std::string_view reduce, bool include_self = true, INGOT_LOC);
  Tensor& index_add_(int64_t dim, const Tensor& index, const Tensor& source,
                     const Scalar& alpha = 1, INGOT_LOC);
  Tensor& index_copy_(int64_t dim, const Tensor& index, const Tensor& source, INGOT_LOC);
  Tensor& index_fill_(int64_t dim, const Tensor& index, const Operand& value, INGOT_LOC);
  Tensor& index_put_(const Indices& indices, const Operand& values, bool accumulate = false,
                     INGOT_LOC);
  Tensor& masked_scatter_(const Tensor& mask, const Tensor& source, INGOT_LOC);
  Tensor& put_(const Tensor& index, const Tensor& source, bool accumulate = false, INGOT_LOC);

  Tensor softmax(int64_t dim, INGOT_LOC) const;
  Tensor log_softmax(int64_t dim, INGOT_LOC) const;

  // ---- For the library.

  Cell* cell() const { return cell_; }
  /// Adopts one reference to the cell.
  static Tensor adopt(Cell* c) {
    Tensor t;
    t.cell_ = c;
    return t;
  }

 private:
  Cell* cell_;
};

struct ValuesIndices {
  Tensor values, indices;
};
struct SignLogdet {
  Tensor sign, logabsdet;
};

/// The result of x[...]: the tensor, and for an index with tensors also the positions in x that
/// assignment writes to. As a Tensor (Tensor y = x[...]) it is like any other.
class IndexedTensor : public Tensor {
 public:
  explicit IndexedTensor(Tensor t, ::std::shared_ptr<const IndexPlace> place = {})
      : Tensor(::std::move(t)), place_(::std::move(place)) {}
  IndexedTensor(const IndexedTensor&) = default;
  IndexedTensor(IndexedTensor&&) noexcept = default;
  ~IndexedTensor() = default;
  IndexedTensor& operator=(const IndexedTensor&) & = default;
  IndexedTensor& operator=(IndexedTensor&&) & noexcept = default;
  /// Makes this handle name t's value.
  IndexedTensor& operator=(const Tensor& t) & { return *this = IndexedTensor(t); }
  /// Write v (broadcast, cast), or the sum, difference, product or quotient with it, into the
  /// indexed tensor.
  void operator=(const Operand& v) &&;
  void operator+=(const Operand& v) &&;
  void operator-=(const Operand& v) &&;
  void operator*=(const Operand& v) &&;
  void operator/=(const Operand& v) &&;
  IndexedTensor& operator+=(const Operand& v) & { return add_(v, v.loc), *this; }
  IndexedTensor& operator-=(const Operand& v) & { return sub_(v, v.loc), *this; }
  IndexedTensor& operator*=(const Operand& v) & { return mul_(v, v.loc), *this; }
  IndexedTensor& operator/=(const Operand& v) & { return div_(v, v.loc), *this; }

 private:
  ::std::shared_ptr<const IndexPlace> place_;
};

// ---- Operators. Broadcasting is NumPy's, the result's type PyTorch's; the functions of ops.h say
// what throws.
// == and the other comparisons give bool tensors. & | ^ ~ work on bool and integer tensors.

#define INGOT_OPERATOR(op)                                 \
  Tensor operator op(const Tensor& a, const TensorArg& b); \
  Tensor operator op(const TensorArg& a, const Scalar& b); \
  Tensor operator op(const Scalar& a, const TensorArg& b);
INGOT_OPERATOR(+)
INGOT_OPERATOR(-)
INGOT_OPERATOR(*)
INGOT_OPERATOR(/)
INGOT_OPERATOR(%)
INGOT_OPERATOR(&)
INGOT_OPERATOR(|)
INGOT_OPERATOR(^)
#undef INGOT_OPERATOR
// Both operands convert, so that C++20's reversed candidates of == never win.
#define INGOT_COMPARISON(op)                                  \
  Tensor operator op(const TensorArg& a, const TensorArg& b); \
  Tensor operator op(const TensorArg& a, const Scalar& b);    \
  Tensor operator op(const Scalar& a, const TensorArg& b);
INGOT_COMPARISON(==)
INGOT_COMPARISON(!=)
INGOT_COMPARISON(<)
INGOT_COMPARISON(<=)
INGOT_COMPARISON(>)
INGOT_COMPARISON(>=)
#undef INGOT_COMPARISON
Tensor operator-(const TensorArg& a);
/// Bitwise not; logical not of bools.
Tensor operator~(const TensorArg& a);
/// True where the element is zero.
Tensor operator!(const TensorArg& a);

/// Prints like NumPy, with type and device: past 1000 elements only the edges. Runs what is
/// pending.
std::ostream& operator<<(std::ostream& out, const TensorArg& x);

}  // namespace ingot
