#include "compile/new_value.h"

#include <limits>

namespace ingot {
namespace {

// What a reduction over no elements gives.
ConstAttrs neutral_of(const Val& v) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const bool low = v.op == Op::Max, high = v.op == Op::Min, one = v.op == Op::Prod;
  if (v.dtype == DType::Bool) return {0, one || high};
  return {one    ? 1
          : low  ? -inf
          : high ? inf
                 : 0,
          one    ? 1
          : low  ? std::numeric_limits<int64_t>::min()
          : high ? std::numeric_limits<int64_t>::max()
                 : 0};
}

}  // namespace

void replace_empty(Graph& g, Val& v) {
  if (v.numel() == 0 || v.n_in == 0) return;
  if ((v.op == Op::SliceAssign || v.op == Op::Scatter) && g.vals[v.in[1]].numel() == 0) {
    v.become(Op::Reshape);
    v.n_in = 1;
    v.copied = v.output;
    return;
  }
  // A convolution over no channels, or a weight's gradient over no samples.
  bool conv = v.op == Op::Conv || v.op == Op::ConvGradInput || v.op == Op::ConvGradWeight;
  bool sums =
      is_reduce(v.op) || v.op == Op::Matmul || v.op == Op::ScatterAdd || v.op == Op::Fold || conv;
  if (!sums || (g.vals[v.in[0]].numel() != 0 && !(conv && g.vals[v.in[1]].numel() == 0))) return;
  Val c;
  c.op = Op::Const;
  c.dtype = v.dtype;
  c.device = v.device;
  c.shape = Dims::filled(v.shape.size(), 1);
  c.attrs = neutral_of(v);
  g.vals.push_back(c);
  v.become(Op::Expand);
  v.n_in = 1;
  v.in[0] = static_cast<int>(g.vals.size()) - 1;
  v.copied = v.output;
}

namespace {

// Operands that must be in memory: those of library calls, what an assignment begins from, and
// what is gathered from (an index known only at run time reaches memory, not a formula, and is
// compared with its size even where every element is the same constant).
bool wants_buffer(const Val& v, int k, const Val& from) {
  if (v.op == Op::Assign || v.op == Op::SliceAssign) return k == 0;
  if (v.op == Op::Gather) return k == 0 && from.source();
  return is_library(v.op);
}

}  // namespace

int store_source(Graph& g, int source) {
  Val c;
  c.op = Op::Reshape;
  c.dtype = g.vals[source].dtype;
  c.shape = g.vals[source].shape;
  c.device = g.vals[source].device;
  c.n_in = 1;
  c.in[0] = source;
  c.copied = true;
  g.vals.push_back(c);
  return static_cast<int>(g.vals.size()) - 1;
}

void store_operands(Graph& g, Val& v) {
  for (int k = 0; k < v.n_in; ++k)
    if (wants_buffer(v, k, g.vals[v.in[k]]) && g.vals[v.in[k]].source())
      v.in[k] = store_source(g, v.in[k]);
}

}  // namespace ingot
