// Convolutions, pooling, normalisation, resampling and recurrent networks as functions. Names,
// argument order and defaults are PyTorch's; nn.h has the layers. Inputs are [N, C, ...] or,
// without a batch, [C, ...], with 1, 2 or 3 further dims by the function's name.
//
// What is checked everywhere, when the call is made: ranks, channels and windows that do not fit
// throw Error(Shape); a stride, dilation or group count that cannot be Error(Value); types and
// devices as in ops.h.
#pragma once
#include <string_view>

#include "ingot/ops.h"

namespace ingot {

/// One number for every dim, or one for each: 3, {3, 5}.
class PerDim {
 public:
  PerDim() = default;  ///< not given
  template <class T>
  requires std::is_integral_v<T> PerDim(T v)
      : v_{static_cast<int64_t>(v)} {}  // NOLINT(google-explicit-constructor)
  PerDim(std::initializer_list<int64_t> v) : v_(v) {}
  PerDim(const Dims& v) : v_(v) {}  // NOLINT(google-explicit-constructor)
  bool given() const { return !v_.empty(); }
  const Dims& values() const { return v_; }

 private:
  Dims v_;
};

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

// ---- Pooling. stride is kernel_size when not given. padding may be at most half of kernel_size.
// ceil_mode counts a last window that begins inside but ends outside. Integers work in max pooling,
// floating types everywhere.

Tensor max_pool1d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride = {},
                  const PerDim& padding = 0, const PerDim& dilation = 1, bool ceil_mode = false,
                  INGOT_LOC);
Tensor max_pool2d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride = {},
                  const PerDim& padding = 0, const PerDim& dilation = 1, bool ceil_mode = false,
                  INGOT_LOC);
Tensor max_pool3d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride = {},
                  const PerDim& padding = 0, const PerDim& dilation = 1, bool ceil_mode = false,
                  INGOT_LOC);
/// With the int64 index of each largest element (the first of equals) in the flattened dims of its
/// channel.
ValuesIndices max_pool1d_with_indices(const Tensor& input, const PerDim& kernel_size,
                                      const PerDim& stride = {}, const PerDim& padding = 0,
                                      const PerDim& dilation = 1, bool ceil_mode = false,
                                      INGOT_LOC);
ValuesIndices max_pool2d_with_indices(const Tensor& input, const PerDim& kernel_size,
                                      const PerDim& stride = {}, const PerDim& padding = 0,
                                      const PerDim& dilation = 1, bool ceil_mode = false,
                                      INGOT_LOC);
ValuesIndices max_pool3d_with_indices(const Tensor& input, const PerDim& kernel_size,
                                      const PerDim& stride = {}, const PerDim& padding = 0,
                                      const PerDim& dilation = 1, bool ceil_mode = false,
                                      INGOT_LOC);
/// divisor_override divides by that number instead of the window's elements; 0 throws Error(Value).
Tensor avg_pool1d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride = {},
                  const PerDim& padding = 0, bool ceil_mode = false, bool count_include_pad = true,
                  INGOT_LOC);
Tensor avg_pool2d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride = {},
                  const PerDim& padding = 0, bool ceil_mode = false, bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = {}, INGOT_LOC);
Tensor avg_pool3d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride = {},
                  const PerDim& padding = 0, bool ceil_mode = false, bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = {}, INGOT_LOC);
/// (sum of x^p over the window)^(1/p); the largest for p = infinity.
Tensor lp_pool1d(const Tensor& input, double norm_type, const PerDim& kernel_size,
                 const PerDim& stride = {}, bool ceil_mode = false, INGOT_LOC);
Tensor lp_pool2d(const Tensor& input, double norm_type, const PerDim& kernel_size,
                 const PerDim& stride = {}, bool ceil_mode = false, INGOT_LOC);
Tensor lp_pool3d(const Tensor& input, double norm_type, const PerDim& kernel_size,
                 const PerDim& stride = {}, bool ceil_mode = false, INGOT_LOC);
/// Windows that cut each dim into output_size parts, as equal as they can be; -1 keeps a dim's
/// size.
Tensor adaptive_avg_pool1d(const Tensor& input, const PerDim& output_size, INGOT_LOC);
Tensor adaptive_avg_pool2d(const Tensor& input, const PerDim& output_size, INGOT_LOC);
Tensor adaptive_avg_pool3d(const Tensor& input, const PerDim& output_size, INGOT_LOC);
Tensor adaptive_max_pool1d(const Tensor& input, const PerDim& output_size, INGOT_LOC);
Tensor adaptive_max_pool2d(const Tensor& input, const PerDim& output_size, INGOT_LOC);
Tensor adaptive_max_pool3d(const Tensor& input, const PerDim& output_size, INGOT_LOC);

// ---- Normalisation. 16-bit floats compute in float32.

/// Over all dims but dim 1: (x - mean) / sqrt(var + eps) * weight + bias. Training (or without
/// running statistics) takes the batch's mean and variance and, where running statistics are given,
/// updates them by momentum in place (variance with n - 1); otherwise uses the running ones.
/// Statistics, weight and bias are [C]. Throws Error(Value) when training on one value per channel.
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight = {}, const Tensor& bias = {}, bool training = false,
                  double momentum = 0.1, double eps = 1e-5, INGOT_LOC);

/// Over the channels of each of num_groups groups and all further dims; weight and bias [C].
/// Error(Value) unless num_groups divides the channels.
Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5, INGOT_LOC);
/// Over the dims after the channels of each sample. use_input_stats = false uses the running
/// statistics; with both, these are updated by momentum towards the mean over the samples.
Tensor instance_norm(const Tensor& input, const Tensor& running_mean = {},
                     const Tensor& running_var = {}, const Tensor& weight = {},
                     const Tensor& bias = {}, bool use_input_stats = true, double momentum = 0.1,
                     double eps = 1e-5, INGOT_LOC);
/// x / (k + alpha * mean of the squares of `size` neighbouring channels)^beta.
Tensor local_response_norm(const Tensor& input, int64_t size, double alpha = 1e-4,
                           double beta = 0.75, double k = 1, INGOT_LOC);

// ---- Dropout of channels. Of [N, C, ...], or [C, ...] without a batch; alpha_dropout keeps mean
// and variance under SELU.

Tensor dropout1d(const Tensor& input, double p = 0.5, bool training = true,
                 const Generator& generator = default_generator(), INGOT_LOC);
Tensor dropout2d(const Tensor& input, double p = 0.5, bool training = true,
                 const Generator& generator = default_generator(), INGOT_LOC);
Tensor dropout3d(const Tensor& input, double p = 0.5, bool training = true,
                 const Generator& generator = default_generator(), INGOT_LOC);
Tensor alpha_dropout(const Tensor& input, double p = 0.5, bool training = false,
                     const Generator& generator = default_generator(), INGOT_LOC);

// ---- Windows as columns

/// [N, C, H, W] -> [N, C * window, L]: every window as a column, in row-major order.
Tensor unfold(const Tensor& input, const PerDim& kernel_size, const PerDim& dilation = 1,
              const PerDim& padding = 0, const PerDim& stride = 1, INGOT_LOC);
/// The inverse: columns added up where windows overlap, into [N, C, output_size].
Tensor fold(const Tensor& input, const PerDim& output_size, const PerDim& kernel_size,
            const PerDim& dilation = 1, const PerDim& padding = 0, const PerDim& stride = 1,
            INGOT_LOC);

// ---- Resampling

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

// ---- Recurrent networks

struct RnnOptions {
  int64_t num_layers = 1;
  double dropout = 0;  ///< on each layer's output but the last's, when training
  bool training = true;
  bool bidirectional = false;
  bool batch_first = false;        ///< input and output [N, T, ..] instead of [T, N, ..]
  std::vector<int64_t> lengths{};  ///< of each sequence; steps past a sequence's end leave its
                                   ///< state and give zeros
  std::string_view nonlinearity = "tanh";  ///< rnn: or "relu"
};
struct RnnResult {
  Tensor output;  ///< [T, N, H] (2 H when bidirectional), or [N, T, ..]
  Tensor h, c;    ///< [layers * directions, N, H]; c for lstm
};
/// input [T, N, I] (or [T, I] without a batch); h0, c0 [layers * directions, N, H] or undefined for
/// zeros. weights: for each layer and direction weight_ih [G H, I], weight_hh [G H, H] and,
/// with_bias, bias_ih and bias_hh [G H]; G is 4 for lstm (input, forget, cell, output), 3 for gru
/// (reset, update, new) and 1 for rnn. lstm with a fifth weight each, weight_hr [P, H], projects
/// its outputs to P; h0 and weight_hh have P columns then. Error(Shape), Error(Value) where these
/// do not fit.
RnnResult lstm(const Tensor& input, const Tensor& h0, const Tensor& c0,
               const std::vector<Tensor>& weights, bool with_bias = true,
               const RnnOptions& options = {}, INGOT_LOC);
RnnResult gru(const Tensor& input, const Tensor& h0, const std::vector<Tensor>& weights,
              bool with_bias = true, const RnnOptions& options = {}, INGOT_LOC);
RnnResult rnn(const Tensor& input, const Tensor& h0, const std::vector<Tensor>& weights,
              bool with_bias = true, const RnnOptions& options = {}, INGOT_LOC);

}  // namespace ingot
