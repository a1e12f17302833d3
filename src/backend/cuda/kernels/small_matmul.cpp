// Small matrix products of float32: out = a b with batch dims, accumulation and epilogues; with
// BiasGrad also the sums of a's rows.
//
// Launch: a block per tile of kRows x 16 of the result (kRows 8 or 16). Each of its kWarps warps
// has a slice of the inner dim, in pieces of 16, kSteps of them in flight at once; within a piece a
// lane has 4 x 4 results for every (32 / kRows)th place of the inner dim. The warps' partial sums
// are added in shared memory, always in the same order.
// Bound by memory latency: such a product is over before bandwidth or arithmetic matter. So
// everything is requested up front, what nobody writes in this run (kAUnwritten, kBUnwritten) even
// before the previous kernel has ended. No two lanes meet in a bank of shared memory.
#include <algorithm>
#include <cstdlib>

#include "backend/cuda/kernels/matmul_call.h"

namespace ingot::cuda {
namespace {

// kAX, kBX: the operand is contiguous along the inner dim. kVA, kVB: elements that a lane loads at
// once. Index: counts elements. kWholeM, kWholeN: no tile reaches beyond the result.
const char* const kText = R"cuda(
template <class C> IG_FN void small_matmul(const Argument<MatmulParams>& p) {
  typedef typename C::Out::Memory TO;
  typedef typename C::A::Memory TA;
  typedef typename C::B::Memory TB;
  typedef typename C::Index Index;
  constexpr int kWarps = C::kWarps, kRows = C::kRows, kSteps = C::kSteps, kVA = C::kVA, kVB = C::kVB;
  constexpr bool kAX = C::kAX, kBX = C::kBX, kSums = C::kSums;
  constexpr int kGroups = 32 / kRows, kRowBlocks = kRows / 4, kLoadsA = kRows / 2 / kVA, kLoadsB = 8 / kVB;
  // Load i of a lane: row (or column) and place it begins with, and the steps from load to load.
  const int a_rows = kAX ? 32 * kVA / 16 : 0, a_places = kAX ? 0 : 32 * kVA / kRows;
  const int b_cols = kBX ? 32 * kVB / 16 : 0, b_places = kBX ? 0 : 32 * kVB / 16;
#define A_AT(r, k) (kAX ? (r) * 20 + (k) : (k) * (kRows + 4) + (r))
#define B_AT(c, k) (kBX ? (c) * 20 + (k) : (k) * 20 + (c))
  __shared__ __align__(16) float tiles[kWarps][(kAX ? kRows * 20 : 16 * (kRows + 4)) + 320];
  Index in_out = (Index)p.out_offset, in_a = (Index)p.a_offset, in_b = (Index)p.b_offset;
  const int M = (int)p.M, N = (int)p.N, K = (int)p.K;
  unsigned t = blockIdx.x;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int col0 = (int)(t % (unsigned)p.tiles_n) * 16; t /= (unsigned)p.tiles_n;
  int row0;
  if (C::kBatched) {
    row0 = (int)(t % (unsigned)p.tiles_m) * kRows; t /= (unsigned)p.tiles_m;
    for (int d = (int)p.batch_dims - 1; d >= 0; --d) {
      const auto& dim = p.batch[d];
      const long long i = t % (unsigned)dim.size; t /= (unsigned)dim.size;
      in_out += (Index)(i * dim.out); in_a += (Index)(i * dim.a); in_b += (Index)(i * dim.b);
    }
  } else {
    row0 = (int)t * kRows;
  }
  const int slice = ((K + kWarps - 1) / kWarps + 15) & ~15, begin = warp * slice, left = K - begin < slice ? K - begin : slice;
  const int ar = kAX ? lane / (16 / kVA) : lane % (kRows / kVA) * kVA;
  const int ak = kAX ? lane % (16 / kVA) * kVA : lane / (kRows / kVA);
  const int bc = kBX ? lane / (16 / kVB) : lane % (16 / kVB) * kVB, bk = kBX ? lane % (16 / kVB) * kVB : lane / (16 / kVB);
  const Index a_row = (Index)p.a_row, a_place = (Index)p.a_inner, b_place = (Index)p.b_inner, b_col = (Index)p.b_col;
  in_a += (row0 + ar) * a_row + (begin + ak) * a_place;
  in_b += (begin + bk) * b_place + (col0 + bc) * b_col;
  const Index na = 16 * a_place, nb = 16 * b_place;
  const Index ga = kAX ? a_rows * a_row : a_places * a_place, gb = kBX ? b_cols * b_col : b_places * b_place;
  float* ta = tiles[warp];
  float* tb = ta + (kAX ? kRows * 20 : 16 * (kRows + 4));
  IgVec<float, kVA> ra[kSteps][kLoadsA];
  IgVec<float, kVB> rb[kSteps][kLoadsB];
#define LOAD_A(from, k0) \
  IG_UNROLL for (int s = 0; s < kSteps; ++s) \
    IG_UNROLL for (int i = 0; i < kLoadsA; ++i) \
      if ((C::kWholeM || row0 + ar + i * a_rows < M) && ak + i * a_places + (k0) + s * 16 < left) \
        ig_load<kVA, 0>(ra[s][i], (from) + s * na + i * ga); \
      else IG_UNROLL for (int e = 0; e < kVA; ++e) ra[s][i].e[e] = 0.0f;
#define LOAD_B(from, k0) \
  IG_UNROLL for (int s = 0; s < kSteps; ++s) \
    IG_UNROLL for (int i = 0; i < kLoadsB; ++i) \
      if ((C::kWholeN || col0 + bc + i * b_cols < N) && bk + i * b_places + (k0) + s * 16 < left) \
        ig_load<kVB, 0>(rb[s][i], (from) + s * nb + i * gb); \
      else IG_UNROLL for (int e = 0; e < kVB; ++e) rb[s][i].e[e] = 0.0f;
  const bool early_a = C::kAUnwritten && p.operands[1 + kSums] >= 0, early_b = C::kBUnwritten && p.operands[2 + kSums] >= 0;
  if (early_a) { LOAD_A((const TA*)p.operands[1 + kSums] + in_a, 0) }
  if (early_b) { LOAD_B((const TB*)p.operands[2 + kSums] + in_b, 0) }
  if (C::kLetsNextStart) ig_go();
  ig_wait();
  const TA* pa = (const TA*)ig_pointer(p.operands[1 + kSums]) + in_a;
  const TB* pb = (const TB*)ig_pointer(p.operands[2 + kSums]) + in_b;
  TO* out = (TO*)ig_pointer(p.operands[0]) + in_out;
  if (!early_a) { LOAD_A(pa, 0) }
  if (!early_b) { LOAD_B(pb, 0) }
  float acc[4][4], of_a[4];
  IG_UNROLL for (int i = 0; i < 16; ++i) acc[i >> 2][i & 3] = 0.0f;
  IG_UNROLL for (int i = 0; i < 4; ++i) of_a[i] = 0.0f;
  const int kg = lane / kRows, rb0 = lane % kRows >> 2, cb = lane & 3;
  for (int k0 = 0; k0 < left; k0 += 16 * kSteps) {
    IG_UNROLL for (int s = 0; s < kSteps; ++s) {
      IG_UNROLL for (int i = 0; i < kLoadsA; ++i)
        *(IgVec<float, kVA>*)(ta + A_AT(ar + i * a_rows, ak + i * a_places)) = ra[s][i];
      IG_UNROLL for (int i = 0; i < kLoadsB; ++i)
        *(IgVec<float, kVB>*)(tb + B_AT(bc + i * b_cols, bk + i * b_places)) = rb[s][i];
      __syncwarp();
      IG_UNROLL for (int k = 0; k < 16; k += kGroups) {
        float x[4], y[4];
        IG_UNROLL for (int i = 0; i < 4; ++i) { x[i] = ta[A_AT(rb0 + kRowBlocks * i, k + kg)]; y[i] = tb[B_AT(cb + 4 * i, k + kg)]; }
        IG_UNROLL for (int i = 0; i < 16; ++i) acc[i >> 2][i & 3] = fmaf(x[i >> 2], y[i & 3], acc[i >> 2][i & 3]);
        if (kSums) IG_UNROLL for (int i = 0; i < 4; ++i) of_a[i] += x[i];
      }
      __syncwarp();
    }
    if (k0 + 16 * kSteps < left) {
      pa += kSteps * na; pb += kSteps * nb;
      LOAD_A(pa, k0 + 16 * kSteps)
      LOAD_B(pb, k0 + 16 * kSteps)
    }
  }
#undef LOAD_A
#undef LOAD_B
#undef A_AT
#undef B_AT
  IG_UNROLL for (int i = 0; i < 16; ++i)
    IG_UNROLL for (int d = kRows; d < 32; d <<= 1) acc[i >> 2][i & 3] += ig_shuffle(acc[i >> 2][i & 3], d);
  if (kSums)
    IG_UNROLL for (int i = 0; i < 4; ++i)
      IG_UNROLL for (int d = kRows; d < 32; d <<= 1) of_a[i] += ig_shuffle(of_a[i], d);
  __shared__ float sums[kSums ? kWarps * kRows : 1];
  __syncthreads();
  float* part = tiles[0];
  IG_UNROLL for (int i = 0; i < 4; ++i)
    if (i % kGroups == kg) IG_UNROLL for (int j = 0; j < 4; ++j)
      part[warp * (kRows * 16) + (rb0 + kRowBlocks * i) * 16 + cb + 4 * j] = acc[i][j];
  if (kSums && cb == 0)
    IG_UNROLL for (int i = 0; i < 4; ++i)
      if (i % kGroups == kg) sums[warp * kRows + rb0 + kRowBlocks * i] = of_a[i];
  __syncthreads();
  if (kSums && col0 == 0 && threadIdx.x < kRows && row0 + (int)threadIdx.x < M) {
    float sum = 0.0f;
    IG_UNROLL for (int w = 0; w < kWarps; ++w) sum += sums[w * kRows + threadIdx.x];
    ((float*)ig_pointer(p.operands[1]))[p.extra_offset + (row0 + threadIdx.x) * p.extra_stride] = sum;
  }
  for (int e = threadIdx.x; e < kRows * 16; e += kWarps * 32) {
    const int row = row0 + (e >> 4), col = col0 + (e & 15);
    if (row >= M || col >= N) continue;
    float sum = 0.0f;
    IG_UNROLL for (int w = 0; w < kWarps; ++w) sum += part[w * (kRows * 16) + e];
    TO* at = out + (row * (Index)p.out_row + col * (Index)p.out_col);
    *at = finish<C>(p, sum, at, row, col);
  }
}
)cuda";

// Eight rows a tile where sixteen would leave half of the GPU idle.
int64_t tile_rows(const LibrarySpec& spec) {
  const OperandSpec &out = spec.operands[0], &a = factors(spec)[0];
  const int rank = out.shape.size();
  int64_t blocks = (out.shape[rank - 2] + 15) / 16 * ((out.shape[rank - 1] + 15) / 16);
  for (int d = 0; d < rank - 2; ++d) blocks *= out.shape[d];
  return a.stride[rank - 1] == 1 && blocks <= 66 ? 8 : 16;
}

/// Do four neighbours along this dim of the operand make 16 aligned bytes, wherever a tile begins?
bool in_fours(const OperandSpec& x, int along) {
  bool fits = x.stride[along] == 1 && x.shape[along] % 4 == 0 && x.offset % 4 == 0;
  for (int d = 0; d < x.shape.size(); ++d)
    fits = fits && (d == along || x.shape[d] == 1 || x.stride[d] % 4 == 0);
  return fits;
}

/// Does an int reach every element of these operands?
bool near(const LibrarySpec& spec) {
  for (const OperandSpec& o : spec.operands) {
    int64_t last = o.offset;
    for (int d = 0; d < o.shape.size(); ++d) last += (o.shape[d] + 64) * std::abs(o.stride[d]);
    if (last > 0x7fffffff) return false;
  }
  return true;
}

}  // namespace

// Above this the library's larger tiles win; with one block a tile, few tiles and a long inner dim
// leave most of the GPU idle.
bool is_small_product(int64_t m, int64_t n, int64_t k, int64_t batch) {
  return m * n * k <= (int64_t{1} << 24) && batch * m * n <= (int64_t{1} << 20) && k <= 4096;
}

bool is_small_matmul(const LibrarySpec& spec) {
  const auto& o = spec.operands;
  int rank = o[0].shape.size();
  for (const OperandSpec& x : o)
    if (x.dtype != DType::Float32) return false;
  int64_t batch = 1;
  for (int d = 0; d < rank - 2; ++d) batch *= o[0].shape[d];
  return is_small_product(o[0].shape[rank - 2], o[0].shape[rank - 1],
                          factors(spec)[0].shape[rank - 1], batch);
}

CudaKernel small_matmul(const LibrarySpec& spec) {
  const OperandSpec &a = factors(spec)[0], &b = factors(spec)[1];
  const int rank = a.shape.size();
  const int64_t rows = tile_rows(spec);
  MatmulParams p = matmul_params(spec);
  p.tiles_m = (p.M + rows - 1) / rows, p.tiles_n = (p.N + 15) / 16;
  int64_t blocks = p.tiles_m * p.tiles_n;
  for (int64_t d = 0; d < p.batch_dims; ++d) blocks *= p.batch[d].size;

  int64_t warps = 1;
  while (warps < 16 && warps * 32 < p.K) warps *= 2;
  const int64_t steps = std::clamp<int64_t>(((p.K + warps - 1) / warps + 15) / 16, 1, 4);
  const bool ax = a.stride[rank - 1] == 1, bx = b.stride[rank - 2] == 1 && b.stride[rank - 1] != 1;
  const bool a4 = in_fours(a, ax ? rank - 1 : rank - 2), b4 = in_fours(b, bx ? rank - 2 : rank - 1);
  CallTraits t = matmul_traits(spec);
  t.type("Index", near(spec) ? "int" : "long long").flag("kBatched", rank > 2);
  t.value("kWarps", warps).value("kRows", rows).value("kSteps", steps);
  t.flag("kAX", ax).flag("kBX", bx).value("kVA", a4 ? 4 : 1).value("kVB", b4 ? 4 : 1);
  t.flag("kWholeM", p.M % rows == 0).flag("kWholeN", p.N % 16 == 0);
  t.flag("kAUnwritten", spec.unwritten_operands >> spec.written & 1);
  t.flag("kBUnwritten", spec.unwritten_operands >> spec.written & 2);
  t.flag("kSums", spec.has(Epilogue::BiasGrad)).flag("kLetsNextStart", !spec.holds_back_next);
  CudaKernel k =
      make_kernel("small_matmul", kMatmulEpilogues + t.text() + kText,
                  {{"small_matmul<Call>", blocks, static_cast<unsigned>(warps) * 32, true}}, p);
  k.text.waits = true;
  return k;
}

}  // namespace ingot::cuda
