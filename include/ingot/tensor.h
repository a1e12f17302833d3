// Tensor: a handle on a value that may not have been computed yet. Copies share one cell; in-place calls rebind it.
#pragma once
#include <array>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "ingot/device.h"
#include "ingot/dtype.h"
#include "ingot/error.h"
#include "ingot/shape.h"
#include "ingot/source.h"

namespace ingot {

struct Cell;
struct Node;
class Tensor;

template <class T>
concept Number = std::is_arithmetic_v<T>;

/// A number as written in the program: its kind (bool, integer, floating) takes part in promotion as in PyTorch.
struct Scalar {
  enum class Kind : uint8_t { Bool, Int, Float } kind = Kind::Int;
  double f = 0;
  int64_t i = 0;
  Scalar() = default;
  template <Number T>
  Scalar(T v)  // NOLINT(google-explicit-constructor)
      : kind(std::is_same_v<T, bool> ? Kind::Bool : std::is_floating_point_v<T> ? Kind::Float : Kind::Int),
        f(static_cast<double>(v)),
        i(static_cast<int64_t>(v)) {}
};

/// start:stop:step as in Python; a missing field is std::nullopt. Slice{} takes everything.
struct Slice {
  std::optional<int64_t> start{}, stop{}, step{};
};
struct EllipsisType {};
inline constexpr EllipsisType Ellipsis{};
struct NewAxisType {};
inline constexpr NewAxisType NewAxis{};
/// One entry of an index: an integer (drops the dim), a Slice, Ellipsis or NewAxis.
using IndexItem = std::variant<int64_t, Slice, EllipsisType, NewAxisType>;
