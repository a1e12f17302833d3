// See assemble.h. Boxes are taken apart along an axis where they fall into separate intervals;
// those that overlap along every axis are spread over layers, which are added.
#include "autograd/assemble.h"

#include <algorithm>
#include <span>

#include "graph/lift.h"
#include "ingot/ops.h"

namespace ingot::autograd {
namespace {

// A value and its position.
struct Box {
  Dims start;
  NodeRef value;
  int64_t begin(int axis) const { return start[axis]; }
  int64_t end(int axis) const { return start[axis] + value->shape[axis]; }
};
using Boxes = std::vector<Box>;

struct Region {
  Dims start, size;
};

Tensor zeros_in(const Dims& shape, const Node& like) {
  return full(shape, 0.0, {like.dtype, like.device});
}

Tensor padded(const Box& b, const Region& r) {
  if (b.value->shape == r.size) return lift(b.value);
  PadAttrs a{b.start};
  for (int d = 0; d < a.front.size(); ++d) a.front[d] -= r.start[d];
  return make(Op::Pad, {b.value.get()}, {a, r.size});
}

void sort_along(Boxes& boxes, int axis) {
  std::stable_sort(boxes.begin(), boxes.end(),
                   [&](const Box& a, const Box& b) { return a.begin(axis) < b.begin(axis); });
}

// Boxes, sorted along the axis, in runs that do not overlap each other there.
std::vector<std::span<Box>> runs_along(Boxes& boxes, int axis) {
  std::vector<std::span<Box>> runs;
  size_t first = 0;
  int64_t end = boxes[0].end(axis);
  for (size_t i = 1; i <= boxes.size(); ++i) {
    if (i < boxes.size() && boxes[i].begin(axis) < end) {
      end = std::max(end, boxes[i].end(axis));
      continue;
    }
    runs.emplace_back(boxes.data() + first, i - first);
    first = i;
    if (i < boxes.size()) end = boxes[i].end(axis);
  }
  return runs;
}

// Boxes, sorted along the axis, in as few lists as there are boxes over one point; within a list
// none overlap.
std::vector<Boxes> layers_along(const Boxes& boxes, int axis) {
  std::vector<Boxes> layers;
  for (const Box& b : boxes) {
    auto free = std::find_if(layers.begin(), layers.end(),
                             [&](const Boxes& l) { return l.back().end(axis) <= b.begin(axis); });
    if (free == layers.end()) free = layers.emplace(layers.end());
    free->push_back(b);
  }
  return layers;
}

Tensor put_together(Boxes boxes, const Region& r);

// The runs one after the other, with zeros between them.
Tensor joined(std::span<const std::span<Box>> runs, int axis, const Region& r) {
  std::vector<Tensor> parts;
  int64_t at = r.start[axis];
  const int64_t last = at + r.size[axis];
  const Node& like = *runs[0][0].value;
  auto fill_to = [&](int64_t end) {
    Dims gap = r.size;
    gap[axis] = end - at;
    if (gap[axis] > 0) parts.push_back(zeros_in(gap, like));
    at = end;
  };
  for (std::span<Box> run : runs) {
    fill_to(run[0].begin(axis));
    Region inner = r;
    inner.start[axis] = at;
    for (const Box& b : run) at = std::max(at, b.end(axis));
    inner.size[axis] = at - inner.start[axis];
    parts.push_back(put_together(Boxes(run.begin(), run.end()), inner));
  }
  fill_to(last);
  return parts.size() == 1 ? parts[0] : cat(parts, axis);
}

Tensor added(const std::vector<Tensor>& terms) {
  Tensor sum = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) sum = sum + terms[i];
  return sum;
}

Tensor put_together(Boxes boxes, const Region& r) {
  if (boxes.size() == 1) return padded(boxes[0], r);
  for (int axis = 0; axis < r.size.size(); ++axis) {
    sort_along(boxes, axis);
    if (auto runs = runs_along(boxes, axis); runs.size() > 1) return joined(runs, axis, r);
  }
  std::vector<Tensor> terms;
  std::vector<Boxes> best;
  for (int axis = 0; axis < r.size.size(); ++axis) {
    sort_along(boxes, axis);
    std::vector<Boxes> layers = layers_along(boxes, axis);
    if (best.empty() || layers.size() < best.size()) best = std::move(layers);
  }
  if (best.size() < boxes.size())
    for (Boxes& layer : best) terms.push_back(put_together(std::move(layer), r));
  else
    for (const Box& b : boxes) terms.push_back(padded(b, r));
  return added(terms);
}

}  // namespace

bool is_piece(const Tensor& grad) {
  if (!grad.defined()) return false;
  const NodeRef n = node_of(grad);
  return n->op == Op::Pad && n->attrs.as<PadAttrs>().value == 0 && n->n_inputs == 1 &&
         n->numel() > 0;
}

Tensor Pieces::assembled() const {
  Boxes boxes;
  Region all;
  Tensor others = rest;
  for (const Tensor& t : pieces_) {
    const NodeRef n = node_of(t), part = held_input(*n, 0);
    if (!part)
      others = others.defined() ? others + t : t;  // computed meanwhile: a value like any other
    if (!part || part->numel() == 0) continue;
    all = {Dims::filled(n->rank(), 0), n->shape};
    boxes.push_back({n->attrs.as<PadAttrs>().front, part});
  }
  if (boxes.empty()) return others.defined() ? others : pieces_[0];
  Tensor sum = put_together(std::move(boxes), all);
  return others.defined() ? others + sum : sum;
}

Tensor slice_along(const Tensor& x, int axis, int64_t start, int64_t size) {
  NodeRef n = node_of(x);
  SliceAttrs a{Dims::filled(n->rank(), 0), Dims::filled(n->rank(), 1)};
  Dims shape = n->shape;
  shape[axis] = size;
  a.start[axis] = start;
  return make(Op::Slice, {node_of(x)}, {a, shape});
}

}  // namespace ingot::autograd
