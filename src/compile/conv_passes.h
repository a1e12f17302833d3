// Passes over convolutions.
#pragma once
#include "compile/ir.h"

namespace ingot {

/// Convolution and what follows it element by element (batch norm at inference, a residual, ReLU)
/// -> one library call, where the backend wants that.
void fuse_conv_epilogues(Graph& g);
/// 16-bit convolutions of a few channels with stride 2, and their weights' gradients, over blocks
/// of pixels, where the backend's convolutions want channels last.
void block_stems(Graph& g);

}  // namespace ingot
