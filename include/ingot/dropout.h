// Dropout. `p` is the probability that an element, or a channel, becomes 0.
#pragma once
#include "ingot/random.h"
#include "ingot/tensor.h"

namespace ingot {

/// Zeroes elements with probability p and divides the rest by 1 - p; x itself when not training.
/// Error(Value) unless 0 <= p <= 1.
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true,
               const Generator& generator = default_generator(), INGOT_LOC);

// ---- Dropout of whole channels ([N, C, ...], or [C, ...] without a batch), and the one that keeps
// mean and variance under SELU.

Tensor dropout1d(const Tensor& input, double p = 0.5, bool training = true,
                 const Generator& generator = default_generator(), INGOT_LOC);
Tensor dropout2d(const Tensor& input, double p = 0.5, bool training = true,
                 const Generator& generator = default_generator(), INGOT_LOC);
Tensor dropout3d(const Tensor& input, double p = 0.5, bool training = true,
                 const Generator& generator = default_generator(), INGOT_LOC);
Tensor alpha_dropout(const Tensor& input, double p = 0.5, bool training = false,
                     const Generator& generator = default_generator(), INGOT_LOC);

}  // namespace ingot
