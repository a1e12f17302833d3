// Convolutions and what follows them, every way one call takes it: the same programs for the plan
// (null device), the fake CUDA machine and a GPU.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ingot/ingot.h"
#include "runtime/backend.h"

namespace ingot::test {

/// Operands of a case, made on the CPU in float32 and moved.
struct ConvInputs {
  Tensor x, w, w1, wg;                  // [2, 8, 6, 6], [12, 8, 3, 3], [12, 8, 1, 1], [12, 4, 3, 3]
  Tensor bias, mean, var, gamma, beta;  // [12]
  Tensor add, x1d, w1d;                 // [2, 12, 6, 6], [2, 8, 9], [12, 8, 3]
  ConvInputs moved(const Device& d, DType t) const;
};
ConvInputs conv_inputs();

struct ConvCase {
  const char* name;
  const char* label;  // how explain names the last call where convolutions are fused
  bool folds;         // a factor goes into the weights
  std::function<Tensor(const ConvInputs&)> run;
};
const std::vector<ConvCase>& conv_cases();

/// First convolutions of images: stride 2, few channels, 16 bits.
struct Stem {
  int64_t channels, size, window, pad;
};
const std::vector<Stem>& stems();
/// How far the result and the weight's gradient in bfloat16 on a device are from float64 on the
/// CPU.
std::pair<double, double> stem_distance(const Stem& s, const Device& d);

/// A call with bias, residual and ReLU straight to a backend, of integers: the largest
/// difference from loops (0). `odd`: the residual has another layout than the result, which
/// cuDNN refuses, so that the convolution is one call and the rest a kernel.
double residual_call_difference(Backend& b, bool odd, bool relu);

}  // namespace ingot::test
