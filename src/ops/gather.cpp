// Reading and adding by index. Gather wants data and index to agree in all dims but one; the
// functions here bring them to that form with views.
#include "ops/common.h"

namespace ingot {
namespace {

void check_index(const Node* index, const char* op, const SourceLoc& loc) {
  if (index->dtype != DType::Int64 && index->dtype != DType::Int32)
    fail(ErrorKind::DType, op, "the index must be int64 or int32, not " + describe(*index), loc,
         "convert with .to(int64)");
}

}  // namespace

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  CheckScope checked(Check::Gather);
  NodeRef n = node_of(x, "gather", loc), ix = node_of(index, "gather", loc);
  check_index(ix, "gather", loc);
  int d = wrap_dim(dim, n, "gather", loc);
  bool ok = n->rank() == ix->rank();
  for (int i = 0; ok && i < n->rank(); ++i) ok = i == d || ix->shape[i] <= n->shape[i];
  if (!ok)
    fail(ErrorKind::Shape, "gather",
         "index " + describe(index) + " does not fit " + describe(x) + " along dim " +
             std::to_string(d),
         loc, "the index needs as many dims as the data and sizes no larger outside that dim");
  if (n->rank() == 0)
    return reshape(gather(x.reshape({1}, loc), 0, index.reshape({1}, loc), loc), {}, loc);
  // A smaller index reads a corner of the data.
  Dims size = ix->shape;
  size[d] = n->shape[d];
  NodeRef src = corner(n, size, loc);
  return tensor_of(record(Op::Gather, {src.get(), ix}, {IndexAttrs{d, current_check()}}, loc));
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  CheckScope checked(Check::IndexSelect);
  NodeRef n = node_of(x, "index_select", loc), ix = node_of(index, "index_select", loc);
  check_index(ix, "index_select", loc);
  int d = wrap_dim(dim, n, "index_select", loc);
  if (ix->rank() > 1)
    fail(ErrorKind::Shape, "index_select", "the index must be a vector, not " + describe(index),
         loc, "use embedding() or index.flatten()");
  if (n->rank() == 0)
    fail(ErrorKind::Dim, "index_select", "a 0-d tensor has no dims: " + describe(x), loc);
  Dims line = Dims::filled(n->rank(), 1), full = n->shape;
  line[d] = full[d] = ix->numel();
  NodeRef i = reshape_to(ix, line, loc);
  i = expand_to(i.get(), full, loc);
  return tensor_of(record(Op::Gather, {n, i.get()}, {IndexAttrs{d, current_check()}}, loc));
}

Tensor embedding(const Tensor& weight, const Tensor& index, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  CheckScope checked(Check::Embedding);
  NodeRef w = node_of(weight, "embedding", loc), ix = node_of(index, "embedding", loc);
  check_index(ix, "embedding", loc);
  if (w->rank() != 2)
    fail(ErrorKind::Shape, "embedding",
         "the weight must be a matrix [rows, size], not " + describe(weight), loc);
  int64_t count = ix->numel(), width = w->shape[1];
  if (ix->op == Op::Iota && count <= w->shape[0] &&
      ix->device == w->device)  // positions 0, 1, 2, ...: the first rows
    return tensor_of(corner(w, {count, width}, loc));
  NodeRef i = reshape_to(ix, {count, 1}, loc);
  i = expand_to(i.get(), {count, width}, loc);
  NodeRef rows = record(Op::Gather, {w, i.get()}, {IndexAttrs{0, current_check()}}, loc);
  Dims out = ix->shape;
  if (out.size() == kMaxDims)
    fail(ErrorKind::Shape, "embedding", describe(index) + " has too many dims", loc);
  out.push_back(width);
  return tensor_of(reshape_to(rows.get(), out, loc));
}

Tensor scatter_add_zeros(const Dims& shape, int64_t dim, const Tensor& index, const Tensor& value,
                         SourceLoc where) {
  SourceLoc loc = user_loc(where);
  CheckScope checked(Check::ScatterAdd);
  NodeRef ix = node_of(index, "scatter_add", loc), v = node_of(value, "scatter_add", loc);
  check_index(ix, "scatter_add", loc);
  const IndexAttrs a{wrap_dim(dim, v, "scatter_add", loc), current_check()};
  return tensor_of(record(Op::ScatterAdd, {ix, v}, {a, shape}, loc));
}

Tensor one_hot(const Tensor& index, int64_t num_classes, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef ix = node_of(index, "one_hot", loc);
  check_index(ix, "one_hot", loc);
  if (num_classes < 1)
    fail(ErrorKind::Value, "one_hot",
         "num_classes must be at least 1, not " + std::to_string(num_classes), loc);
  Dims s = ix->shape;
  // Looked up in 0, 1, 2, ..., so that a number outside the classes is refused.
  NodeRef all = iota_along(num_classes, 0, 1, ix->device, loc),
          flat = reshape_to(ix, {ix->numel()}, loc);
  NodeRef known = record(Op::Gather, {all.get(), flat.get()}, {IndexAttrs{0, Check::OneHot}}, loc);
  if (s.size() == kMaxDims)
    fail(ErrorKind::Shape, "one_hot", describe(index) + " has too many dims", loc);
  s.push_back(1);
  NodeRef i = reshape_to(known.get(), s, loc);
  NodeRef classes = iota_along(num_classes, s.size() - 1, s.size(), ix->device, loc);
  NodeRef hit = record2(Op::Eq, i.get(), classes.get(), loc);
  return tensor_of(cast_to(hit.get(), DType::Int64, loc));
}

}  // namespace ingot
