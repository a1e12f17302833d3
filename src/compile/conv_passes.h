// Passes over convolutions.
#pragma once
#include "compile/ir.h"

namespace ingot {

/// 16-bit convolutions of a few channels with stride 2, and their weights' gradients, over blocks of pixels,
/// where the backend's convolutions want channels last.
void block_stems(Graph& g);

}  // namespace ingot
