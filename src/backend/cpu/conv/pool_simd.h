// Rows of pooling windows, with SIMD: every element of a window is one row of float32.
#pragma once
#include <cstdint>

namespace ingot::cpu {

/// Rows of windows that reach one row of their input. Window c of row r adds value[r][c] to column
/// c * s + j if at[r][c] is number[r] + j. Around the windows there are zeros (of value) to be
/// read: kw before them, and after them as many as a block of the result is wide.
struct WindowPicks {
  const float* const* value;
  const int32_t* const* at;
  const int32_t* number;
  int rows;
  int64_t kw, s;  // s is 1 or 2
};
/// How many elements a row of WindowPicks has past its columns.
constexpr int64_t kPickBehind = 64;

struct PoolSimd {
  /// best[i]: the largest of p[k][i * s] over k, or of relu of them; at[i] (where given): number[k]
  /// of the first that is the largest. NaN wins.
  void (*best)(const float* const* p, int places, int64_t s, int64_t n, bool relu, float* best,
               int32_t* at, const int32_t* number);
  void (*sum)(const float* const* p, int places, int64_t s, int64_t n, float* sum);
  /// best[i]: the largest of x[i * s + j * dilation] over j < kw; at[i] (where given): the first
  /// such j. NaN wins.
  void (*across)(const float* x, int64_t s, int64_t dilation, int64_t kw, int64_t n, float* best,
                 int32_t* at);
  /// best[i]: the largest of v[r][i] over r < rows; at[i] (where given): from[r][i] + number[r] of
  /// the first such r. NaN wins.
  void (*stack)(const float* const* v, const int32_t* const* from, const int32_t* number, int rows,
                int64_t n, float* best, int32_t* at);
  /// best[i]: the largest of v[r][2 * i + j] over r < rows and j < kw, which is 2 or 3. NaN wins.
  void (*windows)(const float* const* v, int rows, int64_t kw, int64_t n, float* best);
  /// out[i] = at[i], or 0 where best[i] is -inf: then the window's first element counts, inside or
  /// not.
  void (*bytes)(const float* best, const int32_t* at, int64_t n, uint8_t* out);
  /// One row of max pooling's gradient: out[c] is the sum of what the windows add to column c +
  /// front. With `stream` an aligned row is stored bypassing the caches.
  void (*pick)(const WindowPicks& w, int64_t front, int64_t n, bool stream, float* out);
  void (*widen)(const uint8_t* at, int64_t n, int32_t* out);
};
const PoolSimd& pool_simd();

}  // namespace ingot::cpu
