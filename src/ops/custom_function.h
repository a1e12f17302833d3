// What a function with a custom gradient attaches to its results; checkpoint() uses it too.
#pragma once
#include <memory>
#include <vector>

#include "graph/custom_backward.h"

namespace ingot {

/// The results as outputs of a node with this gradient.
std::vector<Tensor> outputs_of(const std::shared_ptr<CustomBackward>& custom,
                               const std::vector<Tensor>& results, const SourceLoc& loc);

}  // namespace ingot
