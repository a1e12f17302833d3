// Whether a device's backend runs something as one library call, asked while it is recorded.
#pragma once
#include <span>

#include "graph/node.h"

namespace ingot::library_queries {

/// See has_attention(), has_cached_attention() and has_lstm() in graph/node.h.
bool attention(const Node& q, const Node& k, const Node& v, const Node* bias, bool causal,
               double scale);
bool cached_attention(std::span<Node* const> in, double scale);
bool lstm(const Node& z, const Node& weight);

}  // namespace ingot::library_queries
