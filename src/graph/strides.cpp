#include "graph/strides.h"

#include <algorithm>

#include "graph/node.h"

namespace ingot {

Strides row_major_strides(const Dims& shape) {
  Dims out = Dims::filled(shape.size(), 1);
  for (int i = shape.size() - 1; i > 0; --i) out[i - 1] = out[i] * std::max<int64_t>(shape[i], 1);
  return out;
}

bool is_row_major(const Dims& shape, const Strides& strides) {
  if (shape.numel() == 0) return true;
  if (!strides) return false;
  int64_t expected = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;  // its stride is never used
    if ((*strides)[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

// Runs of dims whose elements are evenly spaced are split and merged freely; the dims of the new
// shape must not reach over the end of a run.
Strides reshaped_strides(const Dims& from, const Strides& strides, const Dims& to) {
  if (from.numel() == 0 || from.empty()) return row_major_strides(to);
  if (!strides) return {};
  const Dims& old = *strides;
  Dims out = Dims::filled(to.size(), 1);
  int left = to.size();  // dims of the new shape without a stride
  int64_t step = old.back(), run = 1, covered = 1;
  for (int i = from.size() - 1; i >= 0; --i) {
    run *= from[i];
    const bool ends = i == 0 || (from[i - 1] != 1 && old[i - 1] != run * step);
    if (!ends) continue;
    while (left > 0 && (covered < run || to[left - 1] == 1)) {
      out[--left] = covered * step;
      covered *= to[left];
    }
    if (covered != run) return {};
    if (i > 0) step = old[i - 1];
    run = covered = 1;
  }
  return left == 0 ? Strides(out) : Strides();
}

namespace {

// A dim of one element has any stride: a large step must not overflow it.
int64_t stepped(int64_t stride, int64_t step, int64_t size) {
  return size > 1 ? stride * step : stride;
}

Dims windowed(const WindowAttrs& a, const Dims& out_shape, const Dims& strides) {
  const int n = a.stride.size(), lead = strides.size() - n;
  Dims out(strides.begin(), lead);
  for (int d = 0; d < n; ++d)
    out.push_back(stepped(strides[lead + d], a.stride[d], out_shape[lead + d]));
  for (int d = 0; d < n; ++d)
    out.push_back(stepped(strides[lead + d], a.dilation[d], out_shape[lead + n + d]));
  return out;
}

}  // namespace

Strides strides_through(const Node& op, const Dims& shape, const Strides& strides) {
  if (op.op == Op::Reshape) return reshaped_strides(shape, strides, op.shape);
  if (!strides || op.op == Op::Alias) return strides;
  Dims out = *strides;
  switch (op.op) {
    case Op::Permute:
      for (int i = 0; i < out.size(); ++i)
        out[i] = (*strides)[static_cast<int>(op.attrs.as<PermuteAttrs>().order[i])];
      return out;
    case Op::Expand:
      for (int i = 0; i < out.size(); ++i)
        if (shape[i] != op.shape[i]) out[i] = 0;
      return out;
    case Op::Slice:
      for (int i = 0; i < out.size(); ++i)
        out[i] = stepped(out[i], op.attrs.as<SliceAttrs>().step[i], op.shape[i]);
      return out;
    case Op::Window:
      return windowed(op.attrs.as<WindowAttrs>(), op.shape, *strides);
    default:
      return {};
  }
}

}  // namespace ingot
