// Sorting: the positions in sorted order are the primitive, values are read there. Searching is a
// fixed number of halvings, each a gather at a computed index, which fuse into one kernel.
#include <cmath>

#include "ingot/sorting.h"
#include "ops/common.h"

namespace ingot {
namespace {

// Places of the first `count` elements along dim in sorted order.
Tensor places(const Tensor& x, int64_t count, int64_t dim, bool descending, const char* op,
              const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc);
  const SortAttrs a{wrap_dim(dim, n, op, loc), descending};
  NodeRef in = n->rank() ? NodeRef(n) : reshape_to(n, {1}, loc);
  Dims shape = in->shape;
  shape[a.axis] = count;
  NodeRef r = record(Op::Sort, {in.get()}, {a, shape}, loc);
  return tensor_of(n->rank() ? r : reshape_to(r.get(), count == 1 ? Dims{} : Dims{count}, loc));
}

int64_t size_along(const Tensor& x, int64_t dim, const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc);
  int d = wrap_dim(dim, n, op, loc);
  return n->rank() ? n->shape[d] : 1;
}

ValuesIndices read_at(const Tensor& x, int64_t dim, const Tensor& at, bool keepdim,
                      const SourceLoc& loc) {
  Tensor values = gather(x, dim, at, loc);
  if (keepdim || x.dim() == 0) return {values, at};
  return {values.squeeze(dim, loc), at.squeeze(dim, loc)};
}

}  // namespace

ValuesIndices sort(const Tensor& x, int64_t dim, bool descending, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  Tensor at = places(x, size_along(x, dim, "sort", loc), dim, descending, "sort", loc);
  return {gather(x, dim, at, loc), at};
}

Tensor argsort(const Tensor& x, int64_t dim, bool descending, bool, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return places(x, size_along(x, dim, "argsort", loc), dim, descending, "argsort", loc);
}

Tensor msort(const Tensor& x, SourceLoc loc) { return sort(x, 0, false, loc).values; }

ValuesIndices topk(const Tensor& x, int64_t k, int64_t dim, bool largest, bool, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  int64_t size = size_along(x, dim, "topk", loc);
  if (k < 0 || k > size)
    fail(ErrorKind::Value, "topk",
         "k is " + std::to_string(k) + ", but dim " + std::to_string(dim) + " of " + describe(x) +
             " has " + std::to_string(size) + " elements",
         loc, "use a k from 0 to the size of the dim");
  Tensor at = places(x, k, dim, largest, "topk", loc);
  if (x.dim() == 0 && k == 0) return {zeros({0}, {x.dtype(), x.device()}, loc), at};
  return {gather(x, dim, at, loc), at};
}

ValuesIndices kthvalue(const Tensor& x, int64_t k, int64_t dim, bool keepdim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  int64_t size = size_along(x, dim, "kthvalue", loc);
  if (k < 1 || k > size)
    fail(ErrorKind::Value, "kthvalue",
         "k is " + std::to_string(k) + ", but dim " + std::to_string(dim) + " of " + describe(x) +
             " has " + std::to_string(size) + " elements",
         loc, "k counts from 1 to the size of the dim");
  Tensor first = places(x, k, dim, false, "kthvalue", loc);
  Tensor at = x.dim() ? first.narrow(dim, k - 1, 1, loc) : first;
  return read_at(x, dim, at, keepdim, loc);
}

namespace {

ValuesIndices middle(const Tensor& x, int64_t dim, bool keepdim, bool skip_nan, const char* op,
                     const SourceLoc& where_) {
  SourceLoc loc = user_loc(where_);
  LocScope scope(loc);
  int64_t size = size_along(x, dim, op, loc);
  if (size == 0)
    fail(ErrorKind::Shape, op, "cannot reduce over zero elements: " + describe(x), loc,
         "check that the tensor is not empty, or reduce over another dim");
  if (x.dim() == 0) return {x.clone(), zeros({}, {int64, x.device()})};
  if (!is_float(x.dtype())) {
    Tensor first = places(x, (size - 1) / 2 + 1, dim, false, op, loc);
    return read_at(x, dim, first.narrow(dim, (size - 1) / 2, 1), keepdim, loc);
  }
  // Every NaN comes after the numbers.
  Tensor order = places(x, size, dim, false, op, loc);
  Tensor nans = sum(isnan(x), dim, true);
  Tensor at = skip_nan ? floor_divide(clamp_min(size - 1 - nans, 0), 2)
                       : where(nans > 0, size - nans, (size - 1) / 2);
  return read_at(x, dim, gather(order, dim, at), keepdim, loc);
}

}  // namespace

ValuesIndices median(const Tensor& x, int64_t dim, bool keepdim, SourceLoc loc) {
  return middle(x, dim, keepdim, false, "median", loc);
}
ValuesIndices nanmedian(const Tensor& x, int64_t dim, bool keepdim, SourceLoc loc) {
  return middle(x, dim, keepdim, true, "nanmedian", loc);
}
namespace {

// All elements that equal the median share its gradient, as in PyTorch: what is added is 0.
Tensor middle_of_all(const Tensor& x, bool skip_nan, const char* op, const SourceLoc& place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = node_of(x, op, loc);
  Tensor flat = x.reshape({n->numel()});
  if (!n->requires_grad || !grad_enabled()) return middle(flat, 0, false, skip_nan, op, loc).values;
  Tensor fixed = flat.detach(), value = middle(fixed, 0, false, skip_nan, op, loc).values;
  Tensor here = logical_or(fixed == value, logical_and(isnan(fixed), isnan(value)));
  Tensor share = where(isfinite(fixed), flat - fixed, 0.0);
  return value + where(here, share, 0.0).sum() / here.to(x.dtype()).sum();
}

}  // namespace

Tensor median(const Tensor& x, SourceLoc loc) { return middle_of_all(x, false, "median", loc); }
Tensor nanmedian(const Tensor& x, SourceLoc loc) {
  return middle_of_all(x, true, "nanmedian", loc);
}

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef s = node_of(sorted, "searchsorted", loc), v = node_of(values, "searchsorted", loc);
  bool ok = s->rank() == 1 || (s->rank() > 1 && s->rank() == v->rank());
  for (int i = 0; ok && s->rank() > 1 && i + 1 < s->rank(); ++i) ok = s->shape[i] == v->shape[i];
  if (!ok)
    fail(ErrorKind::Shape, "searchsorted",
         "the sorted " + describe(sorted) + " does not fit the values " + describe(values), loc,
         "it must be a vector, or agree with the values in all dims but the last");
  int64_t n = s->shape.back();
  Dims shape = v->shape;
  Options ints(int64, v->device);
  if (n == 0 || v->numel() == 0) return zeros(shape, ints);
  DType t = promoted(s, v);
  Tensor from = sorted.to(t), to = s->rank() == 1 ? values.to(t).reshape({-1}) : values.to(t);
  Tensor count = zeros(to.shape(), ints);
  int64_t dim = s->rank() == 1 ? 0 : -1, step = 1;
  while (step <= n / 2) step *= 2;
  for (; step > 0; step /= 2) {
    Tensor next = count + step;
    Tensor seen = gather(from, dim, clamp_max(next, n) - 1);
    Tensor passes = logical_not(right ? seen > to : seen >= to);
    count = where(logical_and(next <= n, passes), next, count);
  }
  return count.reshape(shape);
}

Tensor searchsorted(const Tensor& sorted, const Scalar& value, bool right, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  NodeRef s = node_of(sorted, "searchsorted", loc);
  if (s->rank() != 1)
    fail(ErrorKind::Shape, "searchsorted",
         "a number is looked up in a vector, not in " + describe(sorted), loc);
  return searchsorted(sorted, scalar(value, {promoted(s, value), s->device}, loc), right, loc);
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  if (node_of(boundaries, "bucketize", loc)->rank() != 1)
    fail(ErrorKind::Shape, "bucketize",
         "the boundaries must be a vector, not " + describe(boundaries), loc);
  return searchsorted(boundaries, x, right, loc);
}

}  // namespace ingot
