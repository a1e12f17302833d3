// Row operations on attention's scores, one table per instruction set.
#pragma once
#include <cstdint>

namespace ingot::cpu {

/// Scores s[0, n) of one query, with what is added to each (bias may be null); s[n, width) are
/// masked: their weight becomes 0.
struct ScoreRow {
  float* s;
  int64_t n, width;
  float scale;
  const float* bias;
  int64_t bias_stride;
};

struct AttentionSimd {
  /// s := exp(s * scale + bias - largest so far). Updates `largest` and the `sum` of weights, and
  /// returns the factor for the earlier weights.
  float (*weights_so_far)(const ScoreRow& row, float& largest, float& sum);
  /// s := exp(s * scale + bias - lse), the weights themselves.
  void (*weights)(const ScoreRow& row, float lse);
  /// d := p * (d - delta) * scale.
  void (*gradient)(float* d, const float* p, int64_t n, float delta, float scale);
  /// x := x * by.
  void (*multiply)(float* x, int64_t n, float by);
};
const AttentionSimd& attention_simd();

}  // namespace ingot::cpu
