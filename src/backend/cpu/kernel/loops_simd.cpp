// Hand-written SIMD tile loops: float32 transcendental functions, pairs of arithmetic ops done in
// registers, and the conversions of 16-bit floats.
#include <cmath>
#include <cstring>

#include "backend/cpu/kernel/loop_tables.h"
#include "backend/cpu/support/half.h"
#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernel/loops_simd.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "backend/cpu/kernel/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {

constexpr bool kMasked =
    HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2;  // masked access that cannot fault

HWY_INLINE V load_n(const float* p, size_t n) {
  const F d;
  if constexpr (kMasked) return hn::MaskedLoad(hn::FirstN(d, n), d, p);
  HWY_ALIGN float t[HWY_MAX_BYTES / 4] = {};
  std::memcpy(t, p, n * 4);
  return hn::Load(d, t);
}
HWY_INLINE void store_n(V v, float* p, size_t n) {
  const F d;
  if constexpr (kMasked) return hn::BlendedStore(v, hn::FirstN(d, n), d, p);
  HWY_ALIGN float t[HWY_MAX_BYTES / 4];
  hn::Store(v, d, t);
  std::memcpy(p, t, n * 4);
}

template <class Fn>
void unary(void* out, const void* a, const void*, const void*, int64_t count) {
  const F d;
  const size_t N = hn::Lanes(d), n = static_cast<size_t>(count);
  float* r = static_cast<float*>(out);
  const float* x = static_cast<const float*>(a);
  size_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    const V p = hn::LoadU(d, x + i), q = hn::LoadU(d, x + i + N);
    hn::StoreU(Fn::call(p), d, r + i);
    hn::StoreU(Fn::call(q), d, r + i + N);
  }
  for (; i + N <= n; i += N) hn::StoreU(Fn::call(hn::LoadU(d, x + i)), d, r + i);
  if (i < n) store_n(Fn::call(load_n(x + i, n - i)), r + i, n - i);
}

struct ExpV {
  static HWY_INLINE V call(V x) { return vexp(x); }
};
struct LogV {
  static HWY_INLINE V call(V x) { return vlog(x); }
};
struct TanhV {
  static HWY_INLINE V call(V x) { return vtanh(x); }
};
struct ErfV {
  static HWY_INLINE V call(V x) { return verf(x); }
};
struct Exp2V {
  static HWY_INLINE V call(V x) { return vexp2(x); }
};
struct Expm1V {
  static HWY_INLINE V call(V x) { return vexpm1(x); }
};
struct SinhV {
  static HWY_INLINE V call(V x) { return vsinh(x); }
};
struct CoshV {
  static HWY_INLINE V call(V x) { return vcosh(x); }
};
struct Log2V {
  static HWY_INLINE V call(V x) { return vlog2(x); }
};
struct Log10V {
  static HWY_INLINE V call(V x) { return vlog10(x); }
};
struct Log1pV {
  static HWY_INLINE V call(V x) { return vlog1p(x); }
};
struct AtanV {
  static HWY_INLINE V call(V x) { return vatan(x); }
};
struct SigmoidV {
  static HWY_INLINE V call(V x) { return vsigmoid(x); }
};
struct SqrtV {
  static HWY_INLINE V call(V x) { return hn::Sqrt(x); }
};
struct RsqrtV {
  static HWY_INLINE V call(V x) { return hn::Div(splat(1.0f), hn::Sqrt(x)); }
};

/// Large arguments (and infinities, NaN) go to libm, one by one.
template <int quarter>
struct SinCosV {
  static HWY_INLINE V call(V x) {
    const F d;
    constexpr bool fused =
        HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128;  // the reduction needs it
    if (fused && HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(x), splat(30000.0f)))))
      return vsincos<quarter>(x);
    HWY_ALIGN float t[HWY_MAX_BYTES / 4];
    hn::Store(x, d, t);
    for (size_t i = 0; i < hn::Lanes(d); ++i) t[i] = quarter ? std::cos(t[i]) : std::sin(t[i]);
    return hn::Load(d, t);
  }
};
struct SincV {
  static HWY_INLINE V call(V x) {
    const V t = hn::Mul(x, splat(3.14159265358979324f));
    const V y = hn::Div(SinCosV<0>::call(t), t);
    return hn::IfThenElse(hn::Eq(x, hn::Zero(F())), splat(1.0f), y);
  }
};

// ---- Pairs

template <int op>
HWY_INLINE V arith(V a, V b) {
  if constexpr (op == 0)
    return hn::Add(a, b);
  else if constexpr (op == 1)
    return hn::Sub(a, b);
  else
    return hn::Mul(a, b);
}

/// r = (a inner b) outer c, or c outer (a inner b). Both are rounded: the result is that of the two
/// ops alone.
template <int inner, int outer, bool swapped, int scalars>
void pair_loop(void* out, const void* pa, const void* pb, const void* pc, int64_t count) {
  const F d;
  const size_t N = hn::Lanes(d), n = static_cast<size_t>(count);
  float* r = static_cast<float*>(out);
  const float *a = static_cast<const float*>(pa), *b = static_cast<const float*>(pb),
              *c = static_cast<const float*>(pc);
  const V a0 = splat(*a), b0 = splat(*b), c0 = splat(*c);
  auto f = [&](V x, V y, V z) HWY_ATTR {
    const V t = arith<inner>(x, y);
    return swapped ? arith<outer>(z, t) : arith<outer>(t, z);
  };
  auto at = [&](size_t i) HWY_ATTR {
    return f(scalars & 1 ? a0 : hn::LoadU(d, a + i), scalars & 2 ? b0 : hn::LoadU(d, b + i),
             scalars & 4 ? c0 : hn::LoadU(d, c + i));
  };
  size_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    const V p = at(i), q = at(i + N);
    hn::StoreU(p, d, r + i);
    hn::StoreU(q, d, r + i + N);
  }
  for (; i + N <= n; i += N) hn::StoreU(at(i), d, r + i);
  if (i < n) {
    const size_t k = n - i;
    store_n(f(scalars & 1 ? a0 : load_n(a + i, k), scalars & 2 ? b0 : load_n(b + i, k),
              scalars & 4 ? c0 : load_n(c + i, k)),
            r + i, k);
  }
}

/// The core of softmax: exp(a - b).
template <bool scalar>
void exp_sub_loop(void* out, const void* pa, const void* pb, const void*, int64_t count) {
  const F d;
  const size_t N = hn::Lanes(d), n = static_cast<size_t>(count);
  float* r = static_cast<float*>(out);
  const float *a = static_cast<const float*>(pa), *b = static_cast<const float*>(pb);
  const V b0 = splat(*b);
  auto at = [&](size_t i) HWY_ATTR {
    return vexp(hn::Sub(hn::LoadU(d, a + i), scalar ? b0 : hn::LoadU(d, b + i)));
  };
  size_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    const V p = at(i), q = at(i + N);
    hn::StoreU(p, d, r + i);
    hn::StoreU(q, d, r + i + N);
  }
  for (; i + N <= n; i += N) hn::StoreU(at(i), d, r + i);
  if (i < n)
    store_n(vexp(hn::Sub(load_n(a + i, n - i), scalar ? b0 : load_n(b + i, n - i))), r + i, n - i);
}

template <int inner, int outer, bool swapped>
void add_pair(OpTable& t) {
  TileFn* slot = t.pair[inner][outer][swapped];
  slot[0] = pair_loop<inner, outer, swapped, 0>;
  slot[1] = pair_loop<inner, outer, swapped, 1>;
  slot[2] = pair_loop<inner, outer, swapped, 2>;
  slot[4] = pair_loop<inner, outer, swapped, 4>;
  slot[5] = pair_loop<inner, outer, swapped, 5>;
  slot[6] = pair_loop<inner, outer, swapped, 6>;
}
template <int inner>
void add_pairs(OpTable& t) {
  add_pair<inner, 0, false>(t);
  add_pair<inner, 0, true>(t);
  add_pair<inner, 1, false>(t);
  add_pair<inner, 1, true>(t);
  add_pair<inner, 2, false>(t);
  add_pair<inner, 2, true>(t);
}

// ---- 16-bit floats

HWY_INLINE hn::Vec<hn::RebindToUnsigned<F>> bf16_bits(V x) {
  const hn::RebindToUnsigned<F> du;
  const auto u = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 1));
  const auto rounded = hn::Add(hn::Add(u, hn::Set(du, 0x7fff)), odd);
  const auto quiet = hn::Or(u, hn::Set(du, 0x400000));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
}

struct RoundBf16 {
  static HWY_INLINE V call(V x) {
    const hn::RebindToUnsigned<F> du;
    return hn::BitCast(F(), hn::And(bf16_bits(x), hn::Set(du, 0xffff0000u)));
  }
};

void widen_bf16(void* out, const void* a, const void*, const void*, int64_t n) {
  uint32_t* r = static_cast<uint32_t*>(out);
  const uint16_t* x = static_cast<const uint16_t*>(a);
  INGOT_IVDEP
  for (int64_t i = 0; i < n; ++i) r[i] = static_cast<uint32_t>(x[i]) << 16;
}
void narrow_bf16(void* out, const void* a, const void*, const void*, int64_t n) {
  uint16_t* r = static_cast<uint16_t*>(out);
  const float* x = static_cast<const float*>(a);
  INGOT_IVDEP
  for (int64_t i = 0; i < n; ++i) r[i] = bf16_from_f32(x[i]);
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
struct RoundF16 {
  static HWY_INLINE V call(V x) {
    const hn::Rebind<hwy::float16_t, F> dh;
    return hn::PromoteTo(F(), hn::DemoteTo(dh, x));
  }
};
void widen_f16(void* out, const void* a, const void*, const void*, int64_t n) {
  const F d;
  const hn::Rebind<hwy::float16_t, F> dh;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  float* r = static_cast<float*>(out);
  const auto* x = static_cast<const uint16_t*>(a);
  int64_t i = 0;
  for (; i + N <= n; i += N)
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(x + i))), d,
               r + i);
  for (; i < n; ++i) r[i] = f32_from_f16(x[i]);
}
void narrow_f16(void* out, const void* a, const void*, const void*, int64_t n) {
  const F d;
  const hn::Rebind<hwy::float16_t, F> dh;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  auto* r = static_cast<uint16_t*>(out);
  const float* x = static_cast<const float*>(a);
  int64_t i = 0;
  for (; i + N <= n; i += N)
    hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, x + i)), dh, reinterpret_cast<hwy::float16_t*>(r + i));
  for (; i < n; ++i) r[i] = f16_from_f32(x[i]);
}
void round_f16(void* out, const void* a, const void* b, const void* c, int64_t n) {
  unary<RoundF16>(out, a, b, c, n);
}
#else
void widen_f16(void* out, const void* a, const void*, const void*, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    static_cast<float*>(out)[i] = f32_from_f16(static_cast<const uint16_t*>(a)[i]);
}
void narrow_f16(void* out, const void* a, const void*, const void*, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    static_cast<uint16_t*>(out)[i] = f16_from_f32(static_cast<const float*>(a)[i]);
}
void round_f16(void* out, const void* a, const void*, const void*, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    static_cast<float*>(out)[i] = f32_from_f16(f16_from_f32(static_cast<const float*>(a)[i]));
}
#endif

void FillSimd(OpTable& t) {
  const int f32 = static_cast<int>(TileType::F32);
  auto set = [&](Op op, TileFn fn) { t.fn[static_cast<int>(op)][f32][0] = fn; };
  set(Op::Exp, unary<ExpV>);
  set(Op::Log, unary<LogV>);
  set(Op::Tanh, unary<TanhV>);
  set(Op::Erf, unary<ErfV>);
  set(Op::Sigmoid, unary<SigmoidV>);
  set(Op::Exp2, unary<Exp2V>);
  set(Op::Expm1, unary<Expm1V>);
  set(Op::Sinh, unary<SinhV>);
  set(Op::Cosh, unary<CoshV>);
  set(Op::Log2, unary<Log2V>);
  set(Op::Log10, unary<Log10V>);
  set(Op::Log1p, unary<Log1pV>);
  set(Op::Atan, unary<AtanV>);
  set(Op::Sqrt, unary<SqrtV>);
  set(Op::Rsqrt, unary<RsqrtV>);
  set(Op::Sin, unary<SinCosV<0>>);
  set(Op::Cos, unary<SinCosV<1>>);
  set(Op::Sinc, unary<SincV>);
  add_pairs<0>(t);
  add_pairs<1>(t);
  add_pairs<2>(t);
  t.exp_sub[0] = exp_sub_loop<false>;
  t.exp_sub[kScalarB] = exp_sub_loop<true>;
  t.round[0] = round_f16;
  t.round[1] = unary<RoundBf16>;
  t.widen[0] = widen_f16;
  t.widen[1] = widen_bf16;
  t.narrow[0] = narrow_f16;
  t.narrow[1] = narrow_bf16;
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {
void fill_simd_loops(OpTable& t) { INGOT_DISPATCH(FillSimd)(t); }
}  // namespace ingot::cpu
#endif
