// Rows of pooling windows, with SIMD: every place of a window is one row of float32.
#pragma once
#include <cstdint>

namespace ingot::cpu {

struct WindowRows {
  /// best[i]: the largest of p[k][i * s] over k, or of relu of them; at[i] (where given): number[k] of the
  /// first that is the largest. NaN wins.
  void (*best)(const float* const* p, int places, int64_t s, int64_t n, bool relu, float* best, int32_t* at,
               const int32_t* number);
  void (*sum)(const float* const* p, int places, int64_t s, int64_t n, float* sum);
  /// best[i]: the largest of m[i * s + j * dilation] over j < kw; at[i] (where given): from[..] + j of the
  /// one with the smallest such number among equals. NaN wins.
  void (*across)(const float* m, const int32_t* from, int64_t s, int64_t dilation, int64_t kw, int64_t n,
                 float* best, int32_t* at);
  /// The gradient of one row of windows: v[c] is added where at[c] is k + j, to a[c + j] for stride 1; for
  /// stride 2 to a or b (even or odd j) at c + j / 2.
  void (*pick)(const float* v, const uint8_t* at, int32_t k, int64_t kw, int64_t s, int64_t n, float* a,
               float* b);
  /// out[0..n): a[0], b[0], a[1], b[1], ...
  void (*weave)(const float* a, const float* b, int64_t n, float* out);
};
const WindowRows& window_rows();

}  // namespace ingot::cpu
