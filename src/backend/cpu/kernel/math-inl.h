// float32 transcendental functions on Highway vectors, two units in the last place or better on the
// whole range, with infinities and NaN as in libm. Included once per instruction set.
#if defined(INGOT_CPU_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_CPU_MATH_INL
#undef INGOT_CPU_MATH_INL
#else
#define INGOT_CPU_MATH_INL
#endif
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using V = hn::Vec<F>;

HWY_INLINE V splat(float x) { return hn::Set(F(), x); }

/// 2^n * p for whole n in [-252, 252].
#if HWY_TARGET == HWY_AVX3
HWY_INLINE V scale(V p, V n) { return V{_mm512_scalef_ps(p.raw, n.raw)}; }
#else
// In two steps, so that subnormal and infinite results come out right.
HWY_INLINE V scale(V p, V whole) {
  const auto n = hn::ConvertTo(I(), whole);
  const auto h = hn::ShiftRight<1>(n), bias = hn::Set(I(), 127);
  const V lo = hn::BitCast(F(), hn::ShiftLeft<23>(hn::Add(h, bias)));
  const V hi = hn::BitCast(F(), hn::ShiftLeft<23>(hn::Add(hn::Sub(n, h), bias)));
  return hn::Mul(hn::Mul(p, lo), hi);
}
#endif

/// exp(r) for |r| <= ln(2)/2.
HWY_INLINE V exp_poly(V r) {
  V p = splat(1.9875691500e-4f);
  p = hn::MulAdd(p, r, splat(1.3981999507e-3f));
  p = hn::MulAdd(p, r, splat(8.3334519073e-3f));
  p = hn::MulAdd(p, r, splat(4.1665795894e-2f));
  p = hn::MulAdd(p, r, splat(1.6666665459e-1f));
  p = hn::MulAdd(p, r, splat(5.0000001201e-1f));
  return hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), splat(1.0f));
}

/// x between lo and hi; NaN stays.
HWY_INLINE V clamp(V x, float lo, float hi) {
  const V r = hn::Min(splat(hi), hn::Max(splat(lo), x));
  // On x86 Max and Min return their second operand when one is NaN.
  if constexpr (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2)
    return r;
  else
    return hn::IfThenElse(hn::IsNaN(x), x, r);
}

HWY_INLINE V vexp(V x) {
  x = clamp(x, -105.0f, 89.0f);
  const V n = hn::Round(hn::Mul(x, splat(1.44269504088896341f)));
  V r = hn::NegMulAdd(n, splat(0.693359375f), x);
  r = hn::NegMulAdd(n, splat(-2.12194440e-4f), r);
  return scale(exp_poly(r), n);
}

HWY_INLINE V vsigmoid(V x) { return hn::Div(splat(1.0f), hn::Add(splat(1.0f), vexp(hn::Neg(x)))); }

HWY_INLINE V vtanh(V x) {
  const V a = hn::Abs(x), z = hn::Mul(x, x);
  V p = splat(-5.70498872745e-3f);
  p = hn::MulAdd(p, z, splat(2.06390887954e-2f));
  p = hn::MulAdd(p, z, splat(-5.37397155531e-2f));
  p = hn::MulAdd(p, z, splat(1.33314422036e-1f));
  p = hn::MulAdd(p, z, splat(-3.33332819422e-1f));
  const V small = hn::MulAdd(hn::Mul(p, z), x, x);
  // Past 9.02 tanh rounds to 1.
  const V t = hn::Min(splat(9.1f), a);
  const V n = hn::Round(hn::Mul(t, splat(2.88539008177792681f)));
  V r = hn::NegMulAdd(n, splat(0.693359375f), hn::Add(t, t));
  r = hn::NegMulAdd(n, splat(-2.12194440e-4f), r);
  const V e = scale(exp_poly(r), n);
  const V big = hn::Sub(splat(1.0f), hn::Div(splat(2.0f), hn::Add(e, splat(1.0f))));
  // NaN compares false and takes the small branch, which propagates it.
  return hn::CopySign(hn::IfThenElse(hn::Gt(a, splat(0.625f)), big, small), x);
}

HWY_INLINE V verf(V x) {
  const V t = hn::Abs(x), s = hn::Mul(x, x);
  V r = hn::MulAdd(splat(-1.72853470e-5f), t, splat(3.83197126e-4f));
  const V u = hn::MulAdd(splat(-3.88396438e-3f), t, splat(2.42546219e-2f));
  r = hn::MulAdd(r, s, u);
  r = hn::MulAdd(r, t, splat(-1.06777877e-1f));
  r = hn::MulAdd(r, t, splat(-6.34846687e-1f));
  r = hn::MulAdd(r, t, splat(-1.28717512e-1f));
  r = hn::MulAdd(r, t, hn::Neg(t));
  const V big = hn::CopySign(hn::Sub(splat(1.0f), vexp(r)), x);
  V q = splat(-5.96761703e-4f);
  q = hn::MulAdd(q, s, splat(4.99119423e-3f));
  q = hn::MulAdd(q, s, splat(-2.67681349e-2f));
  q = hn::MulAdd(q, s, splat(1.12819925e-1f));
  q = hn::MulAdd(q, s, splat(-3.76125336e-1f));
  q = hn::MulAdd(q, s, splat(1.28379166e-1f));
  const V small = hn::MulAdd(q, x, x);
  return hn::IfThenElse(hn::Gt(t, splat(0.927734375f)), big, small);
}

HWY_INLINE V vlog(V x) {
  const I di;
  // Subnormals are scaled up first. m in [sqrt(1/2), sqrt(2)), x = m * 2^e.
  const auto tiny = hn::Lt(x, splat(1.17549435e-38f));
  const V y = hn::IfThenElse(tiny, hn::Mul(x, splat(8388608.0f)), x);
  const auto bits = hn::Sub(hn::BitCast(di, y), hn::Set(di, 0x3f3504f3));
  const auto e = hn::ShiftRight<23>(bits);
  const V m = hn::BitCast(F(), hn::Sub(hn::BitCast(di, y), hn::ShiftLeft<23>(e)));
  const V ef = hn::Sub(hn::ConvertTo(F(), e), hn::IfThenElseZero(tiny, splat(23.0f)));
  const V f = hn::Sub(m, splat(1.0f)), z = hn::Mul(f, f);
  V p = splat(7.0376836292e-2f);
  p = hn::MulAdd(p, f, splat(-1.1514610310e-1f));
  p = hn::MulAdd(p, f, splat(1.1676998740e-1f));
  p = hn::MulAdd(p, f, splat(-1.2420140846e-1f));
  p = hn::MulAdd(p, f, splat(1.4249322787e-1f));
  p = hn::MulAdd(p, f, splat(-1.6668057665e-1f));
  p = hn::MulAdd(p, f, splat(2.0000714765e-1f));
  p = hn::MulAdd(p, f, splat(-2.4999993993e-1f));
  p = hn::MulAdd(p, f, splat(3.3333331174e-1f));
  V r = hn::Mul(hn::Mul(p, z), f);
  r = hn::MulAdd(ef, splat(-2.12194440e-4f), r);
  r = hn::NegMulAdd(z, splat(0.5f), r);
  r = hn::MulAdd(ef, splat(0.693359375f), hn::Add(f, r));
  const V inf = hn::Inf(F());
  r = hn::IfThenElse(hn::Eq(x, inf), inf, r);
  r = hn::IfThenElse(hn::Eq(x, hn::Zero(F())), hn::Neg(inf), r);
  // Below 0 and NaN.
  return hn::IfThenElse(hn::Ge(x, hn::Zero(F())), r, hn::NaN(F()));
}

/// sin (quarter = 0) and cos (quarter = 1) for |x| < 30000.
template <int quarter>
HWY_INLINE V vsincos(V x) {
  const V n = hn::Round(hn::Mul(x, splat(0.63661977236758134f)));
  V r = hn::NegMulAdd(n, splat(1.57079637050628662e0f), x);
  r = hn::NegMulAdd(n, splat(-4.37113900018624283e-8f), r);
  r = hn::NegMulAdd(n, splat(-1.71512489e-15f), r);
  const auto q = hn::Add(hn::ConvertTo(I(), n), hn::Set(I(), quarter));
  const V z = hn::Mul(r, r);
  V s = hn::MulAdd(splat(-1.9515295891e-4f), z, splat(8.3321608736e-3f));
  s = hn::MulAdd(s, z, splat(-1.6666654611e-1f));
  s = hn::MulAdd(hn::Mul(s, z), r, r);
  V c = hn::MulAdd(splat(2.443315711809948e-5f), z, splat(-1.388731625493765e-3f));
  c = hn::MulAdd(c, z, splat(4.166664568298827e-2f));
  c = hn::MulAdd(hn::Mul(c, z), z, hn::NegMulAdd(z, splat(0.5f), splat(1.0f)));
  const auto one = hn::Set(I(), 1);
  const auto use_cos = hn::RebindMask(F(), hn::Eq(hn::And(q, one), one));
  const auto sign = hn::ShiftLeft<30>(hn::And(q, hn::Set(I(), 2)));
  return hn::Xor(hn::IfThenElse(use_cos, c, s), hn::BitCast(F(), sign));
}

HWY_INLINE V vexp2(V x) {
  x = clamp(x, -152.0f, 129.0f);
  const V n = hn::Round(x);
  return scale(exp_poly(hn::Mul(hn::Sub(x, n), splat(0.693147180559945309f))), n);
}

/// exp(x) split as 2^n * (1 + small).
HWY_INLINE V exp_parts(V x, V& small) {
  const V n = hn::Round(hn::Mul(x, splat(1.44269504088896341f)));
  V r = hn::NegMulAdd(n, splat(0.693359375f), x);
  r = hn::NegMulAdd(n, splat(-2.12194440e-4f), r);
  V p = splat(1.9875691500e-4f);
  p = hn::MulAdd(p, r, splat(1.3981999507e-3f));
  p = hn::MulAdd(p, r, splat(8.3334519073e-3f));
  p = hn::MulAdd(p, r, splat(4.1665795894e-2f));
  p = hn::MulAdd(p, r, splat(1.6666665459e-1f));
  p = hn::MulAdd(p, r, splat(5.0000001201e-1f));
  small = hn::MulAdd(p, hn::Mul(r, r), r);
  return n;
}

HWY_INLINE V vexpm1(V x) {
  V small;
  const V n = exp_parts(clamp(x, -40.0f, 40.0f), small);
  const V whole = scale(splat(1.0f), n);
  const V r = hn::MulAdd(whole, small, hn::Sub(whole, splat(1.0f)));
  // Past 2^25 the 1 is lost anyway, and 2^n alone could overflow.
  return hn::IfThenElse(hn::Gt(x, splat(20.0f)), vexp(x), hn::CopySign(r, x));
}

/// exp(x) / 2 for x >= 0, without overflow before the quotient does.
HWY_INLINE V half_exp(V x) {
  V small;
  const V n = exp_parts(clamp(x, 0.0f, 91.0f), small);
  return scale(hn::Add(small, splat(1.0f)), hn::Sub(n, splat(1.0f)));
}
HWY_INLINE V vcosh(V x) {
  const V h = half_exp(hn::Abs(x));
  return hn::Add(h, hn::Div(splat(0.25f), h));
}
HWY_INLINE V vsinh(V x) {
  const V a = hn::Abs(x), z = hn::Mul(x, x);
  V p = hn::MulAdd(splat(2.03721912945e-4f), z, splat(8.33028376239e-3f));
  p = hn::MulAdd(p, z, splat(1.66667160211e-1f));
  const V near = hn::MulAdd(hn::Mul(p, z), x, x), h = half_exp(a);
  const V far = hn::CopySign(hn::Sub(h, hn::Div(splat(0.25f), h)), x);
  return hn::IfThenElse(hn::Gt(a, splat(1.0f)), far, near);
}

/// x = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)): returns log(1 + f), for positive finite x.
HWY_INLINE V log_parts(V x, V& e) {
  const I di;
  const auto tiny = hn::Lt(x, splat(1.17549435e-38f));
  const V y = hn::IfThenElse(tiny, hn::Mul(x, splat(8388608.0f)), x);
  const auto k = hn::ShiftRight<23>(hn::Sub(hn::BitCast(di, y), hn::Set(di, 0x3f3504f3)));
  const V m = hn::BitCast(F(), hn::Sub(hn::BitCast(di, y), hn::ShiftLeft<23>(k)));
  e = hn::Sub(hn::ConvertTo(F(), k), hn::IfThenElseZero(tiny, splat(23.0f)));
  const V f = hn::Sub(m, splat(1.0f)), z = hn::Mul(f, f);
  V p = splat(7.0376836292e-2f);
  p = hn::MulAdd(p, f, splat(-1.1514610310e-1f));
  p = hn::MulAdd(p, f, splat(1.1676998740e-1f));
  p = hn::MulAdd(p, f, splat(-1.2420140846e-1f));
  p = hn::MulAdd(p, f, splat(1.4249322787e-1f));
  p = hn::MulAdd(p, f, splat(-1.6668057665e-1f));
  p = hn::MulAdd(p, f, splat(2.0000714765e-1f));
  p = hn::MulAdd(p, f, splat(-2.4999993993e-1f));
  p = hn::MulAdd(p, f, splat(3.3333331174e-1f));
  return hn::Add(f, hn::NegMulAdd(z, splat(0.5f), hn::Mul(hn::Mul(p, z), f)));
}
/// r where x is positive and finite, elsewhere the logarithm's special values.
HWY_INLINE V log_edges(V x, V r) {
  const V inf = hn::Inf(F());
  r = hn::IfThenElse(hn::Eq(x, inf), inf, r);
  r = hn::IfThenElse(hn::Eq(x, hn::Zero(F())), hn::Neg(inf), r);
  return hn::IfThenElse(hn::Ge(x, hn::Zero(F())), r, hn::NaN(F()));
}
HWY_INLINE V vlog2(V x) {
  V e;
  const V l = log_parts(x, e);
  return log_edges(x, hn::MulAdd(l, splat(1.44269504088896341f), e));
}
HWY_INLINE V vlog10(V x) {
  V e;
  const V l = log_parts(x, e);
  const V low = hn::MulAdd(e, splat(4.60503906e-6f), hn::Mul(l, splat(0.434294481903251828f)));
  return log_edges(x, hn::MulAdd(e, splat(0.301025390625f), low));
}
/// The digits that 1 + x loses are restored by a first-order correction.
HWY_INLINE V vlog1p(V x) {
  const V one = splat(1.0f), u = hn::Add(one, x), lost = hn::Sub(x, hn::Sub(u, one));
  const V r = hn::Add(vlog(u), hn::Div(lost, u));
  const V inf = hn::Inf(F());
  const auto plain = hn::Or(hn::Eq(x, inf), hn::Le(x, splat(-1.0f)));
  return hn::CopySign(hn::IfThenElse(plain, vlog(u), r), x);
}

HWY_INLINE V vatan(V x) {
  const V a = hn::Abs(x), one = splat(1.0f);
  const auto big = hn::Gt(a, splat(2.414213562373095f)),
             middle = hn::AndNot(big, hn::Gt(a, splat(0.4142135623730950f)));
  const V t = hn::IfThenElse(big, hn::Div(splat(-1.0f), a),
                             hn::IfThenElse(middle, hn::Div(hn::Sub(a, one), hn::Add(a, one)), a));
  const V high = hn::IfThenElse(big, splat(1.57079632679489662f),
                                hn::IfThenElseZero(middle, splat(0.785398163397448310f)));
  const V low = hn::IfThenElse(big, splat(-4.37113883e-8f),
                               hn::IfThenElseZero(middle, splat(-2.18556941e-8f)));
  const V z = hn::Mul(t, t);
  V p = hn::MulAdd(splat(8.05374449538e-2f), z, splat(-1.38776856032e-1f));
  p = hn::MulAdd(p, z, splat(1.99777106478e-1f));
  p = hn::MulAdd(p, z, splat(-3.33329491539e-1f));
  const V r = hn::Add(high, hn::Add(hn::MulAdd(hn::Mul(p, z), t, t), low));
  return hn::CopySign(r, x);
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
