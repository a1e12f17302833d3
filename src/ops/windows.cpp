#include "ops/windows.h"

#include "graph/shape_rules.h"

namespace ingot {

Dims per_dim(const PerDim& v, int n, int64_t least, const char* what, const char* op,
             const SourceLoc& loc) {
  const Dims& given = v.values();
  if (given.size() != 1 && given.size() != n)
    fail(ErrorKind::Value, op,
         std::string(what) + " " + to_string(given) +
             " is neither one number nor one for each of the " + std::to_string(n) + " dims",
         loc, "give " + std::to_string(n) + (n == 1 ? " number" : " numbers"));
  Dims r = given.size() == n ? given : Dims::filled(n, given[0]);
  for (int64_t x : r)
    if (x < least || x > (int64_t{1} << 40))
      fail(ErrorKind::Value, op,
           std::string(what) + " " + to_string(given) + " must be " +
               (x < least ? "at least " + std::to_string(least) : std::string("at most 2^40")),
           loc);
  return r;
}

int64_t Windows::count(int d, int64_t size) const {
  return window_count(size, kernel[d], stride[d], dilation[d], front[d], behind[d]);
}

Tensor pad_last(const Tensor& x, const Dims& front, const Dims& behind, double fill,
                const SourceLoc& loc) {
  NodeRef n = node_of(x, "pad", loc);
  PadAttrs a{Dims::filled(n->rank(), 0), fill};
  Dims shape = n->shape;
  const int lead = n->rank() - front.size();
  for (int d = 0; d < front.size(); ++d) {
    shape[lead + d] += front[d] + behind[d];
    a.front[lead + d] = front[d];
  }
  return shape == n->shape ? x : tensor_of(record(Op::Pad, {n}, {a, shape}, loc));
}

Tensor window_view(const Tensor& x, const Windows& w, const SourceLoc& loc) {
  NodeRef n = node_of(x, "window", loc);
  const int lead = n->rank() - w.n();
  Dims shape(n->shape.begin(), lead);
  for (int d = 0; d < w.n(); ++d) shape.push_back(w.count(d, n->shape[lead + d]));
  for (int64_t k : w.kernel) shape.push_back(k);
  Tensor padded = pad_last(x, w.front, w.behind, w.fill, loc);
  const WindowAttrs a{w.stride, w.dilation};
  return tensor_of(record(Op::Window, {node_of(padded, "window", loc)}, {a, shape}, loc));
}

Tensor fold_windows(const Tensor& value, const Tensor& position, const Windows& w,
                    const Dims& shape, const SourceLoc& loc) {
  const OpSpec spec{FoldAttrs{w.stride, w.dilation, w.front, w.kernel}, shape};
  NodeRef v = node_of(value, "fold", loc);
  return tensor_of(position.defined()
                       ? record(Op::Fold, {v, node_of(position, "fold", loc)}, spec, loc)
                       : record(Op::Fold, {v}, spec, loc));
}

}  // namespace ingot
