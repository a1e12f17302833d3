// x[...] with tensors among the items. The other items are applied first, as a view. The dims that
// the tensors index are moved to the front and merged into one; a mask becomes the positions where
// it is true. Then rows are gathered or scattered.
#include <algorithm>
#include <memory>

#include "ingot/indexing.h"
#include "ops/indexing.h"

namespace ingot {

struct IndexPlace {
  Tensor view;     // x under the items without tensors; writing to it writes to x
  Dims merged;     // the view's shape with the dims of each mask merged
  Dims order;      // merged dims, those with tensors first
  int picked = 0;  // how many are indexed by tensors
  Tensor rows;     // which rows of the view, permuted by `order` with the indexed dims merged
  Dims broadcast;  // shape of the index tensors together
  int at = 0;      // the dim of the result at which that shape begins

  Dims rest() const {
    Dims d;
    for (int i = picked; i < order.size(); ++i) d.push_back(merged[static_cast<int>(order[i])]);
    return d;
  }
  int64_t count() const { return broadcast.numel(); }
  /// [broadcast..., rest...]
  Dims grown() const {
    Dims d = broadcast;
    for (int64_t s : rest()) d.push_back(s);
    return d;
  }
  /// Result dim i is dim result_order()[i] of grown().
  Dims result_order() const {
    Dims d;
    int b = broadcast.size(), all = b + order.size() - picked;
    for (int i = 0; i < at; ++i) d.push_back(b + i);
    for (int i = 0; i < b; ++i) d.push_back(i);
    for (int i = b + at; i < all; ++i) d.push_back(i);
    return d;
  }
  Dims result_shape() const {
    Dims g = grown(), d;
    for (int64_t i : result_order()) d.push_back(g[static_cast<int>(i)]);
    return d;
  }
  /// The view as rows: [picked dims as one, rest as one].
  Tensor as_rows() const {
    Tensor permuted = view.reshape(merged).permute(order);
    int64_t all = 1, width = rest().numel();
    for (int i = 0; i < picked; ++i) all *= merged[static_cast<int>(order[i])];
    return permuted.reshape({all, width});
  }
  Tensor read() const {
    CheckScope checked(Check::Index);
    return index_select(as_rows(), 0, rows).reshape(grown()).permute(result_order());
  }
  /// The view with these values there, which have the result's shape.
  Tensor written(const Tensor& values, bool add) const {
    CheckScope checked(Check::IndexPut);
    Dims back = result_order(), inverse = back, permuted;
    for (int i = 0; i < back.size(); ++i) inverse[static_cast<int>(back[i])] = i;
    Tensor lines = values.permute(inverse).reshape({count(), rest().numel()});
    Tensor to = as_rows(), index = rows.reshape({-1, 1}).expand(lines.shape());
    Tensor done = add ? scatter_add(to, 0, index, lines) : scatter(to, 0, index, lines);
    for (int64_t d : order) permuted.push_back(merged[static_cast<int>(d)]);
    Dims home = order;
    for (int i = 0; i < order.size(); ++i) home[static_cast<int>(order[i])] = i;
    return done.reshape(permuted).permute(home).reshape(view.shape());
  }
};

namespace {

/// A tensor of the index and the dim of the view it begins at.
struct Item {
  const Tensor* tensor;
  int dim, dims;  // dims: of a mask
};

[[noreturn]] void fail_count(const Tensor& x, const SourceLoc& loc) {
  fail(ErrorKind::Index, "index", "more indices than " + describe(x) + " has dims", loc,
       "a mask takes as many dims as it has; give at most one index for each other dim");
}

// Applies the items without tensors and finds the dims of the view that each tensor indexes.
Tensor without_tensors(const Tensor& x, const Indices& index, std::vector<Item>& items,
                       const SourceLoc& loc) {
  std::vector<IndexItem> plain;
  NodeRef n = node_of(x, "index", loc);
  int used = 0;
  if (index.size() > static_cast<size_t>(Indices::kMax)) fail_count(x, loc);
  for (size_t i = 0; i < index.size(); ++i) {
    if (index[i].kind == IndexItem::Kind::Places) {
      NodeRef t = node_of(*index[i].places, "index", loc);
      used += t->dtype == DType::Bool ? t->rank() : 1;
    } else {
      used += index[i].kind == IndexItem::Kind::At || index[i].kind == IndexItem::Kind::Range;
    }
  }
  if (used > n->rank()) fail_count(x, loc);
  int dim = 0;
  for (size_t i = 0; i < index.size(); ++i) {
    const IndexItem& item = index[i];
    if (item.kind == IndexItem::Kind::Places) {
      NodeRef t = node_of(*item.places, "index", loc);
      int dims = t->dtype == DType::Bool ? t->rank() : 1;
      items.push_back({item.places, dim, dims});
      if (dims == 0)
        plain.emplace_back(NewAxis);  // a 0-d mask: one element or none along a new dim
      for (int d = 0; d < dims; ++d) plain.emplace_back(Slice{});
      dim += std::max(dims, 1);
      continue;
    }
    plain.push_back(item);
    if (item.kind == IndexItem::Kind::Dots)
      dim += n->rank() - used;
    else if (item.kind != IndexItem::Kind::At)
      ++dim;
  }
  if (plain.size() > static_cast<size_t>(Indices::kMax)) fail_count(x, loc);
  return basic_index(x, Indices(plain, loc), loc);
}

// The index of one tensor, and the size of the dims of the view that it indexes, merged.
Tensor places_of(const Item& item, const Tensor& view, const SourceLoc& loc, int64_t& size) {
  const Tensor& t = *item.tensor;
  if (t.device() != view.device() && t.dim() != 0 && t.device().type() != DeviceType::CPU)
    fail(ErrorKind::Device, "index",
         "the index " + describe(t) + " is on another device than " + describe(view), loc,
         "move it with .to(\"" + view.device().name() + "\")");
  size = 1;
  for (int d = 0; d < std::max(item.dims, 1); ++d) size *= view.size(item.dim + d);
  if (t.dtype() == DType::Int64 || t.dtype() == DType::Int32) return t.to(view.device());
  if (t.dtype() != DType::Bool)
    fail(ErrorKind::DType, "index", "an index must be int64, int32 or bool, not " + describe(t),
         loc, "convert with .to(int64)");
  for (int d = 0; d < item.dims; ++d)
    if (t.size(d) != view.size(item.dim + d))
      fail(ErrorKind::Index, "index",
           "the mask " + describe(t) + " differs from " + describe(view) + " in the dims from " +
               std::to_string(item.dim) + " on",
           loc, "a mask has the sizes of the dims it stands for");
  check_not_captured(t, "index", loc);
  return true_places(t).to(view.device());
}

// One number for each position; every part is looked up, so that one outside its dim is reported as
// it was written.
Tensor joined(const std::vector<Tensor>& places, const std::vector<int64_t>& sizes,
              const SourceLoc& loc) {
  CheckScope checked(Check::Index);
  Tensor row;
  for (size_t i = 0; i < places.size(); ++i) {
    Tensor at = places[i].reshape({-1});
    at = tensor_of(from_end(node_of(at, "index", loc), sizes[i], loc));
    if (places.size() == 1) return at;
    if (at.numel()) at = gather(arange(sizes[i], {int64, at.device()}), 0, at);
    row = i ? row * sizes[i] + at.to(int64) : at.to(int64);
  }
  return row;
}

std::shared_ptr<const IndexPlace> place_of(const Tensor& x, const Indices& index,
                                           const SourceLoc& loc) {
  auto p = std::make_shared<IndexPlace>();
  std::vector<Item> items;
  p->view = without_tensors(x, index, items, loc);
  std::vector<Tensor> places;
  std::vector<int64_t> sizes;
  std::vector<int> dims;  // of merged
  int from = 0, first = 0;
  bool neighbours = true;
  for (const Item& item : items) {
    for (; from < item.dim; ++from) p->merged.push_back(p->view.size(from));
    int64_t size;
    places.push_back(places_of(item, p->view, loc, size));
    neighbours = neighbours && (dims.empty() || dims.back() + 1 == p->merged.size());
    dims.push_back(p->merged.size());
    sizes.push_back(size);
    p->merged.push_back(size);
    from = item.dim + std::max(item.dims, 1);
  }
  for (; from < p->view.dim(); ++from) p->merged.push_back(p->view.size(from));
  for (int d : dims) p->order.push_back(d);
  for (int d = 0; d < p->merged.size(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) p->order.push_back(d);
  p->picked = static_cast<int>(dims.size());
  first = dims[0];
  p->at = neighbours ? first : 0;
  p->broadcast = places[0].shape();
  for (const Tensor& t : places)
    if (!broadcast_shapes(p->broadcast, t.shape(), p->broadcast))
      fail(ErrorKind::Shape, "index",
           "the indices do not broadcast: one has shape " + to_string(t.shape()) +
               ", those before it " + to_string(p->broadcast),
           loc, "sizes must be equal or 1, counted from the last dim");
  if (p->broadcast.size() + p->order.size() - p->picked > kMaxDims)
    fail(ErrorKind::Shape, "index", "the result would have too many dims", loc);
  for (Tensor& t : places) t = t.expand(p->broadcast);
  int64_t rows = 1;
  for (int64_t s : sizes) rows *= s;
  if (rows == 0 && p->count() != 0)
    fail(ErrorKind::Index, "index", "the indexed dims of " + describe(p->view) + " are empty", loc);
  p->rows = joined(places, sizes, loc);
  return p;
}

// The value in the result's shape and x's type.
Tensor fitted(const IndexPlace& p, const Operand& v, const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(p.view, op, loc);
  NodeRef value = v.tensor ? NodeRef(node_of(*v.tensor, op, loc))
                           : fitting(v.scalar, n->dtype, n->device, op, loc);
  Dims want = p.result_shape(), both;
  // Leading dims of size 1 do not matter, as in PyTorch.
  while (value->rank() > want.size() && value->shape[0] == 1) {
    Dims less = value->shape;
    less.erase(0);
    value = reshape_to(value.get(), less, loc);
  }
  if (!broadcast_shapes(want, value->shape, both) || !(both == want))
    fail(ErrorKind::Shape, op,
         describe(*value) + " does not fit into the " + to_string(want) + " elements of the index",
         loc, "the value must broadcast to that shape");
  value = move_to(value.get(), n->device, loc);
  value = cast_to(value.get(), n->dtype, loc);
  return tensor_of(expand_to(value.get(), want, loc));
}

void write(const IndexPlace& p, const Operand& v, bool add, const char* op, const SourceLoc& loc) {
  LocScope scope(loc);
  Tensor values = fitted(p, v, op, loc);
  if (values.numel() == 0) return;
  write_through(p.view, node_of(p.written(values, add), op, loc), op, loc);
}

using Binary = Tensor (*)(const Tensor&, const Operand&, SourceLoc);

void update(const Tensor& now, const std::shared_ptr<const IndexPlace>& p, Binary f,
            const Operand& v, const char* op) {
  SourceLoc loc = user_loc(v.loc);
  Tensor result = f(now, v, loc);
  if (is_float(result.dtype()) && !is_float(now.dtype()))
    fail(ErrorKind::DType, op,
         "the result is " + std::string(name_of(result.dtype())) + " and does not go into " +
             describe(p->view),
         loc, "convert the indexed tensor first");
  write(*p, Operand(result, loc), false, op, loc);
}

// x[mask] = number needs no positions.
bool is_fill(const Indices& index, const Operand& v) {
  if (index.size() != 1 || index[0].kind != IndexItem::Kind::Places || !index[0].places->defined())
    return false;
  return index[0].places->dtype() == DType::Bool && index[0].places->dim() > 0 &&
         (!v.tensor || (v.tensor->defined() && v.tensor->dim() == 0));
}

Tensor filled(const Tensor& x, const Tensor& mask, const Operand& v, bool accumulate,
              const SourceLoc& loc) {
  LocScope scope(loc);
  NodeRef n = node_of(x, "index_put", loc), m = node_of(mask, "index_put", loc);
  bool ok = m->rank() <= n->rank();
  for (int d = 0; ok && d < m->rank(); ++d) ok = m->shape[d] == n->shape[d];
  if (!ok)
    fail(ErrorKind::Index, "index_put",
         "the mask " + describe(mask) + " differs from " + describe(x), loc,
         "a mask has the sizes of the dims it stands for");
  Dims wide = m->shape;
  wide.resize(n->rank(), 1);
  NodeRef number = v.tensor ? NodeRef(node_of(*v.tensor, "index_put", loc))
                            : fitting(v.scalar, n->dtype, n->device, "index_put", loc);
  number = move_to(number.get(), n->device, loc);
  Tensor value = tensor_of(cast_to(number.get(), n->dtype, loc));
  return where(mask.reshape(wide), accumulate ? x + value : value.expand(n->shape), x);
}

}  // namespace

IndexedTensor picked(const Tensor& x, const Indices& index, const SourceLoc& loc) {
  LocScope scope(loc);
  auto p = place_of(x, index, loc);
  return IndexedTensor(p->read(), p);
}

void IndexedTensor::operator=(const Operand& v) && {
  if (place_) return write(*place_, v, false, "assignment", user_loc(v.loc));
  static_cast<Tensor&&>(*this) = v;
}
void IndexedTensor::operator+=(const Operand& v) && {
  place_ ? update(*this, place_, ingot::add, v, "add_") : static_cast<void>(add_(v, v.loc));
}
void IndexedTensor::operator-=(const Operand& v) && {
  place_ ? update(*this, place_, ingot::sub, v, "sub_") : static_cast<void>(sub_(v, v.loc));
}
void IndexedTensor::operator*=(const Operand& v) && {
  place_ ? update(*this, place_, ingot::mul, v, "mul_") : static_cast<void>(mul_(v, v.loc));
}
void IndexedTensor::operator/=(const Operand& v) && {
  place_ ? update(*this, place_, ingot::div, v, "div_") : static_cast<void>(div_(v, v.loc));
}

Tensor& Tensor::index_put_(const Indices& indices, const Operand& values, bool accumulate,
                           SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(*this, "index_put_", loc);
  (void)n;
  if (is_fill(indices, values)) {
    Tensor done = filled(*this, *indices[0].places, values, accumulate, loc);
    write_through(*this, node_of(done, "index_put_", loc), "index_put_", loc);
    return *this;
  }
  LocScope scope(loc);
  write(*place_of(*this, indices, loc), values, accumulate, "index_put_", loc);
  return *this;
}

Tensor index_put(const Tensor& x, const Indices& indices, const Operand& values, bool accumulate,
                 SourceLoc where) {
  SourceLoc loc = user_loc(where);
  node_of(x, "index_put", loc);
  if (is_fill(indices, values)) return filled(x, *indices[0].places, values, accumulate, loc);
  Tensor copy = x.clone(loc);
  copy.index_put_(indices, values, accumulate, loc);
  return copy;
}

}  // namespace ingot
