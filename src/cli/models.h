// The networks that recipes name.
#pragma once
#include <memory>

#include <ingot/ingot.h>

#include "recipe.h"

namespace ingot::cli {

/// The network's input and output sizes, which follow from the data.
struct ModelShape {
  int64_t channels = 1, side = 28;  ///< of images
  int64_t classes = 10;
};

/// Images uint8 [N, C, H, W], points float32 [N, 2] or tokens int64 [N, T] in; logits out. Throws
/// Failure(kUsage) for a model the task does not have.
std::shared_ptr<nn::Module> make_model(const Recipe& recipe, const ModelShape& shape);

/// Does the recipe's model have blocks that can be recomputed ("recompute")?
bool can_recompute(const Recipe& recipe);

}  // namespace ingot::cli
