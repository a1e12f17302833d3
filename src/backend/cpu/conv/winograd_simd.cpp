// See winograd_simd.h. With d the 4 x 4 pixels, g the window: results = A' [(G g G') * (B' d B)] A,
// where B' d = (d0 - d2, d1 + d2, d2 - d1, d1 - d3), G g = (g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2)
// / 2, g2) and A' m = (m0 + m1 + m2, m1 - m2 - m3). The gradients are the transposed forms.
#include "backend/cpu/conv/winograd_simd.h"

#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/conv/winograd_simd.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

HWY_INLINE void pixels_1d(const V& a, const V& b, const V& c, const V& e, V* out, int gap) {
  out[0] = hn::Sub(a, c);
  out[gap] = hn::Add(b, c);
  out[2 * gap] = hn::Sub(c, b);
  out[3 * gap] = hn::Sub(b, e);
}

void Pixels(const float* const* pixel, int64_t n, float* v, int64_t step) {
  const D d;
  for (int64_t c = 0; c < n; c += lanes(), v += lanes()) {
    V t[16], u[16];
    for (int j = 0; j < 4; ++j)
      pixels_1d(hn::LoadU(d, pixel[j] + c), hn::LoadU(d, pixel[4 + j] + c),
                hn::LoadU(d, pixel[8 + j] + c), hn::LoadU(d, pixel[12 + j] + c), t + j, 4);
    for (int i = 0; i < 4; ++i)
      pixels_1d(t[4 * i], t[4 * i + 1], t[4 * i + 2], t[4 * i + 3], u + 4 * i, 1);
    for (int f = 0; f < 16; ++f) hn::StoreU(u[f], d, v + f * step);
  }
}

HWY_INLINE void gradients_1d(const V& a, const V& b, V* out, int gap) {
  out[0] = a;
  out[gap] = hn::Add(a, b);
  out[2 * gap] = hn::Sub(a, b);
  out[3 * gap] = hn::Neg(b);
}

void Gradients(const float* const* pixel, int64_t n, float* z, int64_t step) {
  const D d;
  for (int64_t c = 0; c < n; c += lanes(), z += lanes()) {
    V t[8], u[16];
    for (int j = 0; j < 2; ++j)
      gradients_1d(hn::LoadU(d, pixel[j] + c), hn::LoadU(d, pixel[2 + j] + c), t + j, 2);
    for (int i = 0; i < 4; ++i) gradients_1d(t[2 * i], t[2 * i + 1], u + 4 * i, 1);
    for (int f = 0; f < 16; ++f) hn::StoreU(u[f], d, z + f * step);
  }
}

HWY_INLINE void results_1d(const V& a, const V& b, const V& c, const V& e, V* out, int gap) {
  out[0] = hn::Add(a, hn::Add(b, c));
  out[gap] = hn::Sub(hn::Sub(b, c), e);
}

void Results(const float* m, int64_t step, int64_t n, const float* bias, float* const* pixel) {
  const D d;
  for (int64_t c = 0; c < n; c += lanes(), m += lanes()) {
    V t[8], y[4];
    for (int j = 0; j < 4; ++j)
      results_1d(hn::LoadU(d, m + j * step), hn::LoadU(d, m + (4 + j) * step),
                 hn::LoadU(d, m + (8 + j) * step), hn::LoadU(d, m + (12 + j) * step), t + j, 4);
    for (int i = 0; i < 2; ++i)
      results_1d(t[4 * i], t[4 * i + 1], t[4 * i + 2], t[4 * i + 3], y + 2 * i, 1);
    if (bias)
      for (int p = 0; p < 4; ++p) y[p] = hn::Add(y[p], hn::LoadU(d, bias + c));
    for (int p = 0; p < 4; ++p)
      if (pixel[p]) hn::StoreU(y[p], d, pixel[p] + c);
  }
}

HWY_INLINE void window_1d(const V& a, const V& b, const V& c, V* out, int gap) {
  const V half = hn::Set(D(), 0.5f), ends = hn::Mul(half, hn::Add(a, c)), middle = hn::Mul(half, b);
  out[0] = a;
  out[gap] = hn::Add(ends, middle);
  out[2 * gap] = hn::Sub(ends, middle);
  out[3 * gap] = c;
}

void Window(const float* taps, int64_t pitch, int64_t n, float* u, int64_t step) {
  const D d;
  for (int64_t c = 0; c < n; c += lanes(), u += lanes()) {
    V t[12], out[16];
    for (int j = 0; j < 3; ++j)
      window_1d(hn::LoadU(d, taps + j * pitch + c), hn::LoadU(d, taps + (3 + j) * pitch + c),
                hn::LoadU(d, taps + (6 + j) * pitch + c), t + j, 3);
    for (int i = 0; i < 4; ++i) window_1d(t[3 * i], t[3 * i + 1], t[3 * i + 2], out + 4 * i, 1);
    for (int f = 0; f < 16; ++f) hn::StoreU(out[f], d, u + f * step);
  }
}

HWY_INLINE void window_gradients_1d(const V& a, const V& b, const V& c, const V& e, V* out,
                                    int gap) {
  const V half = hn::Set(D(), 0.5f), sum = hn::Mul(half, hn::Add(b, c));
  out[0] = hn::Add(a, sum);
  out[gap] = hn::Mul(half, hn::Sub(b, c));
  out[2 * gap] = hn::Add(sum, e);
}

void WindowGradients(const float* w, int64_t step, int64_t n, float* taps, int64_t pitch) {
  const D d;
  for (int64_t c = 0; c < n; c += lanes(), w += lanes()) {
    V t[12], out[9];
    for (int j = 0; j < 4; ++j)
      window_gradients_1d(hn::LoadU(d, w + j * step), hn::LoadU(d, w + (4 + j) * step),
                          hn::LoadU(d, w + (8 + j) * step), hn::LoadU(d, w + (12 + j) * step),
                          t + j, 4);
    for (int i = 0; i < 3; ++i)
      window_gradients_1d(t[4 * i], t[4 * i + 1], t[4 * i + 2], t[4 * i + 3], out + 3 * i, 1);
    for (int k = 0; k < 9; ++k) hn::StoreU(out[k], d, taps + k * pitch + c);
  }
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {

const WinogradSimd& winograd_simd() {
  static const WinogradSimd f{INGOT_DISPATCH(Pixels), INGOT_DISPATCH(Gradients),
                              INGOT_DISPATCH(Results), INGOT_DISPATCH(Window),
                              INGOT_DISPATCH(WindowGradients)};
  return f;
}

}  // namespace ingot::cpu
#endif
