// Whether a device's backend runs something as one library call, asked while it is recorded.
#pragma once
#include <span>

#include "graph/node.h"

namespace ingot::library_queries {

/// See has_lstm() in graph/node.h.
bool lstm(const Node& z, const Node& weight);

}  // namespace ingot::library_queries
