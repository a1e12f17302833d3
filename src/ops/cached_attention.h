// Attention of the newest token over a cache, for models that generate.
#pragma once
#include "graph/node.h"
#include "ingot/ops.h"

namespace ingot {

/// softmax(q [keys, key]^T / sqrt(d) + mask) [values, value] for one query per head, q, key and
/// value [B, H, 1, D], keys and values [B, H, S, D]; `visible` (bool, broadcast to [B, H, 1, S])
/// says which of the cache count. Undefined where gradients are asked for, or each op runs at its
/// line: write the cache first then.
Tensor cached_attention(const Tensor& q, const Tensor& keys, const Tensor& values,
                        const Tensor& visible, const Tensor& key, const Tensor& value);

/// Op::Attention by other ops, and of those the form with AttentionMask::Newest.
std::vector<Tensor> decompose_attention(Op op, const OpSpec& call, const std::vector<Tensor>& in);
Tensor decompose_newest(double scale, const std::vector<Tensor>& in);

/// scaled_dot_product_attention() where every query is known to see a key.
Tensor seeing_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                        const AttentionOptions& options, SourceLoc loc = SourceLoc::current());

}  // namespace ingot
