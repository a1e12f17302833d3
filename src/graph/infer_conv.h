// Shapes of convolutions, windows and folds; part of infer().
#pragma once
#include "graph/node.h"

namespace ingot {

/// Size of a convolution's (or a pooling's) result along one dim: how many windows fit; below 1 when none
/// does.
inline int64_t window_count(int64_t size, int64_t kernel, int64_t stride, int64_t dilation, int64_t front,
                            int64_t behind) {
  int64_t room = size + front + behind - (dilation * (kernel - 1) + 1);
  return room < 0 ? 0 : room / stride + 1;
}

Inferred infer_conv(Op op, std::span<Node* const> in, const Attrs& a, const SourceLoc& loc);
Inferred infer_window(const Node& x, const Attrs& a, const SourceLoc& loc);
Inferred infer_fold(std::span<Node* const> in, const Attrs& a, const SourceLoc& loc);

}  // namespace ingot
