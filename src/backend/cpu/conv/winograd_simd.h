// The small transforms of Winograd's convolution F(2x2, 3x3), with SIMD over channels. A tile is 2
// x 2 results, computed from 4 x 4 pixels by 16 products for each pair of channels where the plain
// sum takes 36.
#pragma once
#include <cstdint>

namespace ingot::cpu {

/// Rows of `n` channels, n a multiple of 16. Frequency f (of 16) of a row is at f * step.
struct WinogradSimd {
  /// 4 x 4 pixels, row by row, to frequencies.
  void (*pixels)(const float* const* pixel, int64_t n, float* v, int64_t step);
  /// The 2 x 2 results' gradients to frequencies.
  void (*gradients)(const float* const* pixel, int64_t n, float* z, int64_t step);
  /// Frequencies to 2 x 2 results, of which those with a nullptr are skipped; bias may be nullptr.
  void (*results)(const float* m, int64_t step, int64_t n, const float* bias, float* const* pixel);
  /// The window's 9 elements, `pitch` apart, to frequencies.
  void (*window)(const float* taps, int64_t pitch, int64_t n, float* u, int64_t step);
  /// Frequencies to the gradients of the window's 9 elements, `pitch` apart.
  void (*window_gradients)(const float* w, int64_t step, int64_t n, float* taps, int64_t pitch);
};
const WinogradSimd& winograd_simd();

}  // namespace ingot::cpu
