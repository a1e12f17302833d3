// Convolutions and poolings as layers, over the functions of conv.h and pool.h, and throwing what
// they throw. Parameters have PyTorch's names, layouts and initial values.
#pragma once
#include "ingot/conv.h"
#include "ingot/nn/module.h"
#include "ingot/pool.h"

namespace ingot::nn {

struct ConvOptions {
  PerDim kernel_size{};  ///< must be given: 3 or {3, 5}
  PerDim stride = 1;
  ConvPadding padding = 0;
  PerDim dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";  ///< or "reflect", "replicate", "circular"
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
struct ConvTransposeOptions {
  PerDim kernel_size{};  ///< must be given
  PerDim stride = 1;
  PerDim padding = 0;
  PerDim output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  PerDim dilation = 1;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};

/// Shared by the convolutions. Throws Error(Value) for sizes below 1, a missing kernel_size,
/// channels that are not a multiple of groups, or an unknown padding_mode.
class Conv : public Module {
 public:
  Tensor forward(Tensor x) override;
  Tensor weight() const {
    return own(0);
  }  ///< [out, in / groups, kernel...]; transposed: [in, out / groups, kernel...]
  Tensor bias() const;  ///< [out], or undefined
  std::string description() const override;

 protected:
  Conv(int dims, int64_t in_channels, int64_t out_channels, const ConvOptions& options,
       SourceLoc loc);
  Conv(int dims, int64_t in_channels, int64_t out_channels, const ConvTransposeOptions& options,
       SourceLoc loc);

 private:
  void make(int64_t first, int64_t second, SourceLoc loc);
  int dims_;
  bool transposed_;
  int64_t in_, out_;
  ConvOptions o_;
  PerDim output_padding_ = 0;
};

#define INGOT_CONV(N)                                                                              \
  class Conv##N##d : public Conv {                                                                 \
   public:                                                                                         \
    Conv##N##d(int64_t in_channels, int64_t out_channels, const ConvOptions& options,              \
               SourceLoc loc = SourceLoc::current())                                               \
        : Conv(N, in_channels, out_channels, options, loc) {}                                      \
  };                                                                                               \
  class ConvTranspose##N##d : public Conv {                                                        \
   public:                                                                                         \
    ConvTranspose##N##d(int64_t in_channels, int64_t out_channels,                                 \
                        const ConvTransposeOptions& options, SourceLoc loc = SourceLoc::current()) \
        : Conv(N, in_channels, out_channels, options, loc) {}                                      \
  };
INGOT_CONV(1)
INGOT_CONV(2)
INGOT_CONV(3)
#undef INGOT_CONV

// ---- Pooling

struct MaxPoolOptions {
  PerDim stride{};  ///< kernel_size when not given
  PerDim padding = 0;
  PerDim dilation = 1;
  bool ceil_mode = false;
};
struct AvgPoolOptions {
  PerDim stride{};
  PerDim padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override{};  ///< 2 and 3 dims only
};
struct LPPoolOptions {
  PerDim stride{};
  bool ceil_mode = false;
};

#define INGOT_POOLS(N, divisor)                                                       \
  class MaxPool##N##d : public Module {                                               \
   public:                                                                            \
    explicit MaxPool##N##d(PerDim kernel_size, MaxPoolOptions options = {})           \
        : k_(kernel_size), o_(options) {}                                             \
    Tensor forward(Tensor x) override {                                               \
      return max_pool##N##d(x, k_, o_.stride, o_.padding, o_.dilation, o_.ceil_mode); \
    }                                                                                 \
                                                                                      \
   private:                                                                           \
    PerDim k_;                                                                        \
    MaxPoolOptions o_;                                                                \
  };                                                                                  \
  class AvgPool##N##d : public Module {                                               \
   public:                                                                            \
    explicit AvgPool##N##d(PerDim kernel_size, AvgPoolOptions options = {})           \
        : k_(kernel_size), o_(options) {}                                             \
    Tensor forward(Tensor x) override {                                               \
      return avg_pool##N##d(x, k_, o_.stride, o_.padding, o_.ceil_mode,               \
                            o_.count_include_pad divisor);                            \
    }                                                                                 \
                                                                                      \
   private:                                                                           \
    PerDim k_;                                                                        \
    AvgPoolOptions o_;                                                                \
  };                                                                                  \
  class LPPool##N##d : public Module {                                                \
   public:                                                                            \
    LPPool##N##d(double norm_type, PerDim kernel_size, LPPoolOptions options = {})    \
        : p_(norm_type), k_(kernel_size), o_(options) {}                              \
    Tensor forward(Tensor x) override {                                               \
      return lp_pool##N##d(x, p_, k_, o_.stride, o_.ceil_mode);                       \
    }                                                                                 \
                                                                                      \
   private:                                                                           \
    double p_;                                                                        \
    PerDim k_;                                                                        \
    LPPoolOptions o_;                                                                 \
  };                                                                                  \
  class AdaptiveAvgPool##N##d : public Module {                                       \
   public:                                                                            \
    explicit AdaptiveAvgPool##N##d(PerDim output_size) : size_(output_size) {}        \
    Tensor forward(Tensor x) override { return adaptive_avg_pool##N##d(x, size_); }   \
                                                                                      \
   private:                                                                           \
    PerDim size_;                                                                     \
  };                                                                                  \
  class AdaptiveMaxPool##N##d : public Module {                                       \
   public:                                                                            \
    explicit AdaptiveMaxPool##N##d(PerDim output_size) : size_(output_size) {}        \
    Tensor forward(Tensor x) override { return adaptive_max_pool##N##d(x, size_); }   \
                                                                                      \
   private:                                                                           \
    PerDim size_;                                                                     \
  };
#define INGOT_DIVISOR , o_.divisor_override
#define INGOT_NO_DIVISOR
INGOT_POOLS(1, INGOT_NO_DIVISOR)
INGOT_POOLS(2, INGOT_DIVISOR)
INGOT_POOLS(3, INGOT_DIVISOR)
#undef INGOT_POOLS
#undef INGOT_DIVISOR
#undef INGOT_NO_DIVISOR

// ---- Batch normalisation

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum =
      0.1;  ///< none: the running statistics are plain averages (reads their count each time)
  bool affine = true;
  bool track_running_stats = true;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
/// Shared by the batch norms: the batch's statistics while training, the running ones after
/// eval(). Throws Error(Shape) for an input of other ranks than the class's, and as batch_norm()
/// does.
class BatchNorm : public Module {
 public:
  Tensor forward(Tensor x) override;
  Tensor weight() const;  ///< [num_features], or undefined
  Tensor bias() const;
  Tensor running_mean() const;  ///< or undefined
  Tensor running_var() const;
  std::string description() const override;

 protected:
  BatchNorm(int dims, int64_t num_features, const BatchNormOptions& options, SourceLoc loc);

 private:
  size_t buffers() const { return o_.affine ? 2 : 0; }
  int dims_;
  int64_t features_;
  BatchNormOptions o_;
};
#define INGOT_BATCH_NORM(N)                                                              \
  class BatchNorm##N##d : public BatchNorm {                                             \
   public:                                                                               \
    explicit BatchNorm##N##d(int64_t num_features, const BatchNormOptions& options = {}, \
                             SourceLoc loc = SourceLoc::current())                       \
        : BatchNorm(N, num_features, options, loc) {}                                    \
  };
INGOT_BATCH_NORM(1)  ///< [N, C] or [N, C, L]
INGOT_BATCH_NORM(2)  ///< [N, C, H, W]
INGOT_BATCH_NORM(3)  ///< [N, C, D, H, W]
#undef INGOT_BATCH_NORM

}  // namespace ingot::nn
