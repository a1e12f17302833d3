// See cached_attention.h.
#include "ops/cached_attention.h"

#include <cmath>
#include <limits>

#include "graph/node.h"
#include "ops/common.h"

namespace ingot {

Tensor cached_attention(const Tensor& q, const Tensor& keys, const Tensor& values,
                        const Tensor& visible, const Tensor& key, const Tensor& value) {
  const SourceLoc loc = user_loc(SourceLoc::current());
  const Tensor bias = where(visible, 0.0, -std::numeric_limits<double>::infinity()).to(q.dtype());
  std::vector<NodeRef> in;
  for (const Tensor& t : {q, keys, values, bias, key, value}) {
    in.push_back(node_of(t, "cached_attention", loc));
    if (in.back()->requires_grad) return {};
  }
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
  if (!has_cached_attention(pointers(in), scale)) return {};
  return tensor_of(
      record_taking(Op::Attention, in, {AttentionAttrs{AttentionMask::Newest, scale}}, loc));
}

}  // namespace ingot
