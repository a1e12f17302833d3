// Running values along a dim: one primitive each. The positions of running extremes are the
// primitive; the values are read there, so that the gradient goes to those elements.
#include "ingot/sorting.h"
#include "ops/common.h"

namespace ingot {
namespace {

// A 0-d tensor as one of a single element; `back` undoes it.
NodeRef at_least_1d(Node* n, const SourceLoc& loc) {
  return n->rank() ? NodeRef(n) : reshape_to(n, {1}, loc);
}

NodeRef scan(ScanKind kind, Node* n, int64_t dim, const char* op, const SourceLoc& loc) {
  const ScanAttrs a{wrap_dim(dim, n, op, loc), kind};
  NodeRef x = at_least_1d(n, loc);
  NodeRef r = record(Op::Scan, {x.get()}, {a}, loc);
  return reshape_to(r.get(), n->shape, loc);
}

Tensor accumulated(ScanKind kind, const Tensor& x, int64_t dim, std::optional<DType> dtype,
                   const char* op, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, op, loc);
  DType want = dtype.value_or(is_float(n->dtype) ? n->dtype : DType::Int64);
  if (want == DType::Bool)
    fail(ErrorKind::DType, op, "cannot add or multiply in bool", loc,
         "use another dtype, or cummax() of x != 0");
  NodeRef in = cast_to(n, want, loc);
  return tensor_of(scan(kind, in.get(), dim, op, loc));
}

ValuesIndices extreme(ScanKind kind, const Tensor& x, int64_t dim, const char* op,
                      const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, op, loc);
  Tensor at = tensor_of(scan(kind, n, dim, op, loc));
  return {gather(x, dim, at, loc), at};
}

}  // namespace

Tensor cumsum(const Tensor& x, int64_t dim, std::optional<DType> dtype, SourceLoc loc) {
  return accumulated(ScanKind::Sum, x, dim, dtype, "cumsum", loc);
}
Tensor cumprod(const Tensor& x, int64_t dim, std::optional<DType> dtype, SourceLoc loc) {
  return accumulated(ScanKind::Prod, x, dim, dtype, "cumprod", loc);
}

Tensor logcumsumexp(const Tensor& x, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "logcumsumexp", loc);
  if (!is_float(n->dtype))
    fail(ErrorKind::DType, "logcumsumexp", "needs a floating type, not " + describe(x), loc,
         "convert with x.to(float32)");
  return tensor_of(scan(ScanKind::LogSum, n, dim, "logcumsumexp", loc));
}

ValuesIndices cummax(const Tensor& x, int64_t dim, SourceLoc loc) {
  return extreme(ScanKind::ArgMax, x, dim, "cummax", loc);
}
ValuesIndices cummin(const Tensor& x, int64_t dim, SourceLoc loc) {
  return extreme(ScanKind::ArgMin, x, dim, "cummin", loc);
}

}  // namespace ingot
