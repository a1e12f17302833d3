// Tensor: a handle on a value that may not have been computed yet. Copies share one cell; in-place
// calls rebind it, so every copy sees the change. Functions on tensors are in ops.h; most are
// methods here under the same name. Threads may use and write to one tensor at once: values race,
// memory does not. A handle that is itself assigned to is a variable like any other.
//
// Every function takes a trailing SourceLoc that defaults to the caller's line and ends up in error
// messages. Operators cannot have one, so one of their operands is a TensorArg or Operand, which
// takes the line as it is made.
#pragma once
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ingot/error.h"
#include "ingot/tensor_args.h"

namespace ingot {

struct Cell;      // what copies of a Tensor share; internal
class Generator;  // random.h
const Generator& default_generator();
class IndexedTensor;
struct IndexPlace;  // the target of an index with tensors
void retain(Cell* c);
void release(Cell* c);

/// Values and where they were found: max(x, dim), min(x, dim).
struct ValuesIndices;
/// Sign and logarithm of the absolute value of a determinant: slogdet(x).
struct SignLogdet;

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
  Tensor& clamp_(const Scalar& lo, const Scalar& hi, INGOT_LOC);
  Tensor& copy_(const Operand& v, INGOT_LOC);
  Tensor& fill_(const Scalar& v, INGOT_LOC);
  Tensor& fill_(const Tensor& v, INGOT_LOC);  ///< a 0-d tensor: Error(Shape) otherwise
  Tensor& zero_(INGOT_LOC);
  /// `value` along the main diagonal of a matrix.
  Tensor& fill_diagonal_(const Scalar& value, INGOT_LOC);
  /// this[indices] = values, or += with accumulate (index_put in indexing.h).
  Tensor& index_put_(const Indices& indices, const Operand& values, bool accumulate = false,
                     INGOT_LOC);
  /// Replaced by random values (random.h): uniform in [from, to), normal, 1 with probability p,
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

  /// Windows of one dim every `step` elements, as a last dim: a view. It can be written to where
  /// the windows do not overlap. Error(Value) when none fits.
  Tensor unfold(int64_t dim, int64_t size, int64_t step, INGOT_LOC) const;
  /// reshape() whose result is always a view.
  Tensor view(const Dims& shape, INGOT_LOC) const;
  template <Number T>
  Tensor view(T n, INGOT_LOC) const {
    return view(Dims{static_cast<int64_t>(n)}, loc);
  }
  Tensor view_as(const Tensor& other, INGOT_LOC) const { return view(other.shape(loc), loc); }
  Tensor expand_as(const Tensor& other, INGOT_LOC) const { return expand(other.shape(loc), loc); }
  /// New tensors of this one's type and device unless given.
  Tensor new_zeros(const Dims& shape, const Options& options = {}, INGOT_LOC) const;
  Tensor new_ones(const Dims& shape, const Options& options = {}, INGOT_LOC) const;
  Tensor new_full(const Dims& shape, const Scalar& value, const Options& options = {},
                  INGOT_LOC) const;
  /// this where condition is true, other elsewhere.
  Tensor where(const Tensor& condition, const Operand& other, INGOT_LOC) const;

  // ---- The functions of ops.h that are methods too, and those that write their result into the
  // tensor (x.exp_()): methods.def has a row for each.

#define INGOT_METHOD(result, name, parameters, arguments) \
  result name(INGOT_LIST parameters INGOT_LOC) const;
#define INGOT_IN_PLACE(name, parameters, arguments) \
  Tensor& name##_(INGOT_LIST parameters INGOT_LOC);
#include "ingot/methods.def"

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

// ---- Operators. Broadcasting is NumPy's, the result's type PyTorch's; elementwise.h says what
// throws. == and the other comparisons give bool tensors. & | ^ ~ work on bool and integer tensors,
// ! gives true where an element is zero.

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
