// What functions on tensors take besides tensors: numbers, indices, dims to reduce over, numbers
// per dim, the type and device of a new tensor, and operands that are a tensor or a number.
#pragma once
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <vector>

#include "ingot/device.h"
#include "ingot/dtype.h"
#include "ingot/shape.h"
#include "ingot/source.h"

namespace ingot {

class Tensor;

/// The last parameter of every function on tensors: the caller's line.
#define INGOT_LOC SourceLoc loc = SourceLoc::current()

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

/// One number for every dim, or one for each: 3, {3, 5}.
class PerDim {
 public:
  PerDim() = default;  ///< not given
  template <class T>
  requires std::is_integral_v<T> PerDim(T v)
      : v_{static_cast<int64_t>(v)} {}  // NOLINT(google-explicit-constructor)
  PerDim(std::initializer_list<int64_t> v) : v_(v) {}
  PerDim(const Dims& v) : v_(v) {}  // NOLINT(google-explicit-constructor)
  bool given() const { return !v_.empty(); }
  const Dims& values() const { return v_; }

 private:
  Dims v_;
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

}  // namespace ingot
