// See attention_simd.h.
#include "backend/cpu/attention/attention_simd.h"

#include <cmath>
#include <limits>

#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention/attention_simd.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "backend/cpu/kernel/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kNever = -std::numeric_limits<float>::infinity();

/// s := s * scale + bias. Returns the largest (any value when one is NaN: the weights become NaN).
inline float finish_scores(const ScoreRow& r) {
  const F d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V scale_by = splat(r.scale);
  V largest = splat(kNever);
  int64_t j = 0;
  float top = kNever;
  if (!r.bias || r.bias_stride == 1) {
    for (; j + lanes <= r.n; j += lanes) {
      V v = hn::Mul(hn::LoadU(d, r.s + j), scale_by);
      if (r.bias) v = hn::Add(v, hn::LoadU(d, r.bias + j));
      hn::StoreU(v, d, r.s + j);
      largest = hn::Max(largest, v);
    }
    top = hn::GetLane(hn::MaxOfLanes(d, largest));
  }
  for (; j < r.n; ++j) {
    r.s[j] = r.s[j] * r.scale + (r.bias ? r.bias[j * r.bias_stride] : 0.0f);
    top = r.s[j] > top ? r.s[j] : top;
  }
  return top;
}

/// s := exp(s - from), 0 past n; returns their sum.
inline float exponentials(const ScoreRow& r, float from) {
  const F d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V minus = splat(from);
  V sums = hn::Zero(d);
  int64_t j = 0;
  for (; j + lanes <= r.n; j += lanes) {
    const V e = vexp(hn::Sub(hn::LoadU(d, r.s + j), minus));
    hn::StoreU(e, d, r.s + j);
    sums = hn::Add(sums, e);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  if (j < r.n) {
    HWY_ALIGN float rest[64];
    for (int64_t k = 0; k < lanes; ++k) rest[k] = j + k < r.n ? r.s[j + k] : kNever;
    hn::Store(vexp(hn::Sub(hn::Load(d, rest), minus)), d, rest);
    for (int64_t k = 0; j < r.n; ++j, ++k) sum += r.s[j] = rest[k];
  }
  for (; j < r.width; ++j) r.s[j] = 0;
  return sum;
}

float WeightsSoFar(const ScoreRow& r, float& largest, float& sum) {
  const float top = finish_scores(r), next = top > largest ? top : largest;
  if (next == kNever && !std::isnan(sum)) {
    // Nothing is visible yet. (A NaN among the scores takes the other branch.)
    bool seen = false;
    for (int64_t j = 0; j < r.n; ++j) seen |= r.s[j] != kNever;
    if (!seen) {
      for (int64_t j = 0; j < r.width; ++j) r.s[j] = 0;
      return 1;
    }
  }
  const float keep = largest == next ? 1 : std::exp(largest - next);
  sum = sum * keep + exponentials(r, next);
  largest = next;
  return keep;
}

void Weights(const ScoreRow& r, float lse) {
  finish_scores(r);
  exponentials(r, lse);
}

void Gradient(float* to, const float* p, int64_t n, float delta, float by) {
  const F d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V minus = splat(delta), factor = splat(by);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes)
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, p + j), hn::Sub(hn::LoadU(d, to + j), minus)), factor),
               d, to + j);
  for (; j < n; ++j) to[j] = p[j] * (to[j] - delta) * by;
}

void Multiply(float* x, int64_t n, float by) {
  for (int64_t j = 0; j < n; ++j) x[j] *= by;
}

AttentionSimd Rows() { return {WeightsSoFar, Weights, Gradient, Multiply}; }

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {
const AttentionSimd& attention_simd() {
  static const AttentionSimd rows = INGOT_DISPATCH(Rows)();
  return rows;
}
}  // namespace ingot::cpu
#endif
