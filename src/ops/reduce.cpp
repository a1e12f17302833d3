// Reductions over any set of dims. The primitive keeps reduced dims with size 1; dropping them is a
// reshape. What two of the composed ones share is one value of the graph, computed once.
#include <cmath>
#include <limits>

#include "ingot/reductions.h"
#include "ops/common.h"

namespace ingot {
namespace {

NodeRef reduced(Op op, const NodeRef& n, uint32_t mask, bool keepdim, const SourceLoc& loc) {
  NodeRef r = record(op, {n}, {ReduceAttrs{mask}}, loc);
  if (keepdim || mask == 0) return r;
  Dims s;
  for (int i = 0; i < n->rank(); ++i)
    if (!(mask >> i & 1)) s.push_back(n->shape[i]);
  return reshape_to(r.get(), s, loc);
}

int64_t count(const Node* n, uint32_t mask) {
  int64_t c = 1;
  for (int i = 0; i < n->rank(); ++i)
    if (mask >> i & 1) c *= n->shape[i];
  return c;
}

Node* floating(const Tensor& x, const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc);
  if (!is_float(n->dtype))
    fail(ErrorKind::DType, op, "needs a floating type, not " + describe(x), loc,
         "convert with x.to(float32)");
  return n;
}

DType wide(DType t) { return is_half(t) ? DType::Float32 : t; }

Tensor simple(Op op, const Tensor& x, const Axes& dim, bool keepdim, const SourceLoc& where,
              const char* name) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, name, loc);
  uint32_t mask = axes_mask(dim, n, name, loc);
  if (count(n, mask) == 0)
    fail(ErrorKind::Shape, name, "cannot reduce over zero elements: " + describe(x), loc,
         "check that the tensor is not empty, or reduce over other dims");
  return tensor_of(reduced(op, n, mask, keepdim, loc));
}

// Integers and bool add and multiply in int64; 16-bit floats in float32, rounded once.
Tensor accumulated(Op op, const Tensor& x, const Axes& dim, bool keepdim, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, info(op).name, loc);
  uint32_t mask = axes_mask(dim, n, info(op).name, loc);
  NodeRef in = cast_to(n, is_float(n->dtype) ? wide(n->dtype) : DType::Int64, loc);
  NodeRef r = reduced(op, in.get(), mask, keepdim, loc);
  return tensor_of(is_float(n->dtype) ? cast_to(r.get(), n->dtype, loc) : r);
}

Tensor position(Op op, const Tensor& x, std::optional<int64_t> dim, bool keepdim,
                const SourceLoc& loc) {
  return simple(op, x, dim ? Axes(*dim) : Axes(), keepdim, loc, info(op).name);
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& dim, bool keepdim, SourceLoc loc) {
  return accumulated(Op::Sum, x, dim, keepdim, loc);
}
Tensor prod(const Tensor& x, const Axes& dim, bool keepdim, SourceLoc loc) {
  return accumulated(Op::Prod, x, dim, keepdim, loc);
}

Tensor mean(const Tensor& x, const Axes& dim, bool keepdim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  Node* n = floating(x, "mean", loc);
  uint32_t mask = axes_mask(dim, n, "mean", loc);
  NodeRef in = cast_to(n, wide(n->dtype), loc);
  NodeRef s = reduced(Op::Sum, in.get(), mask, keepdim, loc);
  NodeRef c = constant(count(n, mask), s->dtype, n->device, loc);
  NodeRef m = record2(Op::Div, s.get(), c.get(), loc);
  return tensor_of(cast_to(m.get(), n->dtype, loc));
}

namespace {

NodeRef variance(const Tensor& x, const Axes& dim, double correction, bool keepdim, bool root,
                 const char* op, const SourceLoc& loc) {
  Node* n = floating(x, op, loc);
  uint32_t mask = axes_mask(dim, n, op, loc);
  NodeRef in = cast_to(n, wide(n->dtype), loc);
  double c = static_cast<double>(count(n, mask));
  NodeRef total = reduced(Op::Sum, in.get(), mask, true, loc);
  NodeRef all = constant(c, in->dtype, n->device, loc);
  NodeRef m = record2(Op::Div, total.get(), all.get(), loc);
  NodeRef centred = record2(Op::Sub, in.get(), m.get(), loc);
  NodeRef squares = record2(Op::Mul, centred.get(), centred.get(), loc);
  NodeRef s = reduced(Op::Sum, squares.get(), mask, keepdim, loc);
  NodeRef k = constant(std::max(0.0, c - correction), in->dtype, n->device, loc);
  NodeRef v = record2(Op::Div, s.get(), k.get(), loc);
  if (root) v = record1(Op::Sqrt, v.get(), loc);
  return cast_to(v.get(), n->dtype, loc);
}

}  // namespace

Tensor var(const Tensor& x, const Axes& dim, double correction, bool keepdim, SourceLoc loc) {
  return tensor_of(variance(x, dim, correction, keepdim, false, "var", user_loc(loc)));
}
Tensor std(const Tensor& x, const Axes& dim, double correction, bool keepdim, SourceLoc loc) {
  return tensor_of(variance(x, dim, correction, keepdim, true, "std", user_loc(loc)));
}

Tensor amax(const Tensor& x, const Axes& dim, bool keepdim, SourceLoc loc) {
  return simple(Op::Max, x, dim, keepdim, loc, "amax");
}
Tensor amin(const Tensor& x, const Axes& dim, bool keepdim, SourceLoc loc) {
  return simple(Op::Min, x, dim, keepdim, loc, "amin");
}
Tensor max(const Tensor& x, SourceLoc loc) { return simple(Op::Max, x, {}, false, loc, "max"); }
Tensor min(const Tensor& x, SourceLoc loc) { return simple(Op::Min, x, {}, false, loc, "min"); }
Tensor max(const Tensor& a, const Tensor& b, SourceLoc loc) { return maximum(a, b, loc); }
Tensor min(const Tensor& a, const Tensor& b, SourceLoc loc) { return minimum(a, b, loc); }

namespace {

// Values are read at the position that was found, so that the gradient goes to that one element, as
// PyTorch's.
ValuesIndices extreme(Op op, const Tensor& x, int64_t dim, bool keepdim, const char* name,
                      const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  Tensor at = simple(op, x, dim, true, loc, name);
  NodeRef n = x.cell()->current();
  if (n->rank() == 0) return {tensor_of(NodeRef(n)), at};
  Tensor values = gather(x, dim, at, loc);
  if (!keepdim) {
    values = values.squeeze(dim, loc);
    at = at.squeeze(dim, loc);
  }
  return {values, at};
}

}  // namespace

ValuesIndices max(const Tensor& x, int64_t dim, bool keepdim, SourceLoc loc) {
  return extreme(Op::ArgMax, x, dim, keepdim, "max", loc);
}
ValuesIndices min(const Tensor& x, int64_t dim, bool keepdim, SourceLoc loc) {
  return extreme(Op::ArgMin, x, dim, keepdim, "min", loc);
}
Tensor argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim, SourceLoc loc) {
  return position(Op::ArgMax, x, dim, keepdim, loc);
}
Tensor argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim, SourceLoc loc) {
  return position(Op::ArgMin, x, dim, keepdim, loc);
}

namespace {

Tensor truth(Op op, bool of_nothing, const Tensor& x, const Axes& dim, bool keepdim,
             const char* name, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, name, loc);
  uint32_t mask = axes_mask(dim, n, name, loc);
  if (count(n, mask) == 0) {
    Dims s;
    for (int i = 0; i < n->rank(); ++i)
      if (!(mask >> i & 1))
        s.push_back(n->shape[i]);
      else if (keepdim)
        s.push_back(1);
    return full(s, of_nothing, n->device, loc);
  }
  NodeRef b = n;
  if (n->dtype != DType::Bool) {
    NodeRef zero = constant(0, n->dtype, n->device, loc);
    b = record2(Op::Ne, n, zero.get(), loc);
  }
  return tensor_of(reduced(op, b.get(), mask, keepdim, loc));
}

}  // namespace

Tensor any(const Tensor& x, const Axes& dim, bool keepdim, SourceLoc loc) {
  return truth(Op::Max, false, x, dim, keepdim, "any", loc);
}
Tensor all(const Tensor& x, const Axes& dim, bool keepdim, SourceLoc loc) {
  return truth(Op::Min, true, x, dim, keepdim, "all", loc);
}

Tensor logsumexp(const Tensor& x, const Axes& dim, bool keepdim, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Node* n = floating(x, "logsumexp", loc);
  uint32_t mask = axes_mask(dim, n, "logsumexp", loc);
  if (count(n, mask) == 0) {
    NodeRef nothing = reduced(Op::Sum, n, mask, keepdim, loc);
    return full(nothing->shape, -std::numeric_limits<double>::infinity(), {n->dtype, n->device},
                loc);
  }
  NodeRef in = cast_to(n, wide(n->dtype), loc);
  Tensor wide_x = tensor_of(in);
  // The largest is taken out before exp; where it is infinite, 0 is, so that no inf - inf arises.
  Tensor top = tensor_of(reduced(Op::Max, in.get(), mask, true, loc)).detach();
  Tensor shift = where(isfinite(top), top, 0.0);
  Tensor s = tensor_of(reduced(Op::Sum, exp(wide_x - shift).cell()->current(), mask, true, loc));
  Tensor out = log(s) + shift;
  if (!keepdim) {
    Dims d;
    for (int i = 0; i < n->rank(); ++i)
      if (!(mask >> i & 1)) d.push_back(n->shape[i]);
    out = out.reshape(d);
  }
  return out.to(n->dtype);
}

Tensor norm(const Tensor& x, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  floating(x, "norm", loc);
  return vector_norm(x);
}

// ---- Composed from those above

std::pair<Tensor, Tensor> var_mean(const Tensor& x, const Axes& dim, double correction,
                                   bool keepdim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return {var(x, dim, correction, keepdim, loc), mean(x, dim, keepdim, loc)};
}

std::pair<Tensor, Tensor> std_mean(const Tensor& x, const Axes& dim, double correction,
                                   bool keepdim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return {ingot::std(x, dim, correction, keepdim, loc), mean(x, dim, keepdim, loc)};
}

MinMax aminmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  Axes axes = dim ? Axes(*dim) : Axes();
  return {amin(x, axes, keepdim, loc), amax(x, axes, keepdim, loc)};
}

// Roots and powers have no gradient at 0; there a constant takes their place.
Tensor vector_norm(const Tensor& x, double p, const Axes& dim, bool keepdim, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  floating(x, "vector_norm", loc);
  if (p != p) fail(ErrorKind::Value, "vector_norm", "p is NaN", loc);
  DType t = x.dtype();
  Tensor f = x.to(wide(t));
  if (std::isinf(p)) return p > 0 ? amax(abs(x), dim, keepdim) : amin(abs(x), dim, keepdim);
  if (p == 0) return sum((f != 0).to(f.dtype()), dim, keepdim).to(t);
  if (p == 1) return sum(abs(f), dim, keepdim).to(t);
  auto root = [](const Tensor& s, auto take) {
    return where(s == 0, 0.0, take(where(s == 0, 1.0, s)));
  };
  if (p == 2) return root(sum(f * f, dim, keepdim), [](const Tensor& s) { return sqrt(s); }).to(t);
  if (p < 0) {
    Tensor a = abs(f);
    Tensor powers =
        where(a == 0, std::numeric_limits<double>::infinity(), pow(where(a == 0, 1.0, a), p));
    return pow(sum(powers, dim, keepdim), 1 / p).to(t);
  }
  Tensor powers = root(abs(f), [p](const Tensor& a) { return pow(a, p); });
  return root(sum(powers, dim, keepdim), [p](const Tensor& s) { return pow(s, 1 / p); }).to(t);
}

Tensor norm(const Tensor& x, double p, const Axes& dim, bool keepdim, SourceLoc loc) {
  return vector_norm(x, p, dim, keepdim, loc);
}

Tensor count_nonzero(const Tensor& x, const Axes& dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  node_of(x, "count_nonzero", loc);
  LocScope scope(loc);
  return sum(x.dtype() == DType::Bool ? x : x != 0, dim);
}

Tensor nansum(const Tensor& x, const Axes& dim, bool keepdim, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  if (!is_float(node_of(x, "nansum", loc)->dtype)) return sum(x, dim, keepdim);
  return sum(where(isnan(x), 0.0, x), dim, keepdim);
}

Tensor nanmean(const Tensor& x, const Axes& dim, bool keepdim, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  floating(x, "nanmean", loc);
  Tensor f = x.to(wide(x.dtype())), gone = isnan(f);
  Tensor count = sum(logical_not(gone).to(f.dtype()), dim, keepdim);
  return (sum(where(gone, 0.0, f), dim, keepdim) / count).to(x.dtype());
}

}  // namespace ingot
