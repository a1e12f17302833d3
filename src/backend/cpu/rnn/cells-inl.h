// Runs a cell's formula over the rows of a block. Included by each file of cells, once per
// instruction set.
#include <cstring>

#include "backend/cpu/kernel/math-inl.h"
#include "backend/cpu/rnn/cells.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One row: the block's pointers, moved.
struct CellRow {
  int64_t n;
  const float* in[CellBlock::kIn];
  float* out[CellBlock::kOut];
};

HWY_INLINE V cell_load(const CellRow& r, int k, int64_t j) { return hn::LoadU(F(), r.in[k] + j); }
HWY_INLINE void cell_store(const CellRow& r, int k, int64_t j, V v) {
  if (r.out[k]) hn::StoreU(v, F(), r.out[k] + j);
}

constexpr int64_t kAhead = 3;  // rows prefetched ahead of the reads

/// fn(u) for this many independent vectors, to hide latency.
template <int U, class Fn>
HWY_INLINE void beside(Fn&& fn) {
#pragma GCC unroll 2
  for (int u = 0; u < U; ++u) fn(u);
}

/// Full vectors, then the rest as one separate vector.
template <class Op>
HWY_INLINE void along_row(const CellRow& r) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  int64_t j = 0;
  for (; j + 2 * lanes <= r.n; j += 2 * lanes) Op::template at<2>(r, j);
  if (j + lanes <= r.n) Op::template at<1>(r, j), j += lanes;
  if (j == r.n) return;
  HWY_ALIGN float in[CellBlock::kIn][64] = {};
  HWY_ALIGN float out[CellBlock::kOut][64];
  const auto bytes = static_cast<size_t>(r.n - j) * sizeof(float);
  CellRow rest{lanes, {}, {}};
  for (int k = 0; k < CellBlock::kIn; ++k) {
    if (r.in[k]) std::memcpy(in[k], r.in[k] + j, bytes);
    rest.in[k] = in[k];
  }
  for (int k = 0; k < CellBlock::kOut; ++k) rest.out[k] = r.out[k] ? out[k] : nullptr;
  Op::template at<1>(rest, 0);
  for (int k = 0; k < CellBlock::kOut; ++k)
    if (r.out[k]) std::memcpy(r.out[k] + j, out[k], bytes);
}

template <class Op>
HWY_INLINE void along(const CellBlock& b) {
  CellRow r{b.n, {}, {}};
  int64_t in[CellBlock::kIn], out[CellBlock::kOut];  // strides; 0 where there is no result
  for (int k = 0; k < CellBlock::kIn; ++k) r.in[k] = b.in[k].at, in[k] = b.in[k].stride;
  for (int k = 0; k < CellBlock::kOut; ++k)
    r.out[k] = b.out[k].at, out[k] = r.out[k] ? b.out[k].stride : 0;
  for (int64_t i = 0; i < b.rows; ++i) {
    // Rows that are a page apart conflict in the L1 cache, so they are prefetched one by one.
#pragma GCC unroll 9
    for (int k = 0; k < CellBlock::kIn; ++k)
      for (int64_t j = 0; j < b.n; j += 16) __builtin_prefetch(r.in[k] + kAhead * in[k] + j);
    along_row<Op>(r);
#pragma GCC unroll 9
    for (int k = 0; k < CellBlock::kIn; ++k) r.in[k] += in[k];
#pragma GCC unroll 9
    for (int k = 0; k < CellBlock::kOut; ++k) r.out[k] += out[k];
  }
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
