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
#undef INGOT_ACTIVATION

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
