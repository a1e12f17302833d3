// See window_rows.h.
#include "backend/cpu/window_rows.h"

#include "backend/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/window_rows.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

#include <cstdint>

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
  // Nothing behind the last element is read: the second load begins one element early.
  const auto a = hn::LoadU(d, p), b = hn::LoadU(d, p + hn::Lanes(d) - 1);
  return hn::ConcatUpperLower(d, hn::ConcatOdd(d, b, b), hn::ConcatEven(d, a, a));
#endif
}

// All of the n elements in blocks of lanes, the last one overlapping; none when they are fewer.
template <int S, bool Relu, bool At, class D>
HWY_INLINE bool best_blocks(D d, const float* const* p, int places, int64_t n, float* best, int32_t* at,
                            const int32_t* number) {
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
      const auto take = hn::And(hn::Or(hn::Gt(v, top), hn::Ne(v, v)), hn::Eq(top, top));
      top = hn::IfThenElse(take, v, top);
      if constexpr (At) where = hn::IfThenElse(hn::RebindMask(di, take), hn::Set(di, number[k]), where);
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
void BestRow(const float* const* p, int places, int64_t s, int64_t n, bool relu, float* best, int32_t* at,
             const int32_t* number) {
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
  const bool done = s == 1 ? sum_vectors<1>(p, places, n, sum) : s == 2 && sum_vectors<2>(p, places, n, sum);
  for (int64_t i = done ? n : 0; i < n; ++i) {
    float v = p[0][i * s];
    for (int k = 1; k < places; ++k) v += p[k][i * s];
    sum[i] = v;
  }
}

// Of windows whose columns are settled: the largest of kw neighbours, and where it was. Of equal ones the
// smallest place counts, of several NaN as well.
template <int S, bool At, class D>
HWY_INLINE bool across_blocks(D d, const float* m, const int32_t* from, int64_t dilation, int64_t kw,
                              int64_t n, float* best, int32_t* at) {
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  const hn::RebindToSigned<D> di;
  if (n < N) return false;
  for (int64_t next = 0; next < n; next += N) {
    const int64_t i = next + N <= n ? next : n - N;
    auto top = load_row<S>(d, m + i * S);
    auto where = hn::Zero(di);
    if constexpr (At) where = load_row<S>(di, from + i * S);
    for (int64_t j = 1; j < kw; ++j) {
      const auto v = load_row<S>(d, m + i * S + j * dilation);
      const auto nan = hn::Ne(v, v), top_nan = hn::Ne(top, top);
      auto take = hn::Or(hn::Gt(v, top), hn::AndNot(top_nan, nan));
      if constexpr (At) {
        const auto k =
            hn::Add(load_row<S>(di, from + i * S + j * dilation), hn::Set(di, static_cast<int32_t>(j)));
        const auto level = hn::Or(hn::Eq(v, top), hn::And(nan, top_nan));
        take = hn::Or(take, hn::And(level, hn::RebindMask(d, hn::Lt(k, where))));
        where = hn::IfThenElse(hn::RebindMask(di, take), k, where);
      }
      top = hn::IfThenElse(take, v, top);
    }
    hn::StoreU(top, d, best + i);
    if constexpr (At) hn::StoreU(where, di, at + i);
  }
  return true;
}

template <int S, bool At>
bool across_vectors(const float* m, const int32_t* from, int64_t dilation, int64_t kw, int64_t n, float* best,
                    int32_t* at) {
  return across_blocks<S, At>(hn::ScalableTag<float>(), m, from, dilation, kw, n, best, at) ||
         across_blocks<S, At>(hn::CappedTag<float, 8>(), m, from, dilation, kw, n, best, at) ||
         across_blocks<S, At>(hn::CappedTag<float, 4>(), m, from, dilation, kw, n, best, at);
}

void AcrossRow(const float* m, const int32_t* from, int64_t s, int64_t dilation, int64_t kw, int64_t n,
               float* best, int32_t* at) {
  bool done = false;
  if (s == 1)
    done = (at ? across_vectors<1, true> : across_vectors<1, false>)(m, from, dilation, kw, n, best, at);
  else if (s == 2)
    done = (at ? across_vectors<2, true> : across_vectors<2, false>)(m, from, dilation, kw, n, best, at);
  for (int64_t i = done ? n : 0; i < n; ++i) {
    float top = m[i * s];
    int32_t where = at ? from[i * s] : 0;
    for (int64_t j = 1; j < kw; ++j) {
      const float v = m[i * s + j * dilation];
      const int32_t k = at ? from[i * s + j * dilation] + static_cast<int32_t>(j) : 0;
      const bool level = v == top || (v != v && top != top);
      const bool take = v > top || (v != v && top == top) || (at && level && k < where);
      top = take ? v : top;
      where = take ? k : where;
    }
    best[i] = top;
    if (at) at[i] = where;
  }
}

// to[e] gets v[e - t] where at[e - t] is k + j, for the j of one parity (S == 2, t = j / 2) or all (S == 1, t
// = j): later j first, so that each sum takes its windows in order.
template <int S, class D>
HWY_INLINE int64_t pick_blocks(D d, const float* v, const uint8_t* at, int32_t k, int64_t first, int64_t last,
                               int64_t begin, int64_t n, float* to) {
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> d8;
  if (n - begin < N) return begin;
  for (int64_t next = begin; next < n; next += N) {
    const int64_t e =
        next + N <= n ? next : n - N;  // the last block adds nothing where the one before it was
    const auto fresh = hn::Gt(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(next - e) - 1));
    auto sum = hn::LoadU(d, to + e);
    for (int64_t j = last; j >= first; j -= S) {
      const int64_t from = e - j / S;
      const auto place = hn::PromoteTo(di, hn::LoadU(d8, at + from));
      const auto hit = hn::And(fresh, hn::Eq(place, hn::Set(di, k + static_cast<int32_t>(j))));
      sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(d, hit), hn::LoadU(d, v + from)));
    }
    hn::StoreU(sum, d, to + e);
  }
  return n;
}
template <int S>
void pick_some(const float* v, const uint8_t* at, int32_t k, int64_t first, int64_t kw, int64_t n,
               float* to) {
  if (first >= kw) return;
  const int64_t last = first + (kw - 1 - first) / S * S, reach = last / S;
  auto edge = [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e)
      for (int64_t j = last; j >= first; j -= S) {
        const int64_t from = e - j / S;
        if (from < 0 || from >= n) continue;
        to[e] += at[from] == k + j ? v[from] : 0.0f;
      }
  };
  edge(0, reach);
  int64_t e = reach;
#if HWY_TARGET != HWY_SCALAR
  e = pick_blocks<S>(hn::ScalableTag<float>(), v, at, k, first, last, e, n, to);
  if (e < n) e = pick_blocks<S>(hn::CappedTag<float, 4>(), v, at, k, first, last, e, n, to);
#endif
  edge(e, n + reach);
}
void PickRow(const float* v, const uint8_t* at, int32_t k, int64_t kw, int64_t s, int64_t n, float* a,
             float* b) {
  if (s == 1) return pick_some<1>(v, at, k, 0, kw, n, a);
  pick_some<2>(v, at, k, 0, kw, n, a);
  pick_some<2>(v, at, k, 1, kw, n, b);
}

void WeaveRow(const float* a, const float* b, int64_t n, float* out) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<float> d;
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  for (; 2 * (i + N) <= n; i += N)
    hn::StoreInterleaved2(hn::LoadU(d, a + i), hn::LoadU(d, b + i), d, out + 2 * i);
#endif
  for (i *= 2; i < n; ++i) out[i] = (i & 1 ? b : a)[i / 2];
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/dispatch.h"

namespace ingot::cpu {

const WindowRows& window_rows() {
  static const WindowRows f{INGOT_DISPATCH(BestRow), INGOT_DISPATCH(SumRow), INGOT_DISPATCH(AcrossRow),
                            INGOT_DISPATCH(PickRow), INGOT_DISPATCH(WeaveRow)};
  return f;
}

}  // namespace ingot::cpu
#endif
