// Normalisation. 16-bit floats compute in float32 and are rounded once at the end. Ranks and
// channels that do not fit throw Error(Shape); what every function checks is said at the top of
// ops.h.
#pragma once
#include <optional>

#include "ingot/tensor.h"

namespace ingot {

/// Over the last normalized_shape.size() dims, which must have these sizes; weight and bias of that
/// shape or undefined.
Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5, INGOT_LOC);
/// x / sqrt(mean(x^2) + eps) over the last dims, times weight. eps as PyTorch's default when not
/// given.
Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = {}, INGOT_LOC);
/// Over all dims but dim 1: (x - mean) / sqrt(var + eps) * weight + bias. Training (or without
/// running statistics) takes the batch's mean and variance and, where running statistics are given,
/// updates them by momentum in place (variance with n - 1); otherwise uses the running ones.
/// Statistics, weight and bias are [C]. Throws Error(Value) when training on one value per channel.
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight = {}, const Tensor& bias = {}, bool training = false,
                  double momentum = 0.1, double eps = 1e-5, INGOT_LOC);
/// Over the channels of each of num_groups groups and all further dims; weight and bias [C].
/// Error(Value) unless num_groups divides the channels.
Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5, INGOT_LOC);
/// Over the dims after the channels of each sample. use_input_stats = false uses the running
/// statistics; with both, these are updated by momentum towards the mean over the samples.
Tensor instance_norm(const Tensor& input, const Tensor& running_mean = {},
                     const Tensor& running_var = {}, const Tensor& weight = {},
                     const Tensor& bias = {}, bool use_input_stats = true, double momentum = 0.1,
                     double eps = 1e-5, INGOT_LOC);
/// x / (k + alpha * mean of the squares of `size` neighbouring channels)^beta.
Tensor local_response_norm(const Tensor& input, int64_t size, double alpha = 1e-4,
                           double beta = 0.75, double k = 1, INGOT_LOC);

}  // namespace ingot
