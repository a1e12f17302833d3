// See cached_attention.h.
#include "ops/cached_attention.h"

#include <cmath>
#include <limits>

#include "graph/node.h"
#include "ops/common.h"

namespace ingot {

Tensor decompose_newest(double scale, const std::vector<Tensor>& in) {
  const Tensor &q = in[0], &keys = in[1], &values = in[2], &bias = in[3], &key = in[4],
               &value = in[5];
  const DType wide = is_half(q.dtype()) ? float32 : q.dtype();
  const Tensor hidden = bias == -std::numeric_limits<double>::infinity();
  // What is hidden is not read: the cache may hold NaN there.
  const Tensor old = where(hidden, -std::numeric_limits<double>::infinity(),
                           (matmul(q, keys.transpose(-1, -2)) * scale + bias).to(wide));
  const Tensor now = (matmul(q, key.transpose(-1, -2)) * scale).to(wide);
  const Tensor most = maximum(old.amax({-1}, true), now);
  const Tensor e = exp(old - most), one = exp(now - most);
  const Tensor each = (e.sum({-1}, true) + one).reciprocal();
  const Tensor seen = where(hidden.transpose(-1, -2), 0.0, values);
  return matmul((e * each).to(q.dtype()), seen) + matmul((one * each).to(q.dtype()), value);
}

Tensor cached_attention(const Tensor& q, const Tensor& keys, const Tensor& values,
                        const Tensor& visible, const Tensor& key, const Tensor& value) {
  if (is_eager()) return {};
  const SourceLoc loc = user_loc(SourceLoc::current());
  const Tensor bias = where(visible, 0.0, -std::numeric_limits<double>::infinity()).to(q.dtype());
  std::vector<NodeRef> in;
  for (const Tensor& t : {q, keys, values, bias, key, value}) {
    in.push_back(node_of(t, "cached_attention", loc));
    if (in.back()->requires_grad) return {};
  }
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
  return tensor_of(
      record_taking(Op::Attention, in, {AttentionAttrs{AttentionMask::Newest, scale}}, loc));
}

}  // namespace ingot
