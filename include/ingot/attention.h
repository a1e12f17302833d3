// Attention. 16-bit floats compute in float32 and are rounded once at the end.
#pragma once
#include <optional>

#include "ingot/tensor.h"

namespace ingot {

struct AttentionOptions {
  Tensor mask{};  ///< bool: visible positions; floating: added to the scores
  double dropout_p = 0;
  bool is_causal = false;         ///< position i sees 0..i
  std::optional<double> scale{};  ///< 1 / sqrt(d) when not given
  bool enable_gqa =
      false;  ///< key and value may have fewer heads (dim -3), each for a group of the query's
};
/// softmax(q k^T * scale + mask) v over [..., T, d] operands. Throws Error(Shape) for operands that
/// do not fit each other, Error(Value) for a mask together with is_causal.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options = {}, INGOT_LOC);

}  // namespace ingot
