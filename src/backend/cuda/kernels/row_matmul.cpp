// A product of few rows: x [M, K] by weights whose columns lie along memory, as a linear layer's
// do. Such a product waits for the weights and for nothing else, so every one of them is asked for
// at once. The weights do not come from the kernel in front: those that nobody writes in this run
// are read while that one still runs, the others are on their way into the second cache.
//
// In float32, SPLIT warps share COLS columns, and a lane has DEPTH pieces of 16 bytes of each under
// way. In 16 bits the tensor cores multiply, which leaves the lanes nothing to convert and add: a
// block has 16 columns, each of its warps a part of the inner dim.
#include <algorithm>

#include "backend/cuda/kernels/kernels.h"

namespace ingot::cuda {
namespace {

constexpr int64_t kMostRows = 4, kMostPieces = 8, kMostSplit = 8;
constexpr int64_t kMostTensorRows = 8, kMostSteps = 8, kMostChunks = 4;

// n as in kernels/matmul.cpp: 0-3 out, a, b, bias; 5 N, 6 K; 10-12 offsets; 13, 14 out strides; 15
// a's row stride; 18 b's column stride; 19, 20 bias
const char* const kRows = R"cuda(
extern "C" __global__ void __launch_bounds__(WARPS * 32) ENTRY0(const IgParams<60> p) {
  TYPES
  const int PER = 16 / (int)sizeof(TB), STEP = SPLIT * 32;
  __shared__ float parts[WARPS][COLS * ROWS];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, part = warp % SPLIT;
  const int N = (int)p.n[5], pieces = (int)p.n[6] / PER, first = part * 32 + lane;
  const int col0 = ((int)blockIdx.x * (WARPS / SPLIT) + warp / SPLIT) * COLS;
  if (p.n[2] >= 0) {  // an address that moves is not known before the wait
    const TB* soon = (const TB*)p.n[2] + p.n[12] + first * PER;
    IG_UNROLL for (int c = 0; c < COLS; ++c)
      IG_UNROLL for (int u = 0; u < DEPTH; ++u)
        if (col0 + c < N && first + u * STEP < pieces) ig_prefetch(soon + (col0 + c) * p.n[18] + u * STEP * PER);
  }
  BIAS_SOON
  WAIT
  BIAS_NOW
  const TA* a = (const TA*)ig_pointer(p.n[1]) + p.n[11] + first * PER;
  const TB* b = (const TB*)ig_pointer(p.n[2]) + p.n[12] + first * PER;
  TO* out = (TO*)ig_pointer(p.n[0]) + p.n[10];
  IgVec<TB, PER> w[COLS][DEPTH];
  IG_UNROLL for (int c = 0; c < COLS; ++c)
    IG_UNROLL for (int u = 0; u < DEPTH; ++u) {
      if (col0 + c < N && first + u * STEP < pieces)
        ig_load<PER, 2>(w[c][u], b + (col0 + c) * p.n[18] + u * STEP * PER);
      else
        IG_UNROLL for (int k = 0; k < PER; ++k) w[c][u].e[k] = 0;
    }
  IG_UNROLL for (int m = 0; m < ROWS; ++m) {
    float sum[COLS][2];
    IG_UNROLL for (int c = 0; c < COLS; ++c) sum[c][0] = sum[c][1] = 0.0f;
    IG_UNROLL for (int u = 0; u < DEPTH; ++u) {
      IgVec<TA, PER> x;
      if (first + u * STEP < pieces)
        ig_load<PER, 1>(x, a + m * p.n[15] + u * STEP * PER);
      else
        IG_UNROLL for (int k = 0; k < PER; ++k) x.e[k] = 0;
      IG_UNROLL for (int k = 0; k < PER; ++k)
        IG_UNROLL for (int c = 0; c < COLS; ++c) sum[c][k & 1] = fmaf(x.e[k], w[c][u].e[k], sum[c][k & 1]);
    }
    IG_UNROLL for (int c = 0; c < COLS; ++c) {
      float s = sum[c][0] + sum[c][1];
      IG_UNROLL for (int d = 16; d > 0; d >>= 1) s += ig_shuffle(s, d);
      if (lane == 0) parts[warp][m * COLS + c] = s;
    }
  }
  __syncthreads();
  if (part != 0 || lane >= COLS * ROWS) return;
  const int row = lane / COLS, col = col0 + lane % COLS;
  if (col >= N) return;
  ACC sum = 0.0f;
  IG_UNROLL for (int s = 0; s < SPLIT; ++s) sum += parts[warp + s][lane];
  TO* at = out + row * p.n[13] + col * p.n[14];
  FINISH
  *at = DOWN(TC(sum));
}
)cuda";

// The same numbers. A step is 32 of the inner dim. As the first operand of a product of 16 x 16 by
// 16 x 8, lane (g, t) has of columns g and g + 8 the 16 bytes at 8 t: the order of the inner dim is
// not the tensor cores', but x is taken in the same one. One row of x would leave seven of the
// eight columns idle, and most lanes without a piece of x: there lane (g, t) has x of step g, and
// each step adds to a column of its own. The columns are summed up at the end.
const char* const kTensorRows = R"cuda(
extern "C" __global__ void __launch_bounds__(WARPS * 32) ENTRY0(const IgParams<60> p) {
  TYPES
  __shared__ float parts[WARPS][16 * ROWS];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int N = (int)p.n[5], K = (int)p.n[6], col0 = (int)blockIdx.x * 16, k0 = warp * (CHUNKS * DEPTH * 32) + t * 8;
  const bool known = p.n[2] >= 0;  // an address that moves is not known before the wait
  const long long first = p.n[12] + (long long)(col0 + g) * p.n[18] + k0, eight = 8 * p.n[18];
  const bool in0 = col0 + g < N, in1 = col0 + g + 8 < N;
  IgVec<TB, 8> w[2][DEPTH];
#define LOAD(b, c) \
  IG_UNROLL for (int u = 0; u < DEPTH; ++u) { \
    const int at = (c) * (DEPTH * 32) + u * 32; \
    if (in0 && k0 + at < K) ig_load<8, 2>(w[0][u], (b) + at); \
    else IG_UNROLL for (int i = 0; i < 8; ++i) w[0][u].e[i] = 0; \
    if (in1 && k0 + at < K) ig_load<8, 2>(w[1][u], (b) + eight + at); \
    else IG_UNROLL for (int i = 0; i < 8; ++i) w[1][u].e[i] = 0; \
  }
  if (known) {
    const TB* b = (const TB*)p.n[2] + first;
    if (STEADY) { LOAD(b, 0) }
    if (t == 0)
      IG_UNROLL for (int u = STEADY ? DEPTH : 0; u < CHUNKS * DEPTH; ++u) {
        if (in0 && k0 + u * 32 < K) ig_prefetch(b + u * 32);
        if (in1 && k0 + u * 32 < K) ig_prefetch(b + eight + u * 32);
      }
  }
  BIAS_SOON
  WAIT
  BIAS_NOW
  const TA* a = (const TA*)ig_pointer(p.n[1]) + p.n[11];
  const TB* b = (const TB*)ig_pointer(p.n[2]) + first;
  TO* out = (TO*)ig_pointer(p.n[0]) + p.n[10];
  float sum4[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  IG_UNROLL for (int c = 0; c < CHUNKS; ++c) {
    IgVec<TA, 8> x;
    IG_UNROLL for (int i = 0; i < 8; ++i) x.e[i] = 0;
    const int mine = k0 + (c * DEPTH + g) * 32;
    if (ROWS == 1 && g < DEPTH && mine < K) ig_load<8, 1>(x, a + mine);
    if (c > 0 || !STEADY || !known) { LOAD(b, c) }
    IG_UNROLL for (int u = 0; u < DEPTH; ++u) {
      const unsigned* w0 = (const unsigned*)w[0][u].e;
      const unsigned* w1 = (const unsigned*)w[1][u].e;
      if (ROWS > 1) {
        const int at = k0 + (c * DEPTH + u) * 32;
        if (g < ROWS && at < K) ig_load<8, 1>(x, a + g * p.n[15] + at);
        else IG_UNROLL for (int i = 0; i < 8; ++i) x.e[i] = 0;
      }
      const unsigned* xs = (const unsigned*)x.e;
      const bool on = ROWS > 1 || g == u;
      IG_UNROLL for (int i = 0; i < 4; i += 2)
        MMA(sum4, w0[i], w1[i], w0[i + 1], w1[i + 1], on ? xs[i] : 0u, on ? xs[i + 1] : 0u);
    }
  }
#undef LOAD
  if (ROWS == 1) {
    float s0 = sum4[0] + sum4[1], s1 = sum4[2] + sum4[3];
    IG_UNROLL for (int d = 1; d < 4; d <<= 1) { s0 += ig_shuffle(s0, d); s1 += ig_shuffle(s1, d); }
    if (t == 0) { parts[warp][g] = s0; parts[warp][g + 8] = s1; }
  } else {
    IG_UNROLL for (int i = 0; i < 4; ++i) {
      const int row = 2 * t + (i & 1);
      if (row < ROWS) parts[warp][row * 16 + g + (i >> 1) * 8] = sum4[i];
    }
  }
  __syncthreads();
  IG_UNROLL for (int e0 = 0; e0 < 16 * ROWS; e0 += WARPS * 32) {
    const int e = e0 + (int)threadIdx.x, row = e >> 4, col = col0 + (e & 15);
    if (e >= 16 * ROWS || col >= N) continue;
    ACC sum = 0.0f;
    IG_UNROLL for (int s = 0; s < WARPS; ++s) sum += parts[s][e];
    TO* at = out + row * p.n[13] + col * p.n[14];
    FINISH
    *at = DOWN(TC(sum));
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

bool is_row_matmul(const LibrarySpec& spec) {
  const auto& o = spec.operands;
  int rank = o[0].shape.size();
  for (int d = 0; d < rank - 2; ++d)
    if (o[0].shape[d] != 1) return false;
  DType t = o[1].dtype;
  if (!(is_half(t) || t == DType::Float32) || o[2].dtype != t) return false;
  if (!(o[0].dtype == t || o[0].dtype == DType::Float32)) return false;
  Shape s(spec);
  if (s.M < 1 || s.M > (is_half(t) ? kMostTensorRows : kMostRows) || s.N < 1 || s.K < s.per ||
      s.N > (int64_t{1} << 30))
    return false;
  // In pieces of 16 bytes, everywhere.
  bool aligned = s.K % s.per == 0 && o[1].stride[rank - 1] == 1 && o[2].stride[rank - 2] == 1;
  aligned = aligned && o[1].offset % s.per == 0 && o[2].offset % s.per == 0;
  aligned = aligned && (s.M == 1 || o[1].stride[rank - 2] % s.per == 0) &&
            (s.N == 1 || o[2].stride[rank - 1] % s.per == 0);
  return aligned && (is_half(t) ? Steps(s.K).chunks <= kMostChunks : s.pieces <= kMostPieces);
}

CudaKernel row_matmul(const LibrarySpec& spec) {
  const auto& o = spec.operands;
  int rank = o[0].shape.size();
  Shape s(spec);
  const bool half = is_half(o[1].dtype);
  const Steps steps(s.K);
  const int64_t warps = half ? steps.warps : s.warps;
  std::string body = half ? kTensorRows : kRows;
  replace_all(body, "MMA", o[1].dtype == DType::BFloat16 ? "ig_mma_bf16" : "ig_mma_f16");
  replace_all(body, "WAIT", spec.holds_back_next ? "ig_wait();" : "ig_go(); ig_wait();");
  replace_all(body, "STEADY", spec.unwritten_operands & 4 ? "true" : "false");
  // The bias is on its way from the beginning, too: its lane is the one that writes the result.
  replace_all(body, "BIAS_SOON",
              spec.has(Epilogue::Bias)
                  ? "if (p.n[3] >= 0 && lane < COLS && col0 + lane < N) "
                    "ig_prefetch((const TBIAS*)p.n[3] + p.n[19] + (col0 + lane) * p.n[20]);"
                  : "");
  replace_all(body, "BIAS_NOW",
              spec.has(Epilogue::Bias)
                  ? "TBIAS bias = 0; if (col0 + lane % COLS < N) bias = ((const "
                    "TBIAS*)ig_pointer(p.n[3]))[p.n[19] + (col0 + lane % COLS) * p.n[20]];"
                  : "");
  finish_matmul(spec, body);
  replace_all(body, "((const TBIAS*)ig_pointer(p.n[3]))[p.n[19] + col * p.n[20]]", "bias");
  const std::pair<const char*, int64_t> sizes[] = {{"ROWS", s.M},
                                                   {"COLS", half ? 16 : s.cols},
                                                   {"SPLIT", s.split},
                                                   {"WARPS", warps},
                                                   {"DEPTH", half ? steps.depth : s.pieces},
                                                   {"CHUNKS", steps.chunks}};
  for (const auto& [name, size] : sizes) replace_all(body, name, std::to_string(size));
  CudaKernel k;
  k.text = hand_text("row_matmul", body, {{"", static_cast<unsigned>(warps) * 32, true}});
  k.text.waits = true;
  std::vector<int64_t>& n = k.launch.words;
  n.assign(kMatmulNumbers, 0);
  n[4] = s.M, n[5] = s.N, n[6] = s.K;
  for (size_t i = 0; i < 3; ++i) {
    n[10 + i] = o[i].offset;
    n[13 + 2 * i] = o[i].stride[rank - 2];
    n[14 + 2 * i] = o[i].stride[rank - 1];
  }
  if (spec.has(Epilogue::Bias)) n[19] = o[3].offset, n[20] = o[3].stride[0];
  const int64_t columns = half ? 16 : s.warps / s.split * s.cols;
  k.launch.stages = {{static_cast<unsigned>((s.N + columns - 1) / columns), 0}};
  k.launch.part_words = kMatmulNumbers;
  return k;
}

}  // namespace ingot::cuda
