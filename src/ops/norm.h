// What the normalisations over channels share.
#pragma once
#include "ingot/neural.h"
#include "ops/common.h"

namespace ingot {

/// [C] as [1, C, 1, ...] of type t.
Tensor channels(const Tensor& v, int rank, DType t);
Axes all_but_channels(int rank);

/// running + momentum * (now - running), in place and outside of any gradient.
void move_towards(const Tensor& running, const Tensor& now, double momentum, const char* op,
                  const SourceLoc& loc);

struct NormResult {
  Tensor y, mean, var;  // mean and var [1, C, 1, ...], without history
};
/// Training batch normalisation with a gradient of its own (ops/batch_norm_grad.cpp). weight and
/// bias may be undefined.
NormResult normalised_batch(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                            const SourceLoc& loc);

}  // namespace ingot
