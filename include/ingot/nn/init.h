// Initial values, after torch.nn.init: written into an existing tensor at once. t must be floating:
// Error(DType) otherwise. The functions that use fan-in and fan-out throw Error(Shape) for fewer
// than two dims.
#pragma once
#include <optional>
#include <string_view>

#include "ingot/random.h"
#include "ingot/tensor.h"

namespace ingot::nn::init {

Tensor uniform_(Tensor t, double low = 0, double high = 1,
                const Generator& generator = default_generator(),
                SourceLoc loc = SourceLoc::current());
Tensor normal_(Tensor t, double mean = 0, double std = 1,
               const Generator& generator = default_generator(),
               SourceLoc loc = SourceLoc::current());
Tensor constant_(Tensor t, double value, SourceLoc loc = SourceLoc::current());
Tensor zeros_(Tensor t, SourceLoc loc = SourceLoc::current());
Tensor ones_(Tensor t, SourceLoc loc = SourceLoc::current());
Tensor xavier_uniform_(Tensor t, double gain = 1, const Generator& generator = default_generator(),
                       SourceLoc loc = SourceLoc::current());
Tensor xavier_normal_(Tensor t, double gain = 1, const Generator& generator = default_generator(),
                      SourceLoc loc = SourceLoc::current());

struct KaimingOptions {
  double a = 0;                                  ///< slope of leaky_relu below 0
  std::string_view mode = "fan_in";              ///< or "fan_out"
  std::string_view nonlinearity = "leaky_relu";  ///< as in calculate_gain
};
/// Throw Error(Value) for another mode or nonlinearity.
Tensor kaiming_uniform_(Tensor t, const KaimingOptions& options = {},
                        const Generator& generator = default_generator(),
                        SourceLoc loc = SourceLoc::current());
Tensor kaiming_normal_(Tensor t, const KaimingOptions& options = {},
                       const Generator& generator = default_generator(),
                       SourceLoc loc = SourceLoc::current());
/// Normal, but drawn again where it would be outside [a, b]. Throws Error(Value) unless a < b.
Tensor trunc_normal_(Tensor t, double mean = 0, double std = 1, double a = -2, double b = 2,
                     const Generator& generator = default_generator(),
                     SourceLoc loc = SourceLoc::current());
/// Orthogonal rows (or columns, if there are fewer) of length gain, of t seen as [size(0),
/// rest].
Tensor orthogonal_(Tensor t, double gain = 1, const Generator& generator = default_generator(),
                   SourceLoc loc = SourceLoc::current());
/// The identity matrix. Throws Error(Shape) unless t is a matrix.
Tensor eye_(Tensor t, SourceLoc loc = SourceLoc::current());
/// A convolution that keeps its input: 1 in the middle of each channel's window. Throws
/// Error(Shape) unless t has 3 to 5 dims and size(0) is a multiple of groups.
Tensor dirac_(Tensor t, int64_t groups = 1, SourceLoc loc = SourceLoc::current());
/// Normal with deviation std, and this share of every column 0. Throws Error(Shape) unless t is a
/// matrix.
Tensor sparse_(Tensor t, double sparsity, double std = 0.01,
               const Generator& generator = default_generator(),
               SourceLoc loc = SourceLoc::current());

/// PyTorch's gains: linear, sigmoid, tanh, relu, leaky_relu (param: its slope, 0.01 when not
/// given), selu.
double calculate_gain(std::string_view nonlinearity, std::optional<double> param = {},
                      SourceLoc loc = SourceLoc::current());

}  // namespace ingot::nn::init
