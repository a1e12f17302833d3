// Promotion, constants, casts and dim checks shared by the families of ops.
#include "ops/common.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace ingot {

void fail(ErrorKind kind, const char* op, std::string what, const SourceLoc& loc, std::string fix) {
  throw Error(kind, op, std::move(what), loc, std::move(fix));
}

std::string text_of(double v) {
  char buf[32];
  std::snprintf(buf, sizeof buf, "%g", v);
  return buf;
}

void check_new_shape(const Dims& shape, const char* op, const SourceLoc& loc) {
  double n = 1;
  for (int64_t s : shape) {
    if (s < 0)
      fail(ErrorKind::Shape, op, "a size cannot be negative: " + to_string(shape), loc,
           "sizes are 0 or more");
    n *= static_cast<double>(std::max<int64_t>(s, 1));  // others than 0 must fit beside it
  }
  if (n > 0x1p60)
    fail(ErrorKind::Shape, op, "shape " + to_string(shape) + " has more than 2^60 elements", loc);
}

std::string describe(const Tensor& x) {
  return x.defined() ? describe(x.cell()->current()) : "an undefined tensor";
}

namespace {

// Constants are converted when they are recorded; what C++ leaves undefined (NaN or 1e30 as an
// integer) becomes 0 or the nearest end.
int64_t to_integer(double f) {
  if (f != f) return 0;
  if (f >= 9.2233720368547758e18) return INT64_MAX;
  if (f <= -9.2233720368547758e18) return INT64_MIN;
  return static_cast<int64_t>(f);
}

int64_t wrap_integer(int64_t v, DType t) {
  switch (t) {
    case DType::Int32:
      return static_cast<int32_t>(v);
    case DType::Int16:
      return static_cast<int16_t>(v);
    case DType::Int8:
      return static_cast<int8_t>(v);
    case DType::UInt8:
      return static_cast<uint8_t>(v);
    default:
      return v;
  }
}

bool fits(const Scalar& s, DType t) {
  const bool floating = s.kind == Scalar::Kind::Float;
  const int bits = 8 * static_cast<int>(size_of(t));
  if (!is_integer(t) || (!floating && bits == 64)) return true;
  const double v = floating ? std::trunc(s.f) : static_cast<double>(s.i);
  const double top = std::ldexp(1.0, t == DType::UInt8 ? 8 : bits - 1);
  const double low = t != DType::UInt8 ? -top
                     : floating        ? 0
                                       : 1 - top;  // -1 wraps to 255, as in PyTorch
  return v >= low && v < top;
}

}  // namespace

void check_fits(const Scalar& s, DType t, const char* op, const SourceLoc& loc) {
  if (!fits(s, t))
    fail(ErrorKind::Value, op,
         (s.kind == Scalar::Kind::Float ? text_of(s.f) : std::to_string(s.i)) +
             " does not fit into " + std::string(name_of(t)) + " (overflow)",
         user_loc(loc), "give a type that holds it");
}

NodeRef constant(const Scalar& s, DType dtype, Device device, const SourceLoc& loc) {
  ConstAttrs a;
  bool floating = s.kind == Scalar::Kind::Float;
  if (is_float(dtype)) {
    a.f = floating ? s.f : static_cast<double>(s.i);
  } else if (dtype == DType::Bool) {
    a.i = floating ? s.f != 0 : s.i != 0;
    a.f = static_cast<double>(a.i);
  } else {
    a.i = wrap_integer(floating ? to_integer(s.f) : s.i, dtype);
    a.f = static_cast<double>(a.i);
  }
  return record(Op::Const, {}, {.attrs = a, .dtype = dtype, .device = device}, loc);
}

NodeRef fitting(const Scalar& s, DType dtype, Device device, const char* op, const SourceLoc& loc) {
  check_fits(s, dtype, op, loc);
  return constant(s, dtype, device, loc);
}

NodeRef cast_to(NodeRef n, DType dtype, const SourceLoc& loc) {
  if (n->dtype == dtype) return n;
  return record(Op::Cast, {std::move(n)}, {.dtype = dtype}, loc);
}

NodeRef move_to(NodeRef n, Device device, const SourceLoc& loc) {
  if (n->device == device) return n;
  return record(Op::ToDevice, {std::move(n)}, {.device = device}, loc);
}

NodeRef reshape_to(NodeRef n, const Dims& shape, const SourceLoc& loc) {
  if (n->shape == shape) return n;
  return record(Op::Reshape, {std::move(n)}, {.shape = shape}, loc);
}

NodeRef corner(const NodeRef& n, const Dims& shape, const SourceLoc& loc) {
  if (n->shape == shape) return n;
  const SliceAttrs first{Dims::filled(n->rank(), 0), Dims::filled(n->rank(), 1)};
  return record(Op::Slice, {n}, {first, shape}, loc);
}

NodeRef expand_to(NodeRef n, const Dims& shape, const SourceLoc& loc) {
  if (n->shape == shape) return n;
  NodeRef x = n;
  if (n->rank() < shape.size()) {
    Dims d = Dims::filled(shape.size(), 1);
    for (int i = 0; i < n->rank(); ++i) d[shape.size() - n->rank() + i] = n->shape[i];
    x = reshape_to(n, d, loc);
  }
  if (x->shape == shape) return x;
  return record(Op::Expand, {x.get()}, {.shape = shape}, loc);
}

DType default_dtype(const Scalar& s) {
  switch (s.kind) {
    case Scalar::Kind::Bool:
      return DType::Bool;
    case Scalar::Kind::Int:
      return DType::Int64;
    default:
      return DType::Float32;
  }
}

namespace {

DType combine(DType higher, DType lower) {
  if (is_float(higher)) return higher;
  if (higher == DType::Bool || is_float(lower)) return promote(higher, lower);
  return higher;
}

}  // namespace

DType promoted(const Node* a, const Node* b) {
  if (a->dtype == b->dtype) return a->dtype;
  if ((a->rank() == 0) == (b->rank() == 0)) return promote(a->dtype, b->dtype);
  return a->rank() == 0 ? combine(b->dtype, a->dtype) : combine(a->dtype, b->dtype);
}

DType promoted(const Node* a, const Scalar& b) { return combine(a->dtype, default_dtype(b)); }

int wrap_dim_of(int64_t dim, int n, const Node* x, const char* op, const SourceLoc& loc) {
  int64_t d = dim < 0 ? dim + n : dim;
  if (d < 0 || d >= n)
    fail(ErrorKind::Dim, op,
         "dim " + std::to_string(dim) + " is outside " + describe(*x) + ", which takes dims from " +
             std::to_string(-n) + " to " + std::to_string(n - 1),
         loc, dim >= n ? "the last dim is -1" : "");
  return static_cast<int>(d);
}

int wrap_dim(int64_t dim, const Node* x, const char* op, const SourceLoc& loc) {
  return wrap_dim_of(dim, std::max(1, x->rank()), x, op, loc);
}

uint32_t axes_mask(const Axes& axes, const Node* x, const char* op, const SourceLoc& loc) {
  if (axes.all()) return (1u << x->rank()) - 1;
  uint32_t mask = 0;
  for (int64_t d : axes.dims()) {
    uint32_t bit = 1u << wrap_dim(d, x, op, loc);
    if (mask & bit)
      fail(ErrorKind::Dim, op,
           "dim " + std::to_string(d) + " is named twice in " + to_string(axes.dims()), loc,
           "name each dim once");
    mask |= bit;
  }
  return x->rank() ? mask : 0;
}

NodeRef binary_node(Op op, NodeRef a, NodeRef b, const SourceLoc& loc) {
  if (a->dtype == b->dtype && a->device == b->device) [[likely]]
    return record(op, {std::move(a), std::move(b)}, kNoAttrs, loc);
  DType t = promoted(a, b);
  NodeRef x = cast_to(a, t, loc), y = cast_to(b, t, loc);
  if (a->device != b->device) {
    if (b->rank() == 0)
      y = move_to(y.get(), a->device, loc);
    else if (a->rank() == 0)
      x = move_to(x.get(), b->device, loc);
  }
  return record(op, {std::move(x), std::move(y)}, kNoAttrs, loc);
}

NodeRef binary_node(Op op, NodeRef a, const Operand& b, const SourceLoc& loc) {
  if (b.tensor) return binary_node(op, std::move(a), node_of(*b.tensor, info(op).name, loc), loc);
  DType t = promoted(a, b.scalar);
  NodeRef x = cast_to(a, t, loc), y = constant(b.scalar, t, a->device, loc);
  return record(op, {std::move(x), std::move(y)}, kNoAttrs, loc);
}

NodeRef iota_along(int64_t n, int dim, int rank, Device device, const SourceLoc& loc) {
  NodeRef i = record(Op::Iota, {}, {.shape = {n}, .device = device}, loc);
  Dims d = Dims::filled(rank, 1);
  d[dim] = n;
  return reshape_to(i.get(), d, loc);
}

NodeRef from_end(NodeRef index, int64_t size, const SourceLoc& loc) {
  NodeRef i =
      size > std::numeric_limits<int32_t>::max() ? cast_to(index, DType::Int64, loc) : index;
  NodeRef zero = constant(0, i->dtype, i->device, loc),
          n = constant(size, i->dtype, i->device, loc);
  NodeRef negative = record2(Op::Lt, i.get(), zero.get(), loc),
          moved = record2(Op::Add, i.get(), n.get(), loc);
  return record(Op::Where, {negative.get(), moved.get(), i.get()}, kNoAttrs, loc);
}

NodeRef require(NodeRef ok, Check check, const SourceLoc& loc) {
  NodeRef bad = record1(Op::LogicalNot, ok, loc);
  bad = cast_to(bad.get(), DType::Int64, loc);
  bad = reshape_to(bad.get(), {ok->numel()}, loc);
  NodeRef one = iota_along(1, 0, 1, ok->device, loc);
  NodeRef zeros = record(Op::Gather, {one.get(), bad.get()}, {IndexAttrs{0, check}}, loc);
  return reshape_to(zeros.get(), ok->shape, loc);
}

Tensor checked(const Tensor& x, const Tensor& sound, Check check, const SourceLoc& loc) {
  if (x.numel() == 0) return x;
  // One check for all elements: a lookup for each would cost more than most of what x is used for.
  NodeRef zero = require(node_of(sound.all(), name_of(check), loc), check, loc);
  return x + tensor_of(cast_to(std::move(zero), x.dtype(), loc));
}

}  // namespace ingot
