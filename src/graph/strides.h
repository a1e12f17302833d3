// The strides that a tensor would have if views shared their base's memory. Nothing here is stored
// with strides. They decide what an in-place call reaches: as in PyTorch, contiguous() and
// reshape() give a view where strides can express the result, and a copy elsewhere.
#pragma once
#include <optional>

#include "ingot/shape.h"

namespace ingot {

struct Node;

/// Distances in the base between neighbours along each dim; empty where no strides say it.
using Strides = std::optional<Dims>;

Strides row_major_strides(const Dims& shape);
/// Of op's result, a movement op (or Alias) on a tensor of this shape with these strides.
Strides strides_through(const Node& op, const Dims& shape, const Strides& strides);
/// Of the same elements under another shape.
Strides reshaped_strides(const Dims& from, const Strides& strides, const Dims& to);
bool is_row_major(const Dims& shape, const Strides& strides);

}  // namespace ingot
