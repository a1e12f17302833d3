// The networks that recipes name.
#pragma once
#include <memory>

#include <ingot/ingot.h>

#include "recipe.h"

namespace ingot::cli {

/// What the data says about the network's two ends.
struct Ends {
  int64_t channels = 1, side = 28;  ///< of pictures
  int64_t classes = 10;
};

/// Pictures uint8 [N, C, H, W], points float32 [N, 2] or tokens int64 [N, T] in; logits out. Throws
/// Failure(kUsage) for a model the task does not have.
std::shared_ptr<nn::Module> make_model(const Recipe& recipe, const Ends& ends);

/// Has the recipe's model blocks that can be computed again ("recompute")?
bool can_recompute(const Recipe& recipe);

}  // namespace ingot::cli
