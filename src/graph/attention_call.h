// Attention over a cache: Op::Attention with imm_i 2 and the inputs q [B, H, 1, D], k, v [B, H, S, D], bias
// [B|1, H|1, 1, S] and one key and value more [B, H, 1, D], which need not be in the cache yet: it can be
// written when it suits, all layers' together.
#pragma once
#include <span>

#include "graph/node.h"

namespace ingot {

inline constexpr int64_t kOneMoreKey = 2;

/// Does the device's backend have this call? (compile/executor.cpp)
bool has_cached_attention(std::span<Node* const> inputs, double scale);

}  // namespace ingot
