// More layers for images and signals: norms over groups of channels, resizing, shuffles between
// channels and positions.
#pragma once
#include "ingot/conv.h"
#include "ingot/nn/module.h"
#include "ingot/resample.h"

namespace ingot::nn {

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
/// Mean 0 and variance 1 over each group of channels of a sample [N, C, ...], then weight and bias
/// per channel. Throws Error(Value) unless num_channels is a multiple of num_groups, Error(Shape)
/// for other channels.
class GroupNorm : public Module {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options = {},
            SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;
  std::string description() const override;

 private:
  int64_t groups_, channels_;
  GroupNormOptions o_;
};

struct InstanceNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = false;
  bool track_running_stats = false;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
/// The same for each channel alone. With track_running_stats, eval() uses the running statistics.
/// Throws Error(Shape) for other ranks.
class InstanceNorm : public Module {
 public:
  Tensor forward(Tensor x) override;

 protected:
  InstanceNorm(int dims, int64_t num_features, const InstanceNormOptions& options, SourceLoc loc);

 private:
  int dims_;
  int64_t features_;
  InstanceNormOptions o_;
};
#define INGOT_INSTANCE_NORM(N)                                                                 \
  class InstanceNorm##N##d : public InstanceNorm {                                             \
   public:                                                                                     \
    explicit InstanceNorm##N##d(int64_t num_features, const InstanceNormOptions& options = {}, \
                                SourceLoc loc = SourceLoc::current())                          \
        : InstanceNorm(N, num_features, options, loc) {}                                       \
  };
INGOT_INSTANCE_NORM(1)
INGOT_INSTANCE_NORM(2)
INGOT_INSTANCE_NORM(3)
#undef INGOT_INSTANCE_NORM

struct UpsampleOptions {
  PerDim size{};                       ///< of the result, or
  std::vector<double> scale_factor{};  ///< one number, or one per dim
  std::string mode = "nearest";        ///< or "linear" (1 dim), "bilinear" (2), "trilinear" (3)
  bool align_corners = false;          ///< the linear modes: align the corners
};
/// Resizes the dims after the channels of [N, C, ...]. Throws Error(Value) for neither or both of
/// size and scale_factor, or another mode; Error(Shape) for a rank that does not fit the mode.
class Upsample : public Module {
 public:
  explicit Upsample(const UpsampleOptions& options, SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;

 private:
  UpsampleOptions o_;
};

/// [..., C r^2, H, W] to [..., C, H r, W r]. Throws Error(Shape) when the channels are not a
/// multiple of r^2.
class PixelShuffle : public Module {
 public:
  explicit PixelShuffle(int64_t upscale_factor) : r_(upscale_factor) {}
  Tensor forward(Tensor x) override;

 private:
  int64_t r_;
};
/// The inverse. Throws Error(Shape) when a side is not a multiple of r.
class PixelUnshuffle : public Module {
 public:
  explicit PixelUnshuffle(int64_t downscale_factor) : r_(downscale_factor) {}
  Tensor forward(Tensor x) override;

 private:
  int64_t r_;
};

}  // namespace ingot::nn
