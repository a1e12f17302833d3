// Resampling of images and signals: [N, C, ...] or, for the shuffles, [..., C, H, W].
#pragma once
#include <string_view>
#include <vector>

#include "ingot/tensor.h"

namespace ingot {

struct InterpolateOptions {
  PerDim size{};                       ///< of the result's dims; or
  std::vector<double> scale_factor{};  ///< one number or one per dim
  std::string_view mode =
      "nearest";  ///< nearest, nearest-exact, linear, bilinear, trilinear, bicubic, area
  bool align_corners = false;  ///< linear and cubic: the corners' centres stay where they are
  bool recompute_scale_factor = false;  ///< use the sizes' ratio although a scale_factor was given
};
/// Resizes the dims after the channels of [N, C, ...]. Error(Value) for a mode that does not suit
/// the rank, or unless exactly one of size and scale_factor is given.
Tensor interpolate(const Tensor& input, const InterpolateOptions& options, INGOT_LOC);
/// [.., C r^2, H, W] -> [.., C, H r, W r], and back.
Tensor pixel_shuffle(const Tensor& input, int64_t upscale_factor, INGOT_LOC);
Tensor pixel_unshuffle(const Tensor& input, int64_t downscale_factor, INGOT_LOC);
/// Interleaves the channels of `groups` groups.
Tensor channel_shuffle(const Tensor& input, int64_t groups, INGOT_LOC);

}  // namespace ingot
