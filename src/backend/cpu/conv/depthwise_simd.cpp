// See depthwise_simd.h.
#include "backend/cpu/conv/depthwise_simd.h"

#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/conv/depthwise_simd.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V finished(D d, V v, bool relu) {
  return relu ? hn::IfThenElse(hn::Le(v, hn::Zero(d)), hn::Zero(d), v) : v;
}

// K by K windows, their weights in registers.
template <int K>
void forward_square(const PlaneRows& p, const float* w, float bias, bool relu, float* out,
                    int64_t pitch) {
  const D d;
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  V weight[K * K];
  for (int k = 0; k < K * K; ++k) weight[k] = hn::Set(d, w[k]);
  int64_t column[K];
  for (int j = 0; j < K; ++j) column[j] = p.column[j];
  HWY_ALIGN float rest[HWY_LANES(float)];
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* x = p.x + r * p.row_step;
    float* y = out + r * pitch;
    for (int64_t next = 0; next < p.n; next += N) {
      const int64_t c = next + N <= p.n ? next : std::max<int64_t>(0, p.n - N);
      V sum = hn::Set(d, bias);
      for (int i = 0; i < K; ++i)
        for (int j = 0; j < K; ++j)
          sum =
              hn::MulAdd(hn::LoadU(d, x + i * p.tap_step + column[j] + c), weight[i * K + j], sum);
      sum = finished(d, sum, relu);
      if (p.n >= N) {
        hn::StoreU(sum, d, y + c);
      } else {
        hn::Store(sum, d, rest);
        std::copy_n(rest, p.n, y);
      }
    }
  }
}

// Any windows: four vectors for each weight that is read.
void forward_any(const PlaneRows& p, const float* w, float bias, bool relu, float* out,
                 int64_t pitch) {
  const D d;
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float rest[4 * HWY_LANES(float)];
  for (int64_t r = 0; r < p.rows; ++r)
    for (int64_t c = 0; c < p.n; c += 4 * N) {
      V a = hn::Set(d, bias), b = a, e = a, f = a;
      for (int i = 0; i < p.kh; ++i)
        for (int j = 0; j < p.kw; ++j) {
          const V weight = hn::Set(d, w[i * p.kw + j]);
          const float* x = p.x + r * p.row_step + i * p.tap_step + p.column[j] + c;
          a = hn::MulAdd(hn::LoadU(d, x), weight, a);
          b = hn::MulAdd(hn::LoadU(d, x + N), weight, b);
          e = hn::MulAdd(hn::LoadU(d, x + 2 * N), weight, e);
          f = hn::MulAdd(hn::LoadU(d, x + 3 * N), weight, f);
        }
      float *y = out + r * pitch + c, *to = c + 4 * N <= p.n ? y : rest;
      hn::StoreU(finished(d, a, relu), d, to);
      hn::StoreU(finished(d, b, relu), d, to + N);
      hn::StoreU(finished(d, e, relu), d, to + 2 * N);
      hn::StoreU(finished(d, f, relu), d, to + 3 * N);
      if (to == rest) std::copy_n(rest, p.n - c, y);
    }
}

void Forward(const PlaneRows& p, const float* w, float bias, bool relu, float* out, int64_t pitch) {
  if (p.kh == 3 && p.kw == 3) return forward_square<3>(p, w, bias, relu, out, pitch);
  forward_any(p, w, bias, relu, out, pitch);
}

// KH rows of the window from row i on, all of its KW columns: their sums stay in registers.
template <int KH, int KW>
void grad_rows(const PlaneRows& p, int i, const float* g, int64_t pitch, float* sum) {
  const D d;
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  float* to = sum + i * KW * N;
  V acc[KH * KW];
  int64_t column[KW];
  for (int k = 0; k < KH * KW; ++k) acc[k] = hn::LoadU(d, to + k * N);
  for (int j = 0; j < KW; ++j) column[j] = p.column[j];
  for (int64_t r = 0; r < p.rows; ++r) {
    const float *x = p.x + r * p.row_step + i * p.tap_step, *y = g + r * pitch;
    for (int64_t c = 0; c < p.n; c += N) {
      const V v = hn::LoadU(d, y + c);
      for (int a = 0; a < KH; ++a)
        for (int j = 0; j < KW; ++j)
          acc[a * KW + j] =
              hn::MulAdd(hn::LoadU(d, x + a * p.tap_step + column[j] + c), v, acc[a * KW + j]);
    }
  }
  for (int k = 0; k < KH * KW; ++k) hn::StoreU(acc[k], d, to + k * N);
}

void GradWeight(const PlaneRows& p, const float* g, int64_t pitch, float* sum) {
  if (p.kh == 3 && p.kw == 3) return grad_rows<3, 3>(p, 0, g, pitch, sum);
  const D d;
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  for (int i = 0; i < p.kh; ++i) {
    if (p.kw == 3) {
      grad_rows<1, 3>(p, i, g, pitch, sum);
    } else if (p.kw == 5) {
      grad_rows<1, 5>(p, i, g, pitch, sum);
    } else if (p.kw == 7) {
      grad_rows<1, 7>(p, i, g, pitch, sum);
    } else {
      for (int j = 0; j < p.kw; ++j) {
        PlaneRows one = p;
        one.x += i * p.tap_step;
        one.column += j;
        grad_rows<1, 1>(one, 0, g, pitch, sum + (i * p.kw + j) * N);
      }
    }
  }
}

void Totals(const float* sum, int64_t count, float* out) {
  const D d;
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t k = 0; k < count; ++k)
    out[k] = hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, sum + k * N)));
}
int64_t LaneCount() { return static_cast<int64_t>(hn::Lanes(D())); }

void Spread(const float* x, int64_t n, int64_t first, int64_t s, int64_t pitch, float* out) {
  if (s == 1) {
    std::copy_n(x, n, out + first);
    return;
  }
  int64_t i = 0;
  auto one = [&] {
    out[(i + first) % s * pitch + (i + first) / s] = x[i];
    ++i;
  };
#if HWY_TARGET != HWY_SCALAR
  const D d;
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  if (s == 2) {
    if (first % 2 && n > 0) one();
    for (; i + 2 * N <= n; i += 2 * N) {
      const V a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + N);
      hn::StoreU(hn::ConcatEven(d, b, a), d, out + (i + first) / 2);
      hn::StoreU(hn::ConcatOdd(d, b, a), d, out + pitch + (i + first) / 2);
    }
  }
#endif
  while (i < n) one();
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {

const DepthwiseSimd& depthwise_simd() {
  static const DepthwiseSimd f{INGOT_DISPATCH(Forward), INGOT_DISPATCH(GradWeight),
                               INGOT_DISPATCH(Totals), INGOT_DISPATCH(LaneCount),
                               INGOT_DISPATCH(Spread)};
  return f;
}

}  // namespace ingot::cpu
#endif
