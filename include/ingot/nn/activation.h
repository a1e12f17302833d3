// Activations as modules, for Sequential: each calls the function of that name and throws what it
// throws.
#pragma once
#include "ingot/activation.h"
#include "ingot/elementwise.h"
#include "ingot/nn/module.h"

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
INGOT_ACTIVATION(ReLU6, relu6(x))
INGOT_ACTIVATION(Mish, mish(x))
INGOT_ACTIVATION(Softsign, softsign(x))
INGOT_ACTIVATION(Hardswish, hardswish(x))
INGOT_ACTIVATION(Hardsigmoid, hardsigmoid(x))
INGOT_ACTIVATION(LogSigmoid, logsigmoid(x))
INGOT_ACTIVATION(Tanhshrink, tanhshrink(x))
INGOT_ACTIVATION(SELU, selu(x))
#undef INGOT_ACTIVATION

// Those with one number: the argument is PyTorch's.
#define INGOT_ACTIVATION1(Name, type, a, da, call)     \
  class Name : public Module {                         \
   public:                                             \
    explicit Name(type a da) : a_(a) {}                \
    Tensor forward(Tensor x) override { return call; } \
                                                       \
   private:                                            \
    type a_;                                           \
  };
INGOT_ACTIVATION1(ELU, double, alpha, = 1.0, elu(x, a_))
INGOT_ACTIVATION1(CELU, double, alpha, = 1.0, celu(x, a_))
INGOT_ACTIVATION1(LeakyReLU, double, negative_slope, = 0.01, leaky_relu(x, a_))
INGOT_ACTIVATION1(Hardshrink, double, lambd, = 0.5, hardshrink(x, a_))
INGOT_ACTIVATION1(Softshrink, double, lambd, = 0.5, softshrink(x, a_))
INGOT_ACTIVATION1(GLU, int64_t, dim, = -1, glu(x, a_))
INGOT_ACTIVATION1(Softmin, int64_t, dim, , softmin(x, a_))
INGOT_ACTIVATION1(Softmax, int64_t, dim, , softmax(x, a_))
INGOT_ACTIVATION1(LogSoftmax, int64_t, dim, , log_softmax(x, a_))
#undef INGOT_ACTIVATION1

// Those with two.
#define INGOT_ACTIVATION2(Name, a, da, b, db, call)           \
  class Name : public Module {                                \
   public:                                                    \
    explicit Name(double a da, double b db) : a_(a), b_(b) {} \
    Tensor forward(Tensor x) override { return call; }        \
                                                              \
   private:                                                   \
    double a_, b_;                                            \
  };
INGOT_ACTIVATION2(Hardtanh, min_val, = -1, max_val, = 1, hardtanh(x, a_, b_))
INGOT_ACTIVATION2(Softplus, beta, = 1, threshold, = 20, softplus(x, a_, b_))
/// x where it is above threshold, value elsewhere.
INGOT_ACTIVATION2(Threshold, threshold, , value, , ingot::threshold(x, a_, b_))
/// A slope drawn for each element while training, the mean of the bounds after eval().
INGOT_ACTIVATION2(RReLU, lower, = 1.0 / 8, upper, = 1.0 / 3, rrelu(x, a_, b_, is_training()))
#undef INGOT_ACTIVATION2

struct PReLUOptions {
  int64_t num_parameters = 1;  ///< or one per channel (dim 1)
  double init = 0.25;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
/// leaky_relu with a trained slope.
class PReLU : public Module {
 public:
  explicit PReLU(const PReLUOptions& options = {}, SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;
};
class GELU : public Module {
 public:
  /// approximate: "none" or "tanh"; forward() throws Error(Value) for another word.
  explicit GELU(std::string approximate = "none") : approximate_(std::move(approximate)) {}
  Tensor forward(Tensor x) override;
  std::string description() const override;

 private:
  std::string approximate_;
};

}  // namespace ingot::nn
