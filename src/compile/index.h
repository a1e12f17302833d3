// Index maps. A kernel's iteration space is a list of axes; the position inside a value is one
// linear function of the axes per dimension. Movement ops transform these functions; a reshape that
// would need a division asks for an axis to be split in two instead, and the caller starts again
// with the finer space.
#pragma once
#include <array>
#include <vector>

#include "codegen/kernel_spec.h"
#include "compile/ir.h"

namespace ingot {

inline constexpr int kIndirect = kMaxAxes;  // pseudo axis: the value of an index tensor

/// offset + sum c[k] * axis k.
struct Lin {
  int64_t off = 0;
  std::array<int64_t, kMaxAxes + 1> c{};
  bool operator==(const Lin&) const = default;
};
using Index = std::vector<Lin>;  // one per dimension of a value

struct Limit {  // 0 <= at < extent
  Lin at;
  int64_t extent;
  bool operator==(const Limit&) const = default;
};

struct SpaceAxis {
  int64_t extent;
  bool inner;
  int64_t flat;  // stride in the row-major order of the whole space
  int64_t sub;   // stride in the row-major order of the outer (or inner) axes alone
};

/// The iteration space of a kernel, refined as reshapes demand.
struct Space {
  std::vector<SpaceAxis> axes;
  int64_t indirect_extent = 0;  // of the pseudo axis, when one is in use

  static Space of(const Dims& shape, uint32_t inner_mask);
  /// Splits axis k into (extent / n, n).
  void split(int k, int64_t n);
  int64_t extent(int k) const { return k == kIndirect ? indirect_extent : axes[k].extent; }
  int size() const { return static_cast<int>(axes.size()); }
  Lin flat() const;
  Lin outer() const;
};

enum class Fit { Ok, Split, Fail };
struct Fitting {
  Fit fit = Fit::Ok;
  int axis = -1;      // Split: this axis ...
  int64_t inner = 0;  // ... needs an inner part of this size
  int val = -1;       // Fail: the reshape that cannot be looked through
};

/// Positions in `shape` of the linear position `flat`.
Fitting unflatten(const Space& s, const Lin& flat, const Dims& shape, Index& out);
/// The linear position in a row-major value of this shape.
Lin flatten(const Index& idx, const Dims& shape);
/// sum idx[d] * stride[d].
Lin dot_index(const Index& idx, const Dims& stride);
/// From positions in view v's result to positions in its input; a Pad adds limits.
Fitting through(const Graph& g, int v, const Space& s, Index& idx, std::vector<Limit>& limits);
/// From positions in a broadcast result to positions in an operand of `shape`.
Index broadcast_index(const Index& idx, const Dims& shape);
/// Smallest and largest value of a linear function over the space.
void range_of(const Space& s, const Lin& l, int64_t& lo, int64_t& hi);

}  // namespace ingot
