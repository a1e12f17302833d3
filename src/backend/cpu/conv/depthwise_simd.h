// Rows of depthwise convolutions, with SIMD: one channel's plane, padded with zeros, in the cache.
#pragma once
#include <cstdint>

namespace ingot::cpu {

/// Rows of windows over a padded plane: window c of row r has its element (i, j) at
/// x[r * row_step + i * tap_step + column[j] + c].
struct PlaneRows {
  const float* x;
  int64_t row_step, tap_step;
  const int64_t* column;  // one for each of kw
  int kh, kw;
  int64_t rows, n;  // rows of windows, windows in a row
};
/// Elements that may be read past a row's last window.
constexpr int64_t kPlaneBehind = 64;

struct DepthwiseSimd {
  /// out[r * pitch + c] = bias + the sum over the window of w[i * kw + j] times its element; at
  /// least 0 with relu.
  void (*forward)(const PlaneRows& p, const float* w, float bias, bool relu, float* out,
                  int64_t pitch);
  /// sum[i * kw + j] += the sum over all windows of g[r * pitch + c] times their element (i, j).
  /// The n elements of a row of g are followed by kPlaneBehind zeros. `sum` has room for lanes()
  /// partial sums for each element; their total is the result.
  void (*grad_weight)(const PlaneRows& p, const float* g, int64_t pitch, float* sum);
  /// The totals of `count` such groups of partial sums.
  void (*totals)(const float* sum, int64_t count, float* out);
  int64_t (*lanes)();
  /// Element i of x goes to out[(i + first) % s * pitch + (i + first) / s].
  void (*spread)(const float* x, int64_t n, int64_t first, int64_t s, int64_t pitch, float* out);
};
const DepthwiseSimd& depthwise_simd();

}  // namespace ingot::cpu
