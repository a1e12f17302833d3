// Writing by index. The primitives want data, index and value to agree in all dims but one; a
// smaller index works on a corner of the data, which is then put back.
#include <limits>

#include "ingot/indexing.h"
#include "ops/common.h"

namespace ingot {
namespace {

void check_index(const Node* index, const char* op, const SourceLoc& loc) {
  if (index->dtype != DType::Int64 && index->dtype != DType::Int32)
    fail(ErrorKind::DType, op, "the index must be int64 or int32, not " + describe(*index), loc,
         "convert with .to(int64)");
}

// x with its corner replaced.
NodeRef with_corner(Node* x, NodeRef value, const SourceLoc& loc) {
  if (value->shape == x->shape) return value;
  const SliceAttrs first{Dims::filled(x->rank(), 0), Dims::filled(x->rank(), 1)};
  return record(Op::SliceAssign, {x, value.get()}, {first}, loc);
}

/// The operands of a scatter, brought to the primitive's form.
class Scattering {
 public:
  // `value` may be broadcast to the index (a number).
  Scattering(Node* x, int64_t dim, Node* index, Node* value, const char* op, const SourceLoc& loc)
      : x_(x), loc_(loc) {
    check_index(index, op, loc);
    if (value->dtype != x->dtype)
      fail(ErrorKind::DType, op,
           "the values " + describe(*value) + " differ in type from " + describe(*x), loc,
           "convert them: .to(" + std::string(name_of(x->dtype)) + ")");
    axis_ = wrap_dim(dim, x, op, loc);
    bool number = value->rank() == 0 && index->rank() != 0;
    bool ok = index->rank() == x->rank() && (number || value->rank() == x->rank());
    for (int i = 0; ok && i < x->rank(); ++i)
      ok = (i == axis_ || index->shape[i] <= x->shape[i]) &&
           (number || index->shape[i] <= value->shape[i]);
    if (!ok && index->numel() != 0)
      fail(ErrorKind::Shape, op,
           "index " + describe(*index) + " does not fit " + describe(*x) + " and values " +
               describe(*value) + " along dim " + std::to_string(axis_),
           loc,
           "the index needs as many dims as both, sizes no larger than the values', nor (but for "
           "that dim) "
           "than the data's");
    nothing_ = index->numel() == 0 || x->numel() == 0;
    if (nothing_) return;
    if (x->rank() == 0) {
      base_ = reshape_to(x, {1}, loc);
      index_ = reshape_to(index, {1}, loc);
      value_ = reshape_to(value, {1}, loc);
      return;
    }
    Dims cut = index->shape;
    cut[axis_] = x->shape[axis_];
    base_ = corner(x, cut, loc);
    index_ = index;
    value_ = number ? expand_to(value, index->shape, loc) : corner(value, index->shape, loc);
  }

  bool nothing() const { return nothing_; }
  Node* base() const { return base_.get(); }
  Node* value() const { return value_.get(); }
  NodeRef combined(ScatterMode mode, Node* base) const {
    return combined(mode, base, value_.get());
  }
  NodeRef combined(ScatterMode mode, Node* base, Node* value) const {
    const ScatterAttrs a{axis_, mode, current_check()};
    return record(Op::Scatter, {base, index_.get(), value}, {a}, loc_);
  }
  NodeRef added(Node* value) const {
    const IndexAttrs a{axis_, current_check()};
    return record(Op::ScatterAdd, {index_.get(), value}, {a, base_->shape}, loc_);
  }
  /// How many values go to each position, in x's type (float32 for bool and 16-bit floats).
  NodeRef counts(DType t) const {
    NodeRef one = constant(1, t, x_->device, loc_);
    NodeRef all = expand_to(one.get(), index_->shape, loc_);
    return added(all.get());
  }
  Tensor put_back(NodeRef value) const {
    if (x_->rank() == 0) return tensor_of(reshape_to(value.get(), {}, loc_));
    return tensor_of(with_corner(x_, std::move(value), loc_));
  }

 private:
  Node* x_;
  SourceLoc loc_;
  int axis_ = 0;
  bool nothing_ = false;
  NodeRef base_, index_, value_;
};

NodeRef operand_node(const Operand& v, Node* like, const char* op, const SourceLoc& loc) {
  if (v.tensor) return node_of(*v.tensor, op, loc);
  return fitting(v.scalar, like->dtype, like->device, op, loc);
}

NodeRef sums(const Scattering& s, Node* base, const SourceLoc& loc) {
  NodeRef total = s.added(s.value());
  return record2(Op::Add, base, total.get(), loc);
}

// x where no value is written; the values' history stays, with gradients of 0 (an expert without
// tokens).
Tensor unwritten(const Tensor& x, Node* value, const SourceLoc& loc) {
  if (!value->requires_grad || value->rank() == 0 || !is_float(value->dtype)) return x.clone(loc);
  LocScope scope(loc);
  return x + tensor_of(NodeRef(value)).narrow(0, 0, 0).sum().to(x.dtype());
}

Scalar neutral_of(std::string_view reduce, DType t) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (reduce != "amax" && reduce != "amin") return reduce == "prod" ? 1 : 0;
  bool low = reduce == "amax";
  if (is_float(t)) return low ? -inf : inf;
  if (t == DType::Bool || t == DType::UInt8) return low ? 0 : t == DType::Bool ? 1 : 255;
  int bits = static_cast<int>(size_of(t)) * 8;
  int64_t lowest = std::numeric_limits<int64_t>::min() >> (64 - bits);
  return low ? lowest : -(lowest + 1);
}

// The neutral element of the reduction where something comes, x elsewhere.
NodeRef neutral_where_hit(const Scattering& s, Node* hits, std::string_view reduce,
                          const SourceLoc& loc) {
  Node* base = s.base();
  NodeRef neutral = constant(neutral_of(reduce, base->dtype), base->dtype, base->device, loc);
  NodeRef none = constant(0, hits->dtype, base->device, loc);
  NodeRef hit = record2(Op::Gt, hits, none.get(), loc);
  return record(Op::Where, {hit.get(), neutral.get(), base}, kNoAttrs, loc);
}

Tensor index_line(const Tensor& index, const Dims& shape, int d, const char* op,
                  const SourceLoc& loc) {
  NodeRef ix = node_of(index, op, loc);
  check_index(ix, op, loc);
  if (ix->rank() > 1)
    fail(ErrorKind::Shape, op, "the index must be a vector, not " + describe(index), loc,
         "use index.flatten()");
  Dims line = Dims::filled(shape.size(), 1);
  line[d] = ix->numel();
  NodeRef i = reshape_to(ix, line, loc);
  return tensor_of(expand_to(i.get(), shape, loc));
}

// source must have x's sizes but for dim, where it has the index's.
void check_slices(const Node* x, int d, int64_t count, const Node* source, const char* op,
                  const SourceLoc& loc) {
  Dims want = x->rank() ? x->shape : Dims{1};
  want[d] = count;
  if (source->shape == want || (source->rank() == 0 && count == 1 && x->rank() <= 1)) return;
  fail(ErrorKind::Shape, op,
       "the source is " + describe(*source) + ", but " + std::to_string(count) + " slices of " +
           describe(*x) + " have shape " + to_string(want),
       loc, "give one slice for each index");
}

}  // namespace

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Operand& src,
               SourceLoc where) {
  SourceLoc loc = user_loc(where);
  CheckScope checked(Check::Scatter);
  NodeRef n = node_of(x, "scatter", loc), ix = node_of(index, "scatter", loc);
  NodeRef v = operand_node(src, n, "scatter", loc);
  Scattering s(n, dim, ix, v.get(), "scatter", loc);
  if (s.nothing()) return unwritten(x, v.get(), loc);
  return s.put_back(s.combined(ScatterMode::Set, s.base()));
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                   SourceLoc where) {
  CheckScope checked(Check::ScatterAdd);
  return scatter_reduce(x, dim, index, src, "sum", true, where);
}

Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce, bool include_self, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  CheckScope checked(Check::ScatterReduce);
  const char* op = "scatter_reduce";
  NodeRef n = node_of(x, op, loc), ix = node_of(index, op, loc), v = node_of(src, op, loc);
  bool sum = reduce == "sum", mean = reduce == "mean", prod = reduce == "prod",
       low = reduce == "amin";
  if (!sum && !mean && !prod && !low && reduce != "amax")
    fail(ErrorKind::Value, op, "there is no reduction \"" + std::string(reduce) + "\"", loc,
         "use sum, prod, mean, amax or amin");
  if (n->dtype == DType::Bool && (sum || mean || prod))
    fail(ErrorKind::DType, op, "cannot add or multiply bool: " + describe(x), loc,
         "convert with .to(int64)");
  Scattering s(n, dim, ix, v, op, loc);
  if (s.nothing()) return unwritten(x, v, loc);
  DType counted = is_float(n->dtype) && !is_half(n->dtype) ? n->dtype
                  : is_half(n->dtype)                      ? DType::Float32
                                                           : DType::Int64;
  NodeRef base = s.base(), hits;
  if (!include_self || mean) hits = s.counts(counted);
  if (!include_self) base = neutral_where_hit(s, hits.get(), reduce, loc);
  if (sum) return s.put_back(sums(s, base.get(), loc));
  if (!mean)
    return s.put_back(s.combined(prod  ? ScatterMode::Prod
                                 : low ? ScatterMode::Min
                                       : ScatterMode::Max,
                                 base.get()));
  LocScope scope(loc);
  Tensor total = tensor_of(sums(s, base.get(), loc)).to(counted), count = tensor_of(hits);
  count = include_self ? count + 1 : clamp_min(count, 1);
  Tensor result = is_float(counted) ? total / count : floor_divide(total, count);
  return s.put_back(cast_to(node_of(result, op, loc), n->dtype, loc));
}

Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  CheckScope checked(Check::IndexAdd);
  const char* op = "index_add";
  NodeRef n = node_of(x, op, loc), v = node_of(source, op, loc);
  int d = wrap_dim(dim, n, op, loc);
  check_slices(n, d, node_of(index, op, loc)->numel(), v, op, loc);
  Dims shape = n->rank() ? n->shape : Dims{1}, slices = shape;
  slices[d] = index.numel();
  Tensor i = index_line(index, slices, d, op, loc);
  Tensor add = scatter_add(x.reshape(shape), d, i, source.reshape(slices) * alpha);
  return add.reshape(n->shape);
}

Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                  SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  CheckScope checked(Check::IndexCopy);
  const char* op = "index_copy";
  NodeRef n = node_of(x, op, loc), v = node_of(source, op, loc);
  int d = wrap_dim(dim, n, op, loc);
  check_slices(n, d, node_of(index, op, loc)->numel(), v, op, loc);
  Dims shape = n->rank() ? n->shape : Dims{1}, slices = shape;
  slices[d] = index.numel();
  return scatter(x.reshape(shape), d, index_line(index, slices, d, op, loc), source.reshape(slices))
      .reshape(n->shape);
}

Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Operand& value,
                  SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  CheckScope checked(Check::IndexFill);
  const char* op = "index_fill";
  NodeRef n = node_of(x, op, loc);
  int d = wrap_dim(dim, n, op, loc);
  NodeRef v = operand_node(value, n, op, loc);
  if (v->rank() != 0)
    fail(ErrorKind::Shape, op, "the value must be a number or a 0-d tensor, not " + describe(*v),
         loc);
  Dims shape = n->rank() ? n->shape : Dims{1}, slices = shape;
  NodeRef ix = node_of(index, op, loc);
  slices[d] = ix->numel();
  check_index(ix, op, loc);
  Tensor number = tensor_of(cast_to(v.get(), n->dtype, loc));
  Tensor at = tensor_of(from_end(std::move(ix), shape[d], loc));
  return scatter(x.reshape(shape), d, index_line(at, slices, d, op, loc), number).reshape(n->shape);
}

Tensor take_along_dim(const Tensor& x, const Tensor& index, std::optional<int64_t> dim,
                      SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  CheckScope checked(Check::TakeAlongDim);
  const char* op = "take_along_dim";
  NodeRef n = node_of(x, op, loc), ix = node_of(index, op, loc);
  if (!dim) return take_along_dim(x.flatten(), index.flatten(), 0, loc);
  int d = wrap_dim(*dim, n, op, loc);
  Dims data = n->shape, places = ix->shape;
  bool ok = data.size() == places.size();
  for (int i = 0; ok && i < data.size(); ++i) {
    if (i == d) continue;
    int64_t size = std::max(data[i], places[i]);
    if (data[i] == 0 || places[i] == 0) size = 0;
    ok = (data[i] == size || data[i] == 1) && (places[i] == size || places[i] == 1);
    data[i] = places[i] = size;
  }
  if (!ok)
    fail(ErrorKind::Shape, op,
         "index " + describe(index) + " does not broadcast with " + describe(x) + " outside dim " +
             std::to_string(d),
         loc, "both need the same number of dims, and sizes that are equal or 1");
  check_index(ix, op, loc);
  Tensor at = tensor_of(from_end(ix, n->rank() ? n->shape[d] : 1, loc));
  return gather(x.expand(data), d, at.expand(places));
}

Tensor take(const Tensor& x, const Tensor& index, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NodeRef n = node_of(x, "take", loc), ix = node_of(index, "take", loc);
  check_index(ix, "take", loc);
  if (n->numel() == 0 && ix->numel() != 0)
    fail(ErrorKind::Index, "take", describe(x) + " has no elements", loc);
  CheckScope checked(Check::Take);
  Tensor at = tensor_of(from_end(ix, n->numel(), loc));
  return gather(x.reshape({n->numel()}), 0, at.reshape({ix->numel()})).reshape(ix->shape);
}

Tensor put(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate,
           SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NodeRef n = node_of(x, "put", loc), ix = node_of(index, "put", loc),
          v = node_of(source, "put", loc);
  check_index(ix, "put", loc);
  if (ix->numel() != v->numel())
    fail(ErrorKind::Shape, "put",
         "index " + describe(index) + " and source " + describe(source) +
             " differ in their number of elements",
         loc);
  Dims line{ix->numel()};
  if (n->numel() == 0 && ix->numel() != 0)
    fail(ErrorKind::Index, "put", describe(x) + " has no elements", loc);
  CheckScope checked(Check::Put);
  Tensor at = tensor_of(from_end(ix, n->numel(), loc));
  Tensor flat = x.reshape({n->numel()}), i = at.reshape(line), s = source.reshape(line);
  return (accumulate ? scatter_add(flat, 0, i, s) : scatter(flat, 0, i, s)).reshape(n->shape);
}

}  // namespace ingot
