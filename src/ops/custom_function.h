// What a function with a custom gradient attaches to its results; checkpoint() uses it too.
#pragma once
#include <memory>
#include <vector>

#include "graph/custom_backward.h"

namespace ingot {

/// n, which nothing uses yet, as one more output of a node with this gradient.
void add_output(const std::shared_ptr<CustomBackward>& custom, Node& n);
/// The results as outputs of a node with this gradient.
std::vector<Tensor> outputs_of(const std::shared_ptr<CustomBackward>& custom,
                               const std::vector<Tensor>& results, const SourceLoc& loc);

}  // namespace ingot
