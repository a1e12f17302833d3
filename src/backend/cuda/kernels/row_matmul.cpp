// A product of few rows in float32: x [M, K] with M up to 4, by weights whose columns are
// contiguous along the inner dim, as a linear layer's are. (16 bits: row_matmul_mma.cpp.)
//
// Launch: kWarps warps a block; kSplit of them share kCols columns of the result, and each lane has
// kDepth pieces of 16 bytes of every column in flight. Partial sums are added through shared memory
// in a fixed order.
// Bound by the bandwidth of the weights, which are read once: all loads are issued up front. The
// weights do not come from the previous kernel, so they are prefetched into L2 while it still runs.
#include "backend/cuda/kernels/row_matmul.h"

#include <algorithm>

namespace ingot::cuda {
namespace {

constexpr int64_t kMostPieces = 8, kMostSplit = 8;

const char* const kText = R"cuda(
template <class C> IG_FN void row_matmul(const Argument<MatmulParams>& p) {
  typedef typename C::Out::Memory TO;
  typedef typename C::A::Memory TA;
  typedef typename C::B::Memory TB;
  typedef typename C::Bias::Memory TBias;
  constexpr int kWarps = C::kWarps, kRows = C::kRows, kCols = C::kCols, kSplit = C::kSplit, kDepth = C::kDepth;
  constexpr int kPer = 16 / (int)sizeof(TB), kStep = kSplit * 32;
  __shared__ float parts[kWarps][kCols * kRows];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, part = warp % kSplit;
  const int N = (int)p.N, pieces = (int)p.K / kPer, first = part * 32 + lane;
  const int col0 = ((int)blockIdx.x * (kWarps / kSplit) + warp / kSplit) * kCols;
  if (p.operands[2] >= 0) {  // an address that moves is not known before the wait
    const TB* soon = (const TB*)p.operands[2] + p.b_offset + first * kPer;
    IG_UNROLL for (int c = 0; c < kCols; ++c)
      IG_UNROLL for (int u = 0; u < kDepth; ++u)
        if (col0 + c < N && first + u * kStep < pieces) ig_prefetch(soon + (col0 + c) * p.b_col + u * kStep * kPer);
  }
  if (C::kBias && p.operands[3] >= 0 && lane < kCols && col0 + lane < N)
    ig_prefetch((const TBias*)p.operands[3] + p.extra_offset + (col0 + lane) * p.extra_stride);
  if (C::kLetsNextStart) ig_go();
  ig_wait();
  TBias bias = 0;
  if (C::kBias && col0 + lane % kCols < N)
    bias = ((const TBias*)ig_pointer(p.operands[3]))[p.extra_offset + (col0 + lane % kCols) * p.extra_stride];
  const TA* a = (const TA*)ig_pointer(p.operands[1]) + p.a_offset + first * kPer;
  const TB* b = (const TB*)ig_pointer(p.operands[2]) + p.b_offset + first * kPer;
  TO* out = (TO*)ig_pointer(p.operands[0]) + p.out_offset;
  IgVec<TB, kPer> w[kCols][kDepth];
  IG_UNROLL for (int c = 0; c < kCols; ++c)
    IG_UNROLL for (int u = 0; u < kDepth; ++u) {
      if (col0 + c < N && first + u * kStep < pieces)
        ig_load<kPer, 2>(w[c][u], b + (col0 + c) * p.b_col + u * kStep * kPer);
      else
        IG_UNROLL for (int k = 0; k < kPer; ++k) w[c][u].e[k] = 0;
    }
  IG_UNROLL for (int m = 0; m < kRows; ++m) {
    float sum[kCols][2];
    IG_UNROLL for (int c = 0; c < kCols; ++c) sum[c][0] = sum[c][1] = 0.0f;
    IG_UNROLL for (int u = 0; u < kDepth; ++u) {
      IgVec<TA, kPer> x;
      if (first + u * kStep < pieces)
        ig_load<kPer, 1>(x, a + m * p.a_row + u * kStep * kPer);
      else
        IG_UNROLL for (int k = 0; k < kPer; ++k) x.e[k] = 0;
      IG_UNROLL for (int k = 0; k < kPer; ++k)
        IG_UNROLL for (int c = 0; c < kCols; ++c) sum[c][k & 1] = fmaf(x.e[k], w[c][u].e[k], sum[c][k & 1]);
    }
    IG_UNROLL for (int c = 0; c < kCols; ++c) {
      float s = sum[c][0] + sum[c][1];
      IG_UNROLL for (int d = 16; d > 0; d >>= 1) s += ig_shuffle(s, d);
      if (lane == 0) parts[warp][m * kCols + c] = s;
    }
  }
  __syncthreads();
  if (part != 0 || lane >= kCols * kRows) return;
  const int row = lane / kCols, col = col0 + lane % kCols;
  if (col >= N) return;
  float sum = 0.0f;
  IG_UNROLL for (int s = 0; s < kSplit; ++s) sum += parts[warp + s][lane];
  TO* at = out + row * p.out_row + col * p.out_col;
  *at = finish<C>(p, sum, at, row, col, [&] { return bias; });
}
)cuda";

/// How the product is cut.
struct Shape {
  int64_t M, N, K, per, split, cols, warps, pieces;
  explicit Shape(const LibrarySpec& spec) {
    const auto& o = spec.operands;
    int rank = o[0].shape.size();
    M = o[0].shape[rank - 2], N = o[0].shape[rank - 1], K = o[1].shape[rank - 1];
    per = 16 / static_cast<int64_t>(size_of(o[2].dtype));
    auto deep = [&] { return (K / per + 32 * split - 1) / (32 * split); };
    // More warps to a column while that leaves a chip of the size of today's room, or a lane has
    // too much.
    for (split = 1;
         split < kMostSplit && ((deep() > 4 && N * split < 4096) || deep() > kMostPieces);)
      split *= 2;
    pieces = deep();
    cols = N * split > 8192 && pieces <= 4 ? 2 : 1;
    warps = std::max<int64_t>(split, N * split <= 2048 ? 4 : 8);
  }
};

}  // namespace

bool fits_row_matmul_f32(const LibrarySpec& spec) {
  const Shape s(spec);
  return s.M <= 4 && s.pieces <= kMostPieces;
}

CudaKernel row_matmul_f32(const LibrarySpec& spec) {
  const MatmulParams p = matmul_params(spec);
  const Shape s(spec);
  CallTraits t = row_matmul_traits(spec);
  t.value("kWarps", s.warps).value("kRows", s.M).value("kCols", s.cols);
  t.value("kSplit", s.split).value("kDepth", s.pieces);
  const int64_t columns = s.warps / s.split * s.cols;
  CudaKernel k = make_kernel("row_matmul", kMatmulEpilogues + t.text() + kText,
                             {{"row_matmul<Call>", (s.N + columns - 1) / columns,
                               static_cast<unsigned>(s.warps) * 32, true}},
                             p);
  k.text.waits = true;
  return k;
}

CallTraits row_matmul_traits(const LibrarySpec& spec) {
  CallTraits t = matmul_traits(spec);
  t.flag("kBUnwritten", spec.unwritten_operands & 4).flag("kLetsNextStart", !spec.holds_back_next);
  return t;
}

bool is_row_matmul(const LibrarySpec& spec) {
  const auto& o = spec.operands;
  int rank = o[0].shape.size();
  for (int d = 0; d < rank - 2; ++d)
    if (o[0].shape[d] != 1) return false;
  DType t = o[1].dtype;
  if (!(is_half(t) || t == DType::Float32) || o[2].dtype != t) return false;
  if (!(o[0].dtype == t || o[0].dtype == DType::Float32)) return false;
  const int64_t M = o[0].shape[rank - 2], N = o[0].shape[rank - 1], K = o[1].shape[rank - 1];
  const int64_t per = 16 / static_cast<int64_t>(size_of(t));
  if (M < 1 || N < 1 || K < per || N > (int64_t{1} << 30)) return false;
  // In pieces of 16 bytes, everywhere.
  bool aligned = K % per == 0 && o[1].stride[rank - 1] == 1 && o[2].stride[rank - 2] == 1;
  aligned = aligned && o[1].offset % per == 0 && o[2].offset % per == 0;
  aligned = aligned && (M == 1 || o[1].stride[rank - 2] % per == 0) &&
            (N == 1 || o[2].stride[rank - 1] % per == 0);
  return aligned && (is_half(t) ? fits_row_matmul_mma(spec) : fits_row_matmul_f32(spec));
}

CudaKernel row_matmul(const LibrarySpec& spec) {
  return is_half(spec.operands[1].dtype) ? row_matmul_mma(spec) : row_matmul_f32(spec);
}

}  // namespace ingot::cuda
