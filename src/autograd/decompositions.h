// Decompositions of gradients that are ops of their own: graph/composite.h.
#pragma once
#include <vector>

#include "graph/composite.h"

namespace ingot::autograd {

std::vector<Tensor> decompose_composite_grad(Op op, const OpSpec& call,
                                             const std::vector<Tensor>& operands);
std::vector<Tensor> decompose_attention_grad(Op op, const OpSpec& call,
                                             const std::vector<Tensor>& operands);

}  // namespace ingot::autograd
