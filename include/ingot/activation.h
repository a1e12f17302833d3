// Activations (tanh is in elementwise.h). Floating types only, Error(DType) otherwise, but for
// relu, which takes integers too, and sigmoid, which converts them to float32. 16-bit floats
// compute in float32 and are rounded once. Gradients at kinks are PyTorch's.
#pragma once
#include <string_view>

#include "ingot/random.h"
#include "ingot/tensor.h"

namespace ingot {

Tensor relu(const Tensor& x, INGOT_LOC);     ///< x where positive, 0 elsewhere; NaN stays
Tensor sigmoid(const Tensor& x, INGOT_LOC);  ///< 1 / (1 + e^-x)
inline Tensor expit(const Tensor& x, INGOT_LOC) { return sigmoid(x, loc); }
/// "none": x * Phi(x); "tanh": the usual approximation. Another word throws Error(Value).
Tensor gelu(const Tensor& x, std::string_view approximate = "none", INGOT_LOC);
Tensor silu(const Tensor& x, INGOT_LOC);  ///< x * sigmoid(x)
/// log(1 + exp(beta x)) / beta; x itself where beta x is above threshold.
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20, INGOT_LOC);
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01,
                  INGOT_LOC);  ///< x, or slope * x below 0
/// x between min_val and max_val. Error(Value) unless min_val <= max_val.
Tensor hardtanh(const Tensor& x, double min_val = -1, double max_val = 1, INGOT_LOC);
Tensor relu6(const Tensor& x, INGOT_LOC);  ///< hardtanh(x, 0, 6)
/// x where it is positive, weight * x elsewhere; weight has one element, or one per channel (dim
/// 1): Error(Shape) otherwise.
Tensor prelu(const Tensor& x, const Tensor& weight, INGOT_LOC);
/// leaky_relu with a slope drawn from [lower, upper) for each element when training, and their mean
/// otherwise. Error(Value) unless lower <= upper.
Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false,
             const Generator& generator = default_generator(), INGOT_LOC);
Tensor elu(const Tensor& x, double alpha = 1, INGOT_LOC);  ///< x, or alpha * (exp(x) - 1) below 0
Tensor selu(const Tensor& x, INGOT_LOC);  ///< elu with the constants of self-normalising networks
Tensor celu(const Tensor& x, double alpha = 1,
            INGOT_LOC);  ///< x, or alpha * (exp(x / alpha) - 1). Error(Value) on alpha 0
Tensor mish(const Tensor& x, INGOT_LOC);         ///< x * tanh(softplus(x))
Tensor softsign(const Tensor& x, INGOT_LOC);     ///< x / (1 + |x|)
Tensor hardswish(const Tensor& x, INGOT_LOC);    ///< x * relu6(x + 3) / 6
Tensor hardsigmoid(const Tensor& x, INGOT_LOC);  ///< relu6(x + 3) / 6
Tensor logsigmoid(const Tensor& x, INGOT_LOC);   ///< log(sigmoid(x)), stable
Tensor tanhshrink(const Tensor& x, INGOT_LOC);   ///< x - tanh(x)
Tensor hardshrink(const Tensor& x, double lambd = 0.5,
                  INGOT_LOC);  ///< 0 from -lambd to lambd, x elsewhere
/// x moved towards 0 by lambd, 0 from -lambd to lambd. Error(Value) when lambd is negative.
Tensor softshrink(const Tensor& x, double lambd = 0.5, INGOT_LOC);
/// x where it is above threshold, value elsewhere.
Tensor threshold(const Tensor& x, double threshold, double value, INGOT_LOC);

// ---- Gated

/// First half times sigmoid of the second along dim. Error(Shape) when its size is odd.
Tensor glu(const Tensor& x, int64_t dim = -1, INGOT_LOC);
/// silu of the first half times the second along dim. Error(Shape) when its size is odd.
Tensor swiglu(const Tensor& x, int64_t dim = -1, INGOT_LOC);
Tensor swiglu(const Tensor& gate, const Tensor& up, INGOT_LOC);  ///< silu(gate) * up

// ---- Softmax

Tensor softmax(const Tensor& x, int64_t dim,
               INGOT_LOC);  ///< exp(x) / sum(exp(x)) along dim, stable
Tensor log_softmax(const Tensor& x, int64_t dim, INGOT_LOC);  ///< log(softmax(x, dim)), stable
Tensor softmin(const Tensor& x, int64_t dim, INGOT_LOC);      ///< softmax(-x, dim)
/// softmax((x + Gumbel noise) / tau); hard: the largest as one-hot, with the gradient of the soft
/// one. Error(Value) unless tau is positive.
Tensor gumbel_softmax(const Tensor& x, double tau = 1, bool hard = false, int64_t dim = -1,
                      const Generator& generator = default_generator(), INGOT_LOC);

}  // namespace ingot
