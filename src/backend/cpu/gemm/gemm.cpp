// See gemm.h. MR x NR results stay in registers while k runs; B comes from L2, A's panel from L1.
#include "backend/cpu/gemm/gemm.h"

#include <cstring>

#include "backend/cpu/support/half.h"
#include "backend/cpu/support/move.h"
#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/gemm/gemm.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 32 registers: 8 x 2 vectors; 16 registers: 4 x 3.
constexpr int kMR = HWY_TARGET == HWY_AVX2 ? 4 : 8;
constexpr int kNV = HWY_TARGET == HWY_AVX2 ? 3 : 2;

template <class T>
using Tag = hn::CappedTag<T, 64 / sizeof(T)>;

template <class T>
constexpr int nr() {
  return kNV * static_cast<int>(hn::MaxLanes(Tag<T>()));
}

/// The layout of A: rows as in memory; rows side by side, steps along k at equal
/// distances or at listed offsets.
enum class Left { Rows, Steps, Places };

/// acc += A B over k steps from A's step p.
template <class T, int M, Left kLeft>
HWY_INLINE void steps(hn::Vec<Tag<T>> (&acc)[M][kNV], const GemmBlock& g, const T* HWY_RESTRICT a,
                      const T* HWY_RESTRICT b, int64_t p, int64_t end) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  constexpr int N = static_cast<int>(hn::MaxLanes(Tag<T>()));
  const int64_t a_k = g.a_k, b_row = g.b_row;
  const T* row[M];
  for (int i = 0; i < M; ++i) row[i] = a + i * g.a_row;
  for (b += p * b_row; p < end; ++p, b += b_row) {
    const T* at = kLeft == Left::Steps    ? a + p * a_k
                  : kLeft == Left::Places ? a + g.a_at[p]
                                          : nullptr;
    V bv[kNV];
#pragma GCC unroll 8
    for (int v = 0; v < kNV; ++v) bv[v] = hn::LoadU(d, b + v * N);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const V av = hn::Set(d, kLeft == Left::Rows ? row[i][p] : at[i]);
#pragma GCC unroll 8
      for (int v = 0; v < kNV; ++v) acc[i][v] = hn::MulAdd(av, bv[v], acc[i][v]);
    }
  }
}

/// The longest sum in one accumulator: rounding errors grow with its length. Deeper blocks are two
/// sums.
constexpr int64_t kChain = 192;

/// fn(i, v) for all of a tile, each with compile-time indices: accumulators stay in registers.
template <int M, class Fn>
HWY_INLINE void each_of_tile(Fn&& fn) {
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < kNV; ++v) fn(i, v);
}

template <class T, int M, Left kLeft>
HWY_INLINE void tile(const GemmBlock& g, int64_t cols, const T* HWY_RESTRICT a,
                     const T* HWY_RESTRICT b, T* HWY_RESTRICT c, bool add,
                     const T* HWY_RESTRICT bias) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  constexpr int N = static_cast<int>(hn::MaxLanes(Tag<T>())), NR = nr<T>();
  const int64_t k = g.k, ldc = g.c_row;
  V acc[M][kNV];
  each_of_tile<M>([&](int i, int v) HWY_ATTR { acc[i][v] = hn::Zero(d); });
  if (k <= kChain) {
    steps<T, M, kLeft>(acc, g, a, b, 0, k);
  } else {
    HWY_ALIGN T half[M * NR];
    steps<T, M, kLeft>(acc, g, a, b, 0, (k + 1) / 2);
    each_of_tile<M>([&](int i, int v) HWY_ATTR {
      hn::Store(acc[i][v], d, half + i * NR + v * N);
      acc[i][v] = hn::Zero(d);
    });
    steps<T, M, kLeft>(acc, g, a, b, (k + 1) / 2, k);
    each_of_tile<M>([&](int i, int v) HWY_ATTR {
      acc[i][v] = hn::Add(acc[i][v], hn::Load(d, half + i * NR + v * N));
    });
  }
  if (cols == NR) {
    if (add)
      each_of_tile<M>([&](int i, int v) HWY_ATTR {
        acc[i][v] = hn::Add(acc[i][v], hn::LoadU(d, c + i * ldc + v * N));
      });
    if (bias)
      each_of_tile<M>([&](int i, int v)
                          HWY_ATTR { acc[i][v] = hn::Add(acc[i][v], hn::LoadU(d, bias + v * N)); });
    each_of_tile<M>([&](int i, int v) HWY_ATTR { hn::StoreU(acc[i][v], d, c + i * ldc + v * N); });
    return;
  }
  HWY_ALIGN T edge[NR];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kNV; ++v) hn::Store(acc[i][v], d, edge + v * N);
    for (int64_t j = 0; j < cols; ++j) {
      const T sum = add ? c[i * ldc + j] + edge[j] : edge[j];
      c[i * ldc + j] = bias ? sum + bias[j] : sum;
    }
  }
}

template <class T, int M>
void rows_block(const GemmBlock& g, int64_t cols, const T* a, const T* b, T* c, bool add) {
  constexpr int NR = nr<T>();
  for (int64_t j = 0; j < cols; j += NR, b += g.b_panel) {
    const int64_t n = cols - j < NR ? cols - j : NR;
    const T* bias = g.bias ? static_cast<const T*>(g.bias) + j : nullptr;
    if (g.a_row)
      tile<T, M, Left::Rows>(g, n, a, b, c + j, add, bias);
    else if (g.a_at)
      tile<T, M, Left::Places>(g, n, a, b, c + j, add, bias);
    else
      tile<T, M, Left::Steps>(g, n, a, b, c + j, add, bias);
  }
}

template <class T>
void Block(const GemmBlock& g, int64_t rows, int64_t cols, const void* pa, const void* pb, void* pc,
           bool add) {
  const T *a = static_cast<const T*>(pa), *b = static_cast<const T*>(pb);
  T* c = static_cast<T*>(pc);
  switch (rows) {
    case 1:
      return rows_block<T, 1>(g, cols, a, b, c, add);
    case 2:
      return rows_block<T, 2>(g, cols, a, b, c, add);
    case 3:
      return rows_block<T, 3>(g, cols, a, b, c, add);
    case 4:
      return rows_block<T, 4>(g, cols, a, b, c, add);
    default:
      break;
  }
  if constexpr (kMR == 8) {
    switch (rows) {
      case 5:
        return rows_block<T, 5>(g, cols, a, b, c, add);
      case 6:
        return rows_block<T, 6>(g, cols, a, b, c, add);
      case 7:
        return rows_block<T, 7>(g, cols, a, b, c, add);
      default:
        return rows_block<T, 8>(g, cols, a, b, c, add);
    }
  }
}

template <class T>
T to_compute(const void* p, DType t, int64_t at) {
  switch (t) {
    case DType::Float64:
      return static_cast<T>(static_cast<const double*>(p)[at]);
    case DType::Float16:
      return static_cast<T>(f32_from_f16(static_cast<const uint16_t*>(p)[at]));
    case DType::BFloat16:
      return static_cast<T>(f32_from_bf16(static_cast<const uint16_t*>(p)[at]));
    default:
      return static_cast<T>(static_cast<const float*>(p)[at]);
  }
}

/// Panels whose columns are neighbours in memory: k copies of a fixed size.
template <class T, int W>
HWY_INLINE void copy_panel(T* HWY_RESTRICT dst, const T* HWY_RESTRICT src, int64_t ks, int64_t k) {
  for (int64_t p = 0; p < k; ++p) std::memcpy(dst + p * W, src + p * ks, W * sizeof(T));
}

/// Four panels at a time, so that a line of the source is read once.
template <class T, int W>
HWY_INLINE void copy_panels(T* HWY_RESTRICT dst, const T* HWY_RESTRICT src, int64_t ks, int64_t k) {
  for (int64_t p = 0; p < k; ++p)
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j)
      std::memcpy(dst + (j * k + p) * W, src + p * ks + j * W, W * sizeof(T));
}

template <class T>
void Pack(void* out, int width, const void* src, DType type, int64_t ks, int64_t cs, int64_t k,
          int64_t cols) {
  T* dst = static_cast<T*>(out);
  const bool same = type == (sizeof(T) == 4 ? DType::Float32 : DType::Float64);
  int64_t j = 0;
  if (same && cs == 1 && width == kMR)
    for (; j + 4 * kMR <= cols; j += 4 * kMR, dst += 4 * k * kMR)
      copy_panels<T, kMR>(dst, static_cast<const T*>(src) + j, ks, k);
  for (; j < cols; j += width, dst += k * width) {
    const int64_t n = cols - j < width ? cols - j : width;
    if (n < width) std::memset(dst, 0, static_cast<size_t>(k * width) * sizeof(T));
    if (same && cs == 1 && n == width) {
      if (width == kMR)
        copy_panel<T, kMR>(dst, static_cast<const T*>(src) + j, ks, k);
      else
        copy_panel<T, nr<T>()>(dst, static_cast<const T*>(src) + j, ks, k);
    } else if (same) {
      const int64_t e[2] = {k, n}, ds[2] = {width, 1}, ss[2] = {ks, cs};
      copy_box(dst, ds, static_cast<const T*>(src) + j * cs, ss, e, 2, sizeof(T));
    } else {
      for (int64_t p = 0; p < k; ++p)
        for (int64_t c = 0; c < n; ++c)
          dst[p * width + c] = to_compute<T>(src, type, p * ks + (j + c) * cs);
    }
  }
}

GemmOps OpsF32() { return {kMR, nr<float>(), 384, Pack<float>, Block<float>}; }
GemmOps OpsF64() { return {kMR, nr<double>(), 256, Pack<double>, Block<double>}; }

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {
const GemmOps& gemm_f32() {
  static const GemmOps ops = INGOT_DISPATCH(OpsF32)();
  return ops;
}
const GemmOps& gemm_f64() {
  static const GemmOps ops = INGOT_DISPATCH(OpsF64)();
  return ops;
}
}  // namespace ingot::cpu
#endif
