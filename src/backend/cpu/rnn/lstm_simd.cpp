// See lstm_simd.h.
#include "backend/cpu/rnn/lstm_simd.h"

#include <cstring>

#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rnn/lstm_simd.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "backend/cpu/kernel/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One row: the block's pointers, moved.
struct LstmRow {
  int64_t n;
  const float* in[LstmBlock::kIn];
  float* out[LstmBlock::kOut];
};

HWY_INLINE V lstm_load(const LstmRow& r, int k, int64_t j) { return hn::LoadU(F(), r.in[k] + j); }
HWY_INLINE void lstm_store(const LstmRow& r, int k, int64_t j, V v) {
  if (r.out[k]) hn::StoreU(v, F(), r.out[k] + j);
}

constexpr int64_t kAhead = 3;  // rows prefetched ahead of the reads

/// fn(u) for this many independent vectors, to hide latency.
template <int U, class Fn>
HWY_INLINE void beside(Fn&& fn) {
#pragma GCC unroll 2
  for (int u = 0; u < U; ++u) fn(u);
}

struct CellAt {
  template <int U>
  static HWY_INLINE void at(const LstmRow& r, int64_t j) {
    const auto N = static_cast<int64_t>(hn::Lanes(F()));
    V in[U], forget[U], fresh[U], out[U], c[U];
    auto sum = [&](int gate, int u) INGOT_INLINE {
      return hn::Add(lstm_load(r, gate, j + u * N), lstm_load(r, gate + 4, j + u * N));
    };
    beside<U>([&](int u) INGOT_INLINE { in[u] = vsigmoid(sum(0, u)); });
    beside<U>([&](int u) INGOT_INLINE { forget[u] = vsigmoid(sum(1, u)); });
    beside<U>([&](int u) INGOT_INLINE { fresh[u] = vtanh(sum(2, u)); });
    beside<U>([&](int u) INGOT_INLINE { out[u] = vsigmoid(sum(3, u)); });
    beside<U>([&](int u) INGOT_INLINE {
      c[u] = hn::MulAdd(forget[u], lstm_load(r, 8, j + u * N), hn::Mul(in[u], fresh[u]));
      lstm_store(r, 2, j + u * N, c[u]);
      lstm_store(r, 3, j + u * N, in[u]);
      lstm_store(r, 4, j + u * N, forget[u]);
      lstm_store(r, 5, j + u * N, fresh[u]);
      lstm_store(r, 6, j + u * N, out[u]);
    });
    beside<U>([&](int u) INGOT_INLINE {
      const V h = hn::Mul(out[u], vtanh(c[u]));
      lstm_store(r, 0, j + u * N, h);
      lstm_store(r, 1, j + u * N, h);
    });
  }
};

struct BackAt {
  template <int U>
  static HWY_INLINE void at(const LstmRow& r, int64_t j) {
    const auto N = static_cast<int64_t>(hn::Lanes(F()));
    beside<U>([&](int u) INGOT_INLINE { vector(r, j + u * N); });
  }
  static HWY_INLINE void vector(const LstmRow& r, int64_t j) {
    const V one = splat(1.0f);
    const V in = lstm_load(r, 2, j), forget = lstm_load(r, 3, j), fresh = lstm_load(r, 4, j),
            out = lstm_load(r, 5, j);
    const V t = vtanh(lstm_load(r, 6, j)), dh = hn::Add(lstm_load(r, 0, j), lstm_load(r, 1, j));
    const V dc = hn::MulAdd(hn::Mul(dh, out), hn::NegMulAdd(t, t, one), lstm_load(r, 8, j));
    const V d[4] = {hn::Mul(hn::Mul(dc, fresh), hn::Mul(in, hn::Sub(one, in))),
                    hn::Mul(hn::Mul(dc, lstm_load(r, 7, j)), hn::Mul(forget, hn::Sub(one, forget))),
                    hn::Mul(hn::Mul(dc, in), hn::NegMulAdd(fresh, fresh, one)),
                    hn::Mul(hn::Mul(dh, t), hn::Mul(out, hn::Sub(one, out)))};
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) {
      lstm_store(r, g, j, d[g]);
      lstm_store(r, g + 4, j, d[g]);
    }
    lstm_store(r, 8, j, hn::Mul(dc, forget));
  }
};

/// Full vectors, then the rest as one separate vector.
template <class Op>
HWY_INLINE void along_row(const LstmRow& r) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  int64_t j = 0;
  for (; j + 2 * lanes <= r.n; j += 2 * lanes) Op::template at<2>(r, j);
  if (j + lanes <= r.n) Op::template at<1>(r, j), j += lanes;
  if (j == r.n) return;
  HWY_ALIGN float in[LstmBlock::kIn][64] = {};
  HWY_ALIGN float out[LstmBlock::kOut][64];
  const auto bytes = static_cast<size_t>(r.n - j) * sizeof(float);
  LstmRow rest{lanes, {}, {}};
  for (int k = 0; k < LstmBlock::kIn; ++k) {
    if (r.in[k]) std::memcpy(in[k], r.in[k] + j, bytes);
    rest.in[k] = in[k];
  }
  for (int k = 0; k < LstmBlock::kOut; ++k) rest.out[k] = r.out[k] ? out[k] : nullptr;
  Op::template at<1>(rest, 0);
  for (int k = 0; k < LstmBlock::kOut; ++k)
    if (r.out[k]) std::memcpy(r.out[k] + j, out[k], bytes);
}

template <class Op>
HWY_INLINE void along(const LstmBlock& b) {
  LstmRow r{b.n, {}, {}};
  int64_t in[LstmBlock::kIn], out[LstmBlock::kOut];  // strides; 0 where there is no result
  for (int k = 0; k < LstmBlock::kIn; ++k) r.in[k] = b.in[k].at, in[k] = b.in[k].stride;
  for (int k = 0; k < LstmBlock::kOut; ++k)
    r.out[k] = b.out[k].at, out[k] = r.out[k] ? b.out[k].stride : 0;
  for (int64_t i = 0; i < b.rows; ++i) {
    // Rows that are a page apart conflict in the L1 cache, so they are prefetched one by one.
#pragma GCC unroll 9
    for (int k = 0; k < LstmBlock::kIn; ++k)
      for (int64_t j = 0; j < b.n; j += 16) __builtin_prefetch(r.in[k] + kAhead * in[k] + j);
    along_row<Op>(r);
#pragma GCC unroll 9
    for (int k = 0; k < LstmBlock::kIn; ++k) r.in[k] += in[k];
#pragma GCC unroll 9
    for (int k = 0; k < LstmBlock::kOut; ++k) r.out[k] += out[k];
  }
}

void LstmCell(const LstmBlock& b) { along<CellAt>(b); }
void LstmBack(const LstmBlock& b) { along<BackAt>(b); }

LstmSimd LstmTable() { return {LstmCell, LstmBack}; }

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {
const LstmSimd& lstm_simd() {
  static const LstmSimd rows = INGOT_DISPATCH(LstmTable)();
  return rows;
}
}  // namespace ingot::cpu
#endif
