// See matvec.h. Bound by memory: full rows of b, several at a time, each element used for all M
// rows of a.
#include "backend/cpu/gemm/matvec.h"

#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/gemm/matvec.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int64_t kAhead = 512;  // elements prefetched ahead of the reads

/// b's rows run along k: dot products, R rows of b at a time.
template <int M, int R>
HWY_INLINE void dots(float* sums, int64_t count, int64_t K, const float* a, int64_t a_m,
                     const float* b, int64_t b_n) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  V acc[M][R];
  for (int m = 0; m < M; ++m)
    for (int r = 0; r < R; ++r) acc[m][r] = hn::Zero(d);
  int64_t k = 0;
  for (; k + N <= K; k += N) {
    V x[M];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) x[m] = hn::LoadU(d, a + m * a_m + k);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      if constexpr (R == 1) __builtin_prefetch(b + k + kAhead, 0, 2);
      const V y = hn::LoadU(d, b + r * b_n + k);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) acc[m][r] = hn::MulAdd(x[m], y, acc[m][r]);
    }
  }
  for (int m = 0; m < M; ++m)
    for (int r = 0; r < R; ++r) {
      float s = hn::GetLane(hn::SumOfLanes(d, acc[m][r]));
      for (int64_t q = k; q < K; ++q) s += a[m * a_m + q] * b[r * b_n + q];
      sums[m * count + r] = s;
    }
}

/// Rows that come from memory are read one after the other: a processor fetches ahead along one
/// stream better than along several. What a cache holds is read several rows at a time, so that
/// sums do not wait for sums.
template <int M>
void dot_rows(float* sums, int64_t count, int64_t K, const float* a, int64_t a_m, const float* b,
              int64_t b_n, bool cached) {
  constexpr int R = M <= 4 ? 4 : 2;
  int64_t n = 0;
  if (cached)
    for (; n + R <= count; n += R) dots<M, R>(sums + n, count, K, a, a_m, b + n * b_n, b_n);
  for (; n < count; ++n) dots<M, 1>(sums + n, count, K, a, a_m, b + n * b_n, b_n);
}

/// b's rows run along n: a row of b times one element of a is added to W vectors of sums kept in
/// registers.
template <int M, int W>
HWY_INLINE void sweep(float* sums, int64_t count, int64_t K, const float* a, int64_t a_m,
                      int64_t a_k, const float* b, int64_t b_k) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  V acc[M][W];
  for (int m = 0; m < M; ++m)
    for (int w = 0; w < W; ++w) acc[m][w] = hn::Zero(d);
  for (int64_t k = 0; k < K; ++k, b += b_k) {
    V x[M];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) x[m] = hn::Set(d, a[m * a_m + k * a_k]);
#pragma GCC unroll 16
    for (int w = 0; w < W; ++w) {
      const V y = hn::LoadU(d, b + w * N);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) acc[m][w] = hn::MulAdd(x[m], y, acc[m][w]);
    }
  }
  for (int m = 0; m < M; ++m)
    for (int w = 0; w < W; ++w) hn::StoreU(acc[m][w], d, sums + m * count + w * N);
}

template <int M>
void sweeps(float* sums, int64_t count, int64_t K, const float* a, int64_t a_m, int64_t a_k,
            const float* b, int64_t b_k) {
  constexpr int W = M == 1 ? 8 : M == 2 ? 6 : M <= 4 ? 4 : 2;
  const int64_t N = static_cast<int64_t>(hn::Lanes(D()));
  int64_t n = 0;
  for (; n + W * N <= count; n += W * N) sweep<M, W>(sums + n, count, K, a, a_m, a_k, b + n, b_k);
  for (; n + N <= count; n += N) sweep<M, 1>(sums + n, count, K, a, a_m, a_k, b + n, b_k);
  for (; n < count; ++n)
    for (int m = 0; m < M; ++m) {
      float s = 0;
      for (int64_t k = 0; k < K; ++k) s += a[m * a_m + k * a_k] * b[k * b_k + n];
      sums[m * count + n] = s;
    }
}

void FewRows(float* sums, int64_t M, int64_t n0, int64_t n1, int64_t K, const float* a, int64_t a_m,
             int64_t a_k, const float* b, int64_t b_k, int64_t b_n, bool cached) {
  const int64_t count = n1 - n0;
  const float* at = b + n0 * b_n;
  auto go = [&]<int rows>() HWY_ATTR {
    if (b_n == 1)
      sweeps<rows>(sums, count, K, a, a_m, a_k, at, b_k);
    else
      dot_rows<rows>(sums, count, K, a, a_m, at, b_n, cached);
  };
  switch (M) {
    case 1:
      return go.template operator()<1>();
    case 2:
      return go.template operator()<2>();
    case 3:
      return go.template operator()<3>();
    case 4:
      return go.template operator()<4>();
    case 5:
      return go.template operator()<5>();
    case 6:
      return go.template operator()<6>();
    case 7:
      return go.template operator()<7>();
    default:
      return go.template operator()<8>();
  }
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {
void few_rows(float* sums, int64_t M, int64_t n0, int64_t n1, int64_t K, const float* a,
              int64_t a_m, int64_t a_k, const float* b, int64_t b_k, int64_t b_n, bool cached) {
  INGOT_DISPATCH(FewRows)(sums, M, n0, n1, K, a, a_m, a_k, b, b_k, b_n, cached);
}
}  // namespace ingot::cpu
#endif
