// What the normalisations over channels share.
#pragma once
#include "ingot/norm.h"
#include "ops/common.h"

namespace ingot {

/// [C] as [1, C, 1, ...] of type t.
Tensor channels(const Tensor& v, int rank, DType t);
Axes all_but_channels(int rank);

/// running + momentum * (now - running), in place and outside of any gradient.
void move_towards(const Tensor& running, const Tensor& now, double momentum, const char* op,
                  const SourceLoc& loc);

struct ChannelStats {
  Tensor mean, var, rstd;  // [1, C, 1, ...]
};
/// Of x's own values, computed in x's type.
ChannelStats channel_stats(const Tensor& x, double eps);
/// Normalised with the batch's own statistics; a composite with its own gradient
/// (ops/batch_norm_grad.cpp). weight and bias may be undefined.
Tensor normalised_batch(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                        const SourceLoc& loc);

}  // namespace ingot
