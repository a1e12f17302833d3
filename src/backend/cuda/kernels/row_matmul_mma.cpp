// A product of few rows in 16 bits: x [M, K] with M up to 8, by weights whose columns are
// contiguous along the inner dim. (float32: row_matmul.cpp.)
//
// Launch: a block has 16 columns of the result; each of its kWarps warps has a part of the inner
// dim: kChunks chunks of kDepth steps of 32, the steps of a chunk in flight at once. The warps'
// partial sums are added through shared memory in a fixed order. Bound by the bandwidth of the
// weights. The tensor cores multiply, which leaves the lanes nothing to convert and add. Weights
// that nobody writes in this run (kBUnwritten) are loaded while the previous kernel still runs,
// others are prefetched into L2.
//
// As the first operand of a product of 16 x 16 by 16 x 8, lane (g, t) has of columns g and g + 8
// the 16 bytes at 8 t: the order of the inner dim is not the tensor cores', but x is taken in the
// same one. One row of x would leave seven of the eight columns idle, and most lanes without a
// piece of x: there lane (g, t) has x of step g, and each step adds to a column of its own. The
// columns are summed up at the end.
#include <algorithm>

#include "backend/cuda/kernels/row_matmul.h"

namespace ingot::cuda {
namespace {

constexpr int64_t kMostSteps = 8, kMostChunks = 4;

const char* const kText = R"cuda(
template <class C> IG_FN void row_matmul_mma(const Argument<MatmulParams>& p) {
  typedef typename C::Out::Memory TO;
  typedef typename C::A::Memory TA;
  typedef typename C::B::Memory TB;
  typedef typename C::Bias::Memory TBias;
  constexpr int kWarps = C::kWarps, kRows = C::kRows, kCols = 16, kDepth = C::kDepth, kChunks = C::kChunks;
  __shared__ float parts[kWarps][16 * kRows];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int N = (int)p.N, K = (int)p.K, col0 = (int)blockIdx.x * 16, k0 = warp * (kChunks * kDepth * 32) + t * 8;
  const bool known = p.operands[2] >= 0;  // an address that moves is not known before the wait
  const long long first = p.b_offset + (long long)(col0 + g) * p.b_col + k0, eight = 8 * p.b_col;
  const bool in0 = col0 + g < N, in1 = col0 + g + 8 < N;
  IgVec<TB, 8> w[2][kDepth];
#define LOAD(b, c) \
  IG_UNROLL for (int u = 0; u < kDepth; ++u) { \
    const int at = (c) * (kDepth * 32) + u * 32; \
    if (in0 && k0 + at < K) ig_load<8, 2>(w[0][u], (b) + at); \
    else IG_UNROLL for (int i = 0; i < 8; ++i) w[0][u].e[i] = 0; \
    if (in1 && k0 + at < K) ig_load<8, 2>(w[1][u], (b) + eight + at); \
    else IG_UNROLL for (int i = 0; i < 8; ++i) w[1][u].e[i] = 0; \
  }
  if (known) {
    const TB* b = (const TB*)p.operands[2] + first;
    if (C::kBUnwritten) { LOAD(b, 0) }
    if (t == 0)
      IG_UNROLL for (int u = C::kBUnwritten ? kDepth : 0; u < kChunks * kDepth; ++u) {
        if (in0 && k0 + u * 32 < K) ig_prefetch(b + u * 32);
        if (in1 && k0 + u * 32 < K) ig_prefetch(b + eight + u * 32);
      }
  }
  if (C::kBias && p.operands[3] >= 0 && lane < kCols && col0 + lane < N)
    ig_prefetch((const TBias*)p.operands[3] + p.extra_offset + (col0 + lane) * p.extra_stride);
  if (C::kLetsNextStart) ig_go();
  ig_wait();
  TBias bias = 0;
  if (C::kBias && col0 + lane % kCols < N)
    bias = ((const TBias*)ig_pointer(p.operands[3]))[p.extra_offset + (col0 + lane % kCols) * p.extra_stride];
  const TA* a = (const TA*)ig_pointer(p.operands[1]) + p.a_offset;
  const TB* b = (const TB*)ig_pointer(p.operands[2]) + first;
  TO* out = (TO*)ig_pointer(p.operands[0]) + p.out_offset;
  float sum4[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  IG_UNROLL for (int c = 0; c < kChunks; ++c) {
    IgVec<TA, 8> x;
    IG_UNROLL for (int i = 0; i < 8; ++i) x.e[i] = 0;
    const int mine = k0 + (c * kDepth + g) * 32;
    if (kRows == 1 && g < kDepth && mine < K) ig_load<8, 1>(x, a + mine);
    if (c > 0 || !C::kBUnwritten || !known) { LOAD(b, c) }
    IG_UNROLL for (int u = 0; u < kDepth; ++u) {
      const unsigned* w0 = (const unsigned*)w[0][u].e;
      const unsigned* w1 = (const unsigned*)w[1][u].e;
      if (kRows > 1) {
        const int at = k0 + (c * kDepth + u) * 32;
        if (g < kRows && at < K) ig_load<8, 1>(x, a + g * p.a_row + at);
        else IG_UNROLL for (int i = 0; i < 8; ++i) x.e[i] = 0;
      }
      const unsigned* xs = (const unsigned*)x.e;
      const bool on = kRows > 1 || g == u;
      IG_UNROLL for (int i = 0; i < 4; i += 2)
        C::A::mma(sum4, w0[i], w1[i], w0[i + 1], w1[i + 1], on ? xs[i] : 0u, on ? xs[i + 1] : 0u);
    }
  }
#undef LOAD
  if (kRows == 1) {
    float s0 = sum4[0] + sum4[1], s1 = sum4[2] + sum4[3];
    IG_UNROLL for (int d = 1; d < 4; d <<= 1) { s0 += ig_shuffle(s0, d); s1 += ig_shuffle(s1, d); }
    if (t == 0) { parts[warp][g] = s0; parts[warp][g + 8] = s1; }
  } else {
    IG_UNROLL for (int i = 0; i < 4; ++i) {
      const int row = 2 * t + (i & 1);
      if (row < kRows) parts[warp][row * 16 + g + (i >> 1) * 8] = sum4[i];
    }
  }
  __syncthreads();
  IG_UNROLL for (int e0 = 0; e0 < 16 * kRows; e0 += kWarps * 32) {
    const int e = e0 + (int)threadIdx.x, row = e >> 4, col = col0 + (e & 15);
    if (e >= 16 * kRows || col >= N) continue;
    float sum = 0.0f;
    IG_UNROLL for (int s = 0; s < kWarps; ++s) sum += parts[s][e];
    TO* at = out + row * p.out_row + col * p.out_col;
    *at = finish<C>(p, sum, at, row, col, [&] { return bias; });
  }
}
)cuda";

/// How a product in 16 bits is cut: each of `warps` has chunks * depth steps, of which `depth` are
/// under way at once.
struct Steps {
  int64_t warps, chunks = 1, depth;
  explicit Steps(int64_t K) {
    const int64_t steps = (K + 31) / 32;
    warps = steps > 8 * kMostSteps ? 16 : std::min<int64_t>(8, steps);
    const int64_t each = (steps + warps - 1) / warps;
    while ((each + chunks - 1) / chunks > kMostSteps) ++chunks;
    depth = (each + chunks - 1) / chunks;
  }
};

}  // namespace

bool fits_row_matmul_mma(const LibrarySpec& spec) {
  const MatmulParams p = matmul_params(spec);
  return p.M <= 8 && Steps(p.K).chunks <= kMostChunks;
}

CudaKernel row_matmul_mma(const LibrarySpec& spec) {
  const MatmulParams p = matmul_params(spec);
  const Steps steps(p.K);
  CallTraits t = row_matmul_traits(spec);
  t.value("kWarps", steps.warps).value("kRows", p.M);
  t.value("kDepth", steps.depth).value("kChunks", steps.chunks);
  CudaKernel k = make_kernel(
      "row_matmul", kMatmulEpilogues + t.text() + kText,
      {{"row_matmul_mma<Call>", (p.N + 15) / 16, static_cast<unsigned>(steps.warps) * 32, true}},
      p);
  k.text.waits = true;
  return k;
}

}  // namespace ingot::cuda
