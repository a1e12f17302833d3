// x[...]: the items of an index become one Slice over all dims and one Reshape that drops and adds
// dims. Indices with tensors continue in advanced_index.cpp.
#include "ops/indexing.h"

namespace ingot {
namespace {

// Python's rule for start:stop:step on a dim of this size.
struct Range {
  int64_t start, count;
};
Range resolve(const IndexItem& item, int64_t size) {
  int64_t step = item.step;
  auto clip = [&](int64_t v, int64_t lo, int64_t hi) {
    return std::min(std::max(v < 0 ? v + size : v, lo), hi);
  };
  int64_t start, stop;
  if (step > 0) {
    start = item.given & 1 ? clip(item.start, 0, size) : 0;
    stop = item.given & 2 ? clip(item.stop, 0, size) : size;
    return {start, std::max<int64_t>(0, (stop - start + step - 1) / step)};
  }
  start = item.given & 1 ? clip(item.start, -1, size - 1) : size - 1;
  stop = item.given & 2 ? clip(item.stop, -1, size - 1) : -1;
  return {start, std::max<int64_t>(0, (start - stop - step - 1) / -step)};
}

int count_dims(const Indices& index, const Tensor& x, const SourceLoc& loc) {
  int used = 0, dots = 0;
  for (size_t i = 0; i < std::min<size_t>(index.size(), Indices::kMax); ++i) {
    used += index[i].kind == IndexItem::Kind::At || index[i].kind == IndexItem::Kind::Range;
    dots += index[i].kind == IndexItem::Kind::Dots;
  }
  int rank = x.cell()->current()->rank();
  if (used > rank || index.size() > static_cast<size_t>(Indices::kMax))
    fail(ErrorKind::Index, "index",
         std::to_string(used) + (used == 1 ? " index for " : " indices for ") + describe(x) +
             ", which has " + std::to_string(rank) + (rank == 1 ? " dim" : " dims"),
         loc,
         rank == 0 ? "a 0-d tensor is read with x.item()" : "give at most one index for each dim");
  if (dots > 1)
    fail(ErrorKind::Index, "index", "more than one Ellipsis in the index of " + describe(x), loc,
         "use it once: it stands for all remaining dims");
  return used;
}

}  // namespace

Tensor basic_index(const Tensor& x, const Indices& index, const SourceLoc& loc) {
  NodeRef n = node_of(x, "index", loc);
  int used = count_dims(index, x, loc);
  SliceAttrs a;
  Dims region;  // its size
  Dims shape;   // after dropping and adding dims
  int dim = 0;
  bool cuts = false;
  auto keep = [&](int64_t start, int64_t step, int64_t count) {
    cuts = cuts || start != 0 || step != 1 || count != n->shape[dim];
    a.start.push_back(count ? start : 0);
    a.step.push_back(step);
    region.push_back(count);
    ++dim;
  };
  auto whole = [&](int until) {
    while (dim < until) {
      shape.push_back(n->shape[dim]);
      keep(0, 1, n->shape[dim]);
    }
  };
  for (size_t i = 0; i < index.size(); ++i) {
    const IndexItem& item = index[i];
    if (item.kind == IndexItem::Kind::New) {
      shape.push_back(1);
    } else if (item.kind == IndexItem::Kind::Dots) {
      whole(dim + n->rank() - used);
    } else if (item.kind == IndexItem::Kind::At) {
      int64_t size = n->shape[dim], at = item.start < 0 ? item.start + size : item.start;
      if (at < 0 || at >= size)
        fail(ErrorKind::Index, "index",
             "index " + std::to_string(item.start) + " is outside dim " + std::to_string(dim) +
                 " of " + describe(x) + ", which has " + std::to_string(size) +
                 (size == 1 ? " element" : " elements"),
             loc,
             size ? "use an index from " + std::to_string(-size) + " to " + std::to_string(size - 1)
                  : "");
      keep(at, 1, 1);
    } else {
      if (item.step == 0)
        fail(ErrorKind::Index, "index", "the step of a Slice is 0 in the index of " + describe(x),
             loc, "use a step of 1 or more, or a negative one to go backwards");
      Range r = resolve(item, n->shape[dim]);
      shape.push_back(r.count);
      keep(r.start, item.step, r.count);
    }
  }
  whole(n->rank());
  NodeRef out = reshape_to(cuts ? record(Op::Slice, {n}, {a, region}, loc) : n, shape, loc);
  return out == n ? x : view_of(x, std::move(n), std::move(out));
}

IndexedTensor Tensor::operator[](const Indices& index) const {
  SourceLoc loc = user_loc(index.loc());
  for (size_t i = 0; i < std::min<size_t>(index.size(), Indices::kMax); ++i)
    if (index[i].kind == IndexItem::Kind::Places) return picked(*this, index, loc);
  return IndexedTensor(basic_index(*this, index, loc));
}

}  // namespace ingot
