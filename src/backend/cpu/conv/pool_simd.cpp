// See pool_simd.h.
#include "backend/cpu/conv/pool_simd.h"

#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/conv/pool_simd.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// S == 2: every second element.
template <int S, class D>
HWY_INLINE hn::Vec<D> load_row(D d, const hn::TFromD<D>* p) {
#if HWY_TARGET == HWY_SCALAR
  return hn::LoadU(d, p);  // one lane: the first element is the even one
#else
  if constexpr (S == 1) return hn::LoadU(d, p);
  // Nothing past the last element is read: the second load begins one element early.
  const auto a = hn::LoadU(d, p), b = hn::LoadU(d, p + hn::Lanes(d) - 1);
  return hn::ConcatUpperLower(d, hn::ConcatOdd(d, b, b), hn::ConcatEven(d, a, a));
#endif
}

// v is larger than top, or the first NaN. (Highway's Ne is false for NaN.)
template <class V>
HWY_INLINE auto larger(V v, V top) {
  return hn::AndNot(hn::Le(v, top), hn::Eq(top, top));
}

// All of the n elements in blocks of lanes, the last one overlapping; none when they are fewer.
template <int S, bool Relu, bool At, class D>
HWY_INLINE bool best_blocks(D d, const float* const* p, int places, int64_t n, float* best,
                            int32_t* at, const int32_t* number) {
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  const hn::RebindToSigned<D> di;
  if (n < N) return false;
  for (int64_t next = 0; next < n; next += N) {
    const int64_t i = next + N <= n ? next : n - N;
    auto top = load_row<S>(d, p[0] + i * S);
    if constexpr (Relu) top = hn::IfThenElse(hn::Le(top, hn::Zero(d)), hn::Zero(d), top);
    auto where = hn::Set(di, number[0]);
    for (int k = 1; k < places; ++k) {
      auto v = load_row<S>(d, p[k] + i * S);
      if constexpr (Relu) v = hn::IfThenElse(hn::Le(v, hn::Zero(d)), hn::Zero(d), v);
      const auto take = larger(v, top);
      top = hn::IfThenElse(take, v, top);
      if constexpr (At)
        where = hn::IfThenElse(hn::RebindMask(di, take), hn::Set(di, number[k]), where);
    }
    hn::StoreU(top, d, best + i);
    if constexpr (At) hn::StoreU(where, di, at + i);
  }
  return true;
}

template <int S, bool Relu, bool At>
bool best_vectors(const float* const* p, int places, int64_t n, float* best, int32_t* at,
                  const int32_t* number) {
  return best_blocks<S, Relu, At>(hn::ScalableTag<float>(), p, places, n, best, at, number) ||
         best_blocks<S, Relu, At>(hn::CappedTag<float, 8>(), p, places, n, best, at, number) ||
         best_blocks<S, Relu, At>(hn::CappedTag<float, 4>(), p, places, n, best, at, number);
}

/// The largest of p[k][i * s] over k, and which k (number[k]) had it first; NaN wins.
void BestRow(const float* const* p, int places, int64_t s, int64_t n, bool relu, float* best,
             int32_t* at, const int32_t* number) {
  bool done = false;
  if (s == 1)
    done = (relu ? at ? best_vectors<1, true, true> : best_vectors<1, true, false>
            : at ? best_vectors<1, false, true>
                 : best_vectors<1, false, false>)(p, places, n, best, at, number);
  else if (s == 2)
    done = (relu ? at ? best_vectors<2, true, true> : best_vectors<2, true, false>
            : at ? best_vectors<2, false, true>
                 : best_vectors<2, false, false>)(p, places, n, best, at, number);
  for (int64_t i = done ? n : 0; i < n; ++i) {
    float top = p[0][i * s];
    if (relu && top <= 0) top = 0;
    int32_t where = number[0];
    for (int k = 1; k < places; ++k) {
      float v = p[k][i * s];
      if (relu && v <= 0) v = 0;
      const bool take = (v > top || v != v) && top == top;
      top = take ? v : top;
      where = take ? number[k] : where;
    }
    best[i] = top;
    if (at) at[i] = where;
  }
}

template <int S, class D>
HWY_INLINE bool sum_blocks(D d, const float* const* p, int places, int64_t n, float* sum) {
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  if (n < N) return false;
  for (int64_t next = 0; next < n; next += N) {
    const int64_t i = next + N <= n ? next : n - N;
    auto v = load_row<S>(d, p[0] + i * S);
    for (int k = 1; k < places; ++k) v = hn::Add(v, load_row<S>(d, p[k] + i * S));
    hn::StoreU(v, d, sum + i);
  }
  return true;
}
template <int S>
bool sum_vectors(const float* const* p, int places, int64_t n, float* sum) {
  return sum_blocks<S>(hn::ScalableTag<float>(), p, places, n, sum) ||
         sum_blocks<S>(hn::CappedTag<float, 4>(), p, places, n, sum);
}
void SumRow(const float* const* p, int places, int64_t s, int64_t n, float* sum) {
  const bool done =
      s == 1 ? sum_vectors<1>(p, places, n, sum) : s == 2 && sum_vectors<2>(p, places, n, sum);
  for (int64_t i = done ? n : 0; i < n; ++i) {
    float v = p[0][i * s];
    for (int k = 1; k < places; ++k) v += p[k][i * s];
    sum[i] = v;
  }
}

// Element j of windows that begin S apart, at x. Nothing outside the windows' own elements is read.
template <int S, class D>
HWY_INLINE hn::Vec<D> load_column(D d, const float* x, int64_t j, int64_t dilation, int64_t kw) {
  const float* p = x + j * dilation;
#if HWY_TARGET != HWY_SCALAR
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  if constexpr (S == 2) {
    if (j > 0) return hn::ConcatOdd(d, hn::LoadU(d, p + N - 1), hn::LoadU(d, p - 1));
    if (kw > 1) return hn::ConcatEven(d, hn::LoadU(d, p + N), hn::LoadU(d, p));
  }
#endif
  (void)kw;
  return load_row<S>(d, p);
}

// fn(tag, i) over n elements in vectors; the last one overlaps what is done already, by little.
// False when there are too few.
template <class Fn>
HWY_INLINE bool each_vector(int64_t n, Fn fn) {
  const hn::ScalableTag<float> full;
  const hn::CappedTag<float, 8> half;
  const hn::CappedTag<float, 4> quarter;
  const auto N = static_cast<int64_t>(hn::Lanes(full)), H = static_cast<int64_t>(hn::Lanes(half)),
             Q = static_cast<int64_t>(hn::Lanes(quarter));
  if (n < Q) return false;
  int64_t i = 0;
  for (; i + N <= n; i += N) fn(full, i);
  if (n - i > H && n >= N) {
    fn(full, n - N);
  } else if (n - i > Q && n >= H) {
    if (n - i > H) fn(half, i);
    fn(half, n - H);
  } else if (n > i) {
    if (n - i > Q) fn(quarter, i);
    fn(quarter, n - Q);
  }
  return true;
}

template <int S, int KW, bool At>
bool across_vectors(const float* x, int64_t dilation, int64_t width, int64_t n, float* best,
                    int32_t* at) {
  const int64_t kw = KW ? KW : width;
  return each_vector(n, [&](auto d, int64_t i) INGOT_INLINE {
    const hn::RebindToSigned<decltype(d)> di;
    // A few rows ahead: a result's own stores keep the processor from prefetching that far.
    if constexpr (S == 2) {
      __builtin_prefetch(x + i * S + 512);
      __builtin_prefetch(x + i * S + 528);
    }
    auto top = load_column<S>(d, x + i * S, 0, dilation, kw);
    auto where = hn::Zero(di);
    for (int64_t j = 1; j < kw; ++j) {
      const auto v = load_column<S>(d, x + i * S, j, dilation, kw);
      const auto take = larger(v, top);
      top = hn::IfThenElse(take, v, top);
      if constexpr (At)
        where =
            hn::IfThenElse(hn::RebindMask(di, take), hn::Set(di, static_cast<int32_t>(j)), where);
    }
    hn::StoreU(top, d, best + i);
    if constexpr (At) hn::StoreU(where, di, at + i);
  });
}
template <int S, bool At>
bool across_width(const float* x, int64_t dilation, int64_t kw, int64_t n, float* best,
                  int32_t* at) {
  return (kw == 3   ? across_vectors<S, 3, At>
          : kw == 2 ? across_vectors<S, 2, At>
                    : across_vectors<S, 0, At>)(x, dilation, kw, n, best, at);
}

void AcrossRow(const float* x, int64_t s, int64_t dilation, int64_t kw, int64_t n, float* best,
               int32_t* at) {
  bool done = false;
  if (s == 1)
    done = (at ? across_width<1, true> : across_width<1, false>)(x, dilation, kw, n, best, at);
  else if (s == 2)
    done = (at ? across_width<2, true> : across_width<2, false>)(x, dilation, kw, n, best, at);
  for (int64_t i = done ? n : 0; i < n; ++i) {
    float top = x[i * s];
    int32_t where = 0;
    for (int64_t j = 1; j < kw; ++j) {
      const float v = x[i * s + j * dilation];
      const bool take = !(v <= top) && top == top;
      top = take ? v : top;
      where = take ? static_cast<int32_t>(j) : where;
    }
    best[i] = top;
    if (at) at[i] = where;
  }
}

template <bool At>
bool stack_vectors(const float* const* v, const int32_t* const* from, const int32_t* number,
                   int rows, int64_t n, float* best, int32_t* at) {
  return each_vector(n, [&](auto d, int64_t i) INGOT_INLINE {
    const hn::RebindToSigned<decltype(d)> di;
    auto top = hn::LoadU(d, v[0] + i);
    auto where = hn::Zero(di);
    if constexpr (At) where = hn::Add(hn::LoadU(di, from[0] + i), hn::Set(di, number[0]));
    for (int k = 1; k < rows; ++k) {
      const auto x = hn::LoadU(d, v[k] + i);
      const auto take = larger(x, top);
      top = hn::IfThenElse(take, x, top);
      if constexpr (At)
        where = hn::IfThenElse(hn::RebindMask(di, take),
                               hn::Add(hn::LoadU(di, from[k] + i), hn::Set(di, number[k])), where);
    }
    hn::StoreU(top, d, best + i);
    if constexpr (At) hn::StoreU(where, di, at + i);
  });
}
void StackRows(const float* const* v, const int32_t* const* from, const int32_t* number, int rows,
               int64_t n, float* best, int32_t* at) {
  if ((at ? stack_vectors<true> : stack_vectors<false>)(v, from, number, rows, n, best, at)) return;
  for (int64_t i = 0; i < n; ++i) {
    int top = 0;
    for (int k = 1; k < rows; ++k)
      if (!(v[k][i] <= v[top][i]) && v[top][i] == v[top][i]) top = k;
    best[i] = v[top][i];
    if (at) at[i] = from[top][i] + number[top];
  }
}

// Rows first, then columns: values are compared as loaded and deinterleaved once. The processor's
// maximum loses NaN, so the sum of all loaded values shows whether there is one (or two
// infinities): then the window's elements are compared one by one.
#if HWY_TARGET != HWY_SCALAR
template <int KW>
bool windows_vectors(const float* const* v, int rows, int64_t n, float* best) {
  return each_vector(n, [&](auto d, int64_t i) INGOT_INLINE {
    const auto N = static_cast<int64_t>(hn::Lanes(d));
    // Elements 2 i and on, and (for the third column) 2 i + 1 and on.
    auto load = [&](int r, int64_t k) INGOT_INLINE { return hn::LoadU(d, v[r] + 2 * i + k); };
    for (int r = rows > 1 ? rows - 2 : 0; r < rows;
         ++r) {  // a few rows ahead; two of them are new each time
      __builtin_prefetch(v[r] + 2 * i + 512);
      __builtin_prefetch(v[r] + 2 * i + 528);
    }
    auto low = load(0, 0), high = load(0, N), sum = hn::Add(low, high), low3 = low, high3 = high;
    if constexpr (KW == 3) low3 = load(0, 1), high3 = load(0, N + 1), sum = hn::Add(sum, high3);
    for (int r = 1; r < rows; ++r) {
      const auto a = load(r, 0), b = load(r, N);
      low = hn::Max(low, a), high = hn::Max(high, b), sum = hn::Add(sum, hn::Add(a, b));
      if constexpr (KW == 3) {
        const auto e = load(r, N + 1);
        low3 = hn::Max(low3, load(r, 1)), high3 = hn::Max(high3, e), sum = hn::Add(sum, e);
      }
    }
    auto top = hn::Max(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
    if constexpr (KW == 3) top = hn::Max(top, hn::ConcatOdd(d, high3, low3));
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Eq(sum, sum)))) {
      top = load_column<2>(d, v[0] + 2 * i, 0, 1, KW);
      for (int r = 0; r < rows; ++r)
        for (int64_t j = 0; j < KW; ++j) {
          const auto x = load_column<2>(d, v[r] + 2 * i, j, 1, KW);
          top = hn::IfThenElse(larger(x, top), x, top);
        }
    }
    hn::StoreU(top, d, best + i);
  });
}
#endif
void WindowsRow(const float* const* v, int rows, int64_t kw, int64_t n, float* best) {
#if HWY_TARGET != HWY_SCALAR
  if ((kw == 3 ? windows_vectors<3> : windows_vectors<2>)(v, rows, n, best)) return;
#endif
  for (int64_t i = 0; i < n; ++i) {
    float top = v[0][2 * i];
    for (int r = 0; r < rows; ++r)
      for (int64_t j = 0; j < kw; ++j)
        if (const float x = v[r][2 * i + j]; !(x <= top) && top == top) top = x;
    best[i] = top;
  }
}

void BytesRow(const float* best, const int32_t* at, int64_t n, uint8_t* out) {
  constexpr float never = -std::numeric_limits<float>::infinity();
#if HWY_TARGET != HWY_SCALAR
  if (each_vector(n, [&](auto d, int64_t i) INGOT_INLINE {
        const hn::RebindToSigned<decltype(d)> di;
        const hn::Rebind<uint8_t, decltype(d)> d8;
        const auto none = hn::RebindMask(di, hn::Eq(hn::LoadU(d, best + i), hn::Set(d, never)));
        hn::StoreU(hn::DemoteTo(d8, hn::IfThenZeroElse(none, hn::LoadU(di, at + i))), d8, out + i);
      }))
    return;
#endif
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(best[i] == never ? 0 : at[i]);
}

// Elements e.. of the sums of one parity (S == 2) or of all (S == 1): a window that begins t
// elements before e contributes its value if its largest is at position number + S * t + first.
// Windows in order, so later positions first. ROWS and KW are w.rows and w.kw, or 0 where they are
// not known.
template <int S, int ROWS, int KW, class D>
HWY_INLINE hn::Vec<D> picked(D d, const WindowPicks& w, int64_t first, int64_t e) {
  const hn::RebindToSigned<D> di;
  const int rows = ROWS ? ROWS : w.rows;
  const int64_t last = ((KW ? KW : w.kw) - 1 - first + S) / S - 1;
  auto sum = hn::Zero(d);
  for (int r = 0; r < rows; ++r) {
    const float* value = w.value[r] + e;
    const int32_t* at = w.at[r] + e;
    for (int64_t t = last; t >= 0; --t) {
      const auto place = hn::Set(di, w.number[r] + static_cast<int32_t>(first + S * t));
      const auto hit = hn::RebindMask(d, hn::Eq(hn::LoadU(di, at - t), place));
      sum = hn::Add(sum, hn::IfThenElseZero(hit, hn::LoadU(d, value - t)));
    }
  }
  return sum;
}

template <class D>
HWY_INLINE void put(D d, hn::Vec<D> v, float* out, bool stream) {
  if (stream)
    hn::Stream(v, d, out);
  else
    hn::StoreU(v, d, out);
}

// a[0], b[0], a[1], ...: the first half, and the second if `both`.
template <class D>
HWY_INLINE void put_woven(D d, hn::Vec<D> a, hn::Vec<D> b, float* out, bool stream, bool both) {
  const size_t N = hn::Lanes(d);
#if HWY_TARGET == HWY_AVX3
  const auto low = hn::InterleaveLower(d, a, b), high = hn::InterleaveUpper(d, a, b);
  // 128-bit blocks 0 1 0' 1', then 0 0' 1 1'.
  const auto x = hn::ConcatLowerLower(d, high, low), y = hn::ConcatUpperUpper(d, high, low);
  put(d, hn::Vec<D>{_mm512_shuffle_f32x4(x.raw, x.raw, _MM_SHUFFLE(3, 1, 2, 0))}, out, stream);
  if (both)
    put(d, hn::Vec<D>{_mm512_shuffle_f32x4(y.raw, y.raw, _MM_SHUFFLE(3, 1, 2, 0))}, out + N,
        stream);
#elif HWY_TARGET == HWY_SCALAR
  put(d, a, out, stream);
  if (both) put(d, b, out + N, stream);
#elif HWY_TARGET == HWY_AVX2
  const auto low = hn::InterleaveLower(d, a, b), high = hn::InterleaveUpper(d, a, b);
  put(d, hn::ConcatLowerLower(d, high, low), out, stream);
  if (both) put(d, hn::ConcatUpperUpper(d, high, low), out + N, stream);
#else
  HWY_ALIGN float all[2 * HWY_LANES(float)];
  hn::StoreInterleaved2(a, b, d, all);
  put(d, hn::Load(d, all), out, stream);
  if (both) put(d, hn::Load(d, all + N), out + N, stream);
#endif
}

template <int S, int ROWS, int KW>
void pick_row(const WindowPicks& w, int64_t front, int64_t n, bool stream, float* out) {
  const hn::ScalableTag<float> d;
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  const int64_t odd = front % 2;
  HWY_ALIGN float rest[HWY_LANES(float)];
  // One vector of the result (S == 1), or two; what remains is less than one.
  auto block = [&](int64_t c, float* to, bool past, bool both) INGOT_INLINE {
    if constexpr (S == 1) {
      put(d, picked<1, ROWS, KW>(d, w, 0, c + front), to, past);
    } else {  // element c + front and every second one; the elements between them
      const int64_t e = (c + front) / 2;
      const auto a = odd ? picked<2, ROWS, KW>(d, w, 1, e) : picked<2, ROWS, KW>(d, w, 0, e);
      const auto b = odd ? picked<2, ROWS, KW>(d, w, 0, e + 1) : picked<2, ROWS, KW>(d, w, 1, e);
      put_woven(d, a, b, to, past, both);
    }
  };
  int64_t c = 0;
  for (; c + S * N <= n; c += S * N) block(c, out + c, stream, true);
  if (S == 2 && c + N <= n) block(c, out + c, stream, false), c += N;
  if (c == n) return;
  block(c, rest, false, false);
  for (int64_t i = c; i < n; ++i) out[i] = rest[i - c];
}

template <int S, int KW>
void pick_rows(const WindowPicks& w, int64_t front, int64_t n, bool stream, float* out) {
  if (w.rows == 1)
    pick_row<S, 1, KW>(w, front, n, stream, out);
  else if (w.rows == 2)
    pick_row<S, 2, KW>(w, front, n, stream, out);
  else
    pick_row<S, 0, KW>(w, front, n, stream, out);
}

void PickRow(const WindowPicks& w, int64_t front, int64_t n, bool stream, float* out) {
  const size_t bytes = sizeof(float) * hn::Lanes(hn::ScalableTag<float>());
  stream = stream && reinterpret_cast<uintptr_t>(out) % bytes == 0;
  if (w.s == 2)
    (w.kw == 3   ? pick_rows<2, 3>
     : w.kw == 2 ? pick_rows<2, 2>
                 : pick_row<2, 0, 0>)(w, front, n, stream, out);
  else
    (w.kw == 3 ? pick_row<1, 0, 3> : pick_row<1, 0, 0>)(w, front, n, stream, out);
}

void WidenRow(const uint8_t* at, int64_t n, int32_t* out) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  for (; i + N <= n; i += N) hn::StoreU(hn::PromoteTo(d, hn::LoadU(d8, at + i)), d, out + i);
#endif
  for (; i < n; ++i) out[i] = at[i];
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {

const PoolSimd& pool_simd() {
  static const PoolSimd f{INGOT_DISPATCH(BestRow),    INGOT_DISPATCH(SumRow),
                          INGOT_DISPATCH(AcrossRow),  INGOT_DISPATCH(StackRows),
                          INGOT_DISPATCH(WindowsRow), INGOT_DISPATCH(BytesRow),
                          INGOT_DISPATCH(PickRow),    INGOT_DISPATCH(WidenRow)};
  return f;
}

}  // namespace ingot::cpu
#endif
