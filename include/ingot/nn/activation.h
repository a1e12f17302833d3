// Activations as modules, for Sequential: each calls the function of that name and throws what it throws.
#pragma once
#include "ingot/nn/module.h"
#include "ingot/ops.h"

namespace ingot::nn {

#define INGOT_ACTIVATION(Name, call)                                \
  class Name : public Module {                                      \
   public:                                                          \
    Tensor forward(Tensor x) override { return call; }              \
    std::string description() const override { return #Name "()"; } \
  };
INGOT_ACTIVATION(ReLU, relu(x))
INGOT_ACTIVATION(Tanh, tanh(x))
INGOT_ACTIVATION(Sigmoid, sigmoid(x))
INGOT_ACTIVATION(SiLU, silu(x))
INGOT_ACTIVATION(Softmax2d, softmax(x, -3))  ///< over the channels of [N, C, H, W] or [C, H, W]
INGOT_ACTIVATION(ReLU6, clamp(x, 0, 6))
INGOT_ACTIVATION(Mish, x* tanh(softplus(x)))
INGOT_ACTIVATION(Softsign, x / (abs(x) + 1.0))
INGOT_ACTIVATION(Hardswish, x* clamp(x + 3.0, 0, 6) / 6.0)
INGOT_ACTIVATION(Hardsigmoid, clamp(x + 3.0, 0, 6) / 6.0)
INGOT_ACTIVATION(LogSigmoid, -softplus(-x))
INGOT_ACTIVATION(Tanhshrink, x - tanh(x))
INGOT_ACTIVATION(SELU, where(x > 0.0, x, expm1(clamp_max(x, 0.0)) * 1.6732632423543772) * 1.0507009873554805)
#undef INGOT_ACTIVATION

// Those with numbers: the arguments are PyTorch's, in its order.
#define INGOT_ACTIVATION1(Name, a, da, call)           \
  class Name : public Module {                         \
   public:                                             \
    explicit Name(double a = da) : a_(a) {}            \
    Tensor forward(Tensor x) override { return call; } \
                                                       \
   private:                                            \
    double a_;                                         \
  };
INGOT_ACTIVATION1(ELU, alpha, 1.0, where(x > 0.0, x, expm1(clamp_max(x, 0.0)) * a_))
INGOT_ACTIVATION1(CELU, alpha, 1.0, where(x > 0.0, x, expm1(clamp_max(x, 0.0) / a_) * a_))
INGOT_ACTIVATION1(Softplus, beta, 1.0, softplus(x, a_))
INGOT_ACTIVATION1(Hardshrink, lambd, 0.5, where(abs(x) > a_, x, 0.0))
INGOT_ACTIVATION1(Softshrink, lambd, 0.5, relu(x - a_) - relu(-x - a_))
#undef INGOT_ACTIVATION1

class Hardtanh : public Module {
 public:
  explicit Hardtanh(double min_val = -1, double max_val = 1) : low_(min_val), high_(max_val) {}
  Tensor forward(Tensor x) override { return clamp(x, low_, high_); }

 private:
  double low_, high_;
};
/// x where it is above threshold, value elsewhere.
class Threshold : public Module {
 public:
  Threshold(double threshold, double value) : threshold_(threshold), value_(value) {}
  Tensor forward(Tensor x) override { return where(x > threshold_, x, value_); }

 private:
  double threshold_, value_;
};
/// First half times sigmoid of the second along dim. Throws Error(Shape) when its size is odd.
class GLU : public Module {
 public:
  explicit GLU(int64_t dim = -1) : dim_(dim) {}
  Tensor forward(Tensor x) override;

 private:
  int64_t dim_;
};
struct PReLUOptions {
  int64_t num_parameters = 1;  ///< or one per channel (dim 1)
  double init = 0.25;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
/// leaky_relu with a trained slope. Throws Error(Shape) for an input with another number of channels.
class PReLU : public Module {
 public:
  explicit PReLU(const PReLUOptions& options = {}, SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;
};
class Softmin : public Module {
 public:
  explicit Softmin(int64_t dim) : dim_(dim) {}
  Tensor forward(Tensor x) override { return softmax(-x, dim_); }

 private:
  int64_t dim_;
};

class GELU : public Module {
 public:
  /// approximate: "none" or "tanh"; forward() throws Error(Value) for another word.
  explicit GELU(std::string approximate = "none") : approximate_(std::move(approximate)) {}
  Tensor forward(Tensor x) override { return gelu(x, approximate_); }
  std::string description() const override { return "GELU(approximate='" + approximate_ + "')"; }

 private:
  std::string approximate_;
};

class LeakyReLU : public Module {
 public:
  explicit LeakyReLU(double negative_slope = 0.01) : slope_(negative_slope) {}
  Tensor forward(Tensor x) override { return leaky_relu(x, slope_); }

 private:
  double slope_;
};

class Softmax : public Module {
 public:
  explicit Softmax(int64_t dim) : dim_(dim) {}
  Tensor forward(Tensor x) override { return softmax(x, dim_); }

 private:
  int64_t dim_;
};

class LogSoftmax : public Module {
 public:
  explicit LogSoftmax(int64_t dim) : dim_(dim) {}
  Tensor forward(Tensor x) override { return log_softmax(x, dim_); }

 private:
  int64_t dim_;
};

}  // namespace ingot::nn
