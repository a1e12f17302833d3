// Convolutions, and their windows as columns. Names, argument order and defaults are PyTorch's.
// Inputs are [N, C, ...] or, without a batch, [C, ...], with 1, 2 or 3 further dims by the
// function's name. Ranks, channels and windows that do not fit throw Error(Shape); a stride,
// dilation or group count that cannot be Error(Value); types and devices as in ops.h.
#pragma once
#include <string>
#include <string_view>

#include "ingot/tensor.h"

namespace ingot {

/// Zeros added on both sides of every dim: a number, one for each dim, "valid" (none) or "same"
/// (the result has the input's size; an odd number of zeros puts one more at the end).
class ConvPadding : public PerDim {
 public:
  using PerDim::PerDim;
  ConvPadding(const PerDim& v) : PerDim(v) {}          // NOLINT(google-explicit-constructor)
  ConvPadding(const char* word) : word_(word) {}       // NOLINT(google-explicit-constructor)
  ConvPadding(std::string_view word) : word_(word) {}  // NOLINT(google-explicit-constructor)
  const std::string& word() const { return word_; }

 private:
  std::string word_;
};

// ---- Convolution. weight [out, in / groups, window...]; bias [out] or undefined. Under
// amp::Autocast operands are cast as those of matmul. "same" needs stride 1: another throws
// Error(Value).

Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
              const PerDim& stride = 1, const ConvPadding& padding = 0, const PerDim& dilation = 1,
              int64_t groups = 1, INGOT_LOC);
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
              const PerDim& stride = 1, const ConvPadding& padding = 0, const PerDim& dilation = 1,
              int64_t groups = 1, INGOT_LOC);
Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
              const PerDim& stride = 1, const ConvPadding& padding = 0, const PerDim& dilation = 1,
              int64_t groups = 1, INGOT_LOC);
/// The gradient of a convolution with respect to its input, as a function: weight [in, out /
/// groups, window...]. The result's size is (size - 1) * stride - 2 * padding + dilation * (window
/// - 1) + output_padding + 1; output_padding must be smaller than stride or dilation, or
/// Error(Value).
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                        const PerDim& stride = 1, const PerDim& padding = 0,
                        const PerDim& output_padding = 0, int64_t groups = 1,
                        const PerDim& dilation = 1, INGOT_LOC);
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                        const PerDim& stride = 1, const PerDim& padding = 0,
                        const PerDim& output_padding = 0, int64_t groups = 1,
                        const PerDim& dilation = 1, INGOT_LOC);
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                        const PerDim& stride = 1, const PerDim& padding = 0,
                        const PerDim& output_padding = 0, int64_t groups = 1,
                        const PerDim& dilation = 1, INGOT_LOC);

// ---- Windows as columns

/// [N, C, H, W] -> [N, C * window, L]: every window as a column, in row-major order.
Tensor unfold(const Tensor& input, const PerDim& kernel_size, const PerDim& dilation = 1,
              const PerDim& padding = 0, const PerDim& stride = 1, INGOT_LOC);
/// The inverse: columns added up where windows overlap, into [N, C, output_size].
Tensor fold(const Tensor& input, const PerDim& output_size, const PerDim& kernel_size,
            const PerDim& dilation = 1, const PerDim& padding = 0, const PerDim& stride = 1,
            INGOT_LOC);

}  // namespace ingot
