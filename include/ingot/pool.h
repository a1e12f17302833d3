// Pooling. Names, argument order and defaults are PyTorch's. Inputs are [N, C, ...] or, without a
// batch, [C, ...], with 1, 2 or 3 further dims by the function's name. Ranks, channels and windows
// that do not fit throw Error(Shape); a stride or dilation that cannot be Error(Value); types and
// devices as in ops.h. stride is kernel_size when not given. padding may be at most half of
// kernel_size. ceil_mode counts a last window that begins inside but ends outside. Integers work in
// max pooling, floating types everywhere.
#pragma once
#include <optional>

#include "ingot/tensor.h"

namespace ingot {

/// The largest element of each window; integers too.
Tensor max_pool1d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride = {},
                  const PerDim& padding = 0, const PerDim& dilation = 1, bool ceil_mode = false,
                  INGOT_LOC);
Tensor max_pool2d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride = {},
                  const PerDim& padding = 0, const PerDim& dilation = 1, bool ceil_mode = false,
                  INGOT_LOC);
Tensor max_pool3d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride = {},
                  const PerDim& padding = 0, const PerDim& dilation = 1, bool ceil_mode = false,
                  INGOT_LOC);
/// With the int64 index of each largest element (the first of equals) in the flattened dims of its
/// channel.
ValuesIndices max_pool1d_with_indices(const Tensor& input, const PerDim& kernel_size,
                                      const PerDim& stride = {}, const PerDim& padding = 0,
                                      const PerDim& dilation = 1, bool ceil_mode = false,
                                      INGOT_LOC);
ValuesIndices max_pool2d_with_indices(const Tensor& input, const PerDim& kernel_size,
                                      const PerDim& stride = {}, const PerDim& padding = 0,
                                      const PerDim& dilation = 1, bool ceil_mode = false,
                                      INGOT_LOC);
ValuesIndices max_pool3d_with_indices(const Tensor& input, const PerDim& kernel_size,
                                      const PerDim& stride = {}, const PerDim& padding = 0,
                                      const PerDim& dilation = 1, bool ceil_mode = false,
                                      INGOT_LOC);
/// divisor_override divides by that number instead of the window's elements; 0 throws Error(Value).
Tensor avg_pool1d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride = {},
                  const PerDim& padding = 0, bool ceil_mode = false, bool count_include_pad = true,
                  INGOT_LOC);
Tensor avg_pool2d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride = {},
                  const PerDim& padding = 0, bool ceil_mode = false, bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = {}, INGOT_LOC);
Tensor avg_pool3d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride = {},
                  const PerDim& padding = 0, bool ceil_mode = false, bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = {}, INGOT_LOC);
/// (sum of x^p over the window)^(1/p); the largest for p = infinity.
Tensor lp_pool1d(const Tensor& input, double norm_type, const PerDim& kernel_size,
                 const PerDim& stride = {}, bool ceil_mode = false, INGOT_LOC);
Tensor lp_pool2d(const Tensor& input, double norm_type, const PerDim& kernel_size,
                 const PerDim& stride = {}, bool ceil_mode = false, INGOT_LOC);
Tensor lp_pool3d(const Tensor& input, double norm_type, const PerDim& kernel_size,
                 const PerDim& stride = {}, bool ceil_mode = false, INGOT_LOC);
/// Windows that cut each dim into output_size parts, as equal as they can be; -1 keeps a dim's
/// size.
Tensor adaptive_avg_pool1d(const Tensor& input, const PerDim& output_size, INGOT_LOC);
Tensor adaptive_avg_pool2d(const Tensor& input, const PerDim& output_size, INGOT_LOC);
Tensor adaptive_avg_pool3d(const Tensor& input, const PerDim& output_size, INGOT_LOC);
Tensor adaptive_max_pool1d(const Tensor& input, const PerDim& output_size, INGOT_LOC);
Tensor adaptive_max_pool2d(const Tensor& input, const PerDim& output_size, INGOT_LOC);
Tensor adaptive_max_pool3d(const Tensor& input, const PerDim& output_size, INGOT_LOC);

}  // namespace ingot
