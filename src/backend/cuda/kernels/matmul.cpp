// Two matrix products. One for what the library does not take: integers, mixed types, odd strides;
// correct first, not fast. And one for small products of float32, which keep a GPU waiting for
// memory rather than for arithmetic: a block has one tile of 16 x 16 or 8 x 16 of the result, each
// of its warps a part of the inner dim, all of it (up to 64) under way at once; the parts are added
// in order. What nobody writes in this run is asked for while the kernel in front still runs.
#include <algorithm>
#include <cstdlib>

#include "backend/cuda/kernels/kernels.h"
#include "ingot/error.h"

namespace ingot::cuda {
namespace {

constexpr int kNumbers = kMatmulNumbers;
constexpr int kBatchDims = kMaxDims - 2;

// n: 0-3 out, a, b, bias; 4 M, 5 N, 6 K; 7 tiles along M, 8 along N; 9 batch dims; 10-12 offsets;
// 13, 14 out strides; 15, 16 a; 17, 18 b; 19 bias offset; 20 bias stride; from 21 four words a
// batch dim: size, strides of out, a, b; with ReluGrad, 3 is what ReLU gave, 19 its offset, 54, 55
// its strides
const char* const kText = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const IgParams<60> p) {
  TYPES
  __shared__ ACC tile_a[16][17];
  __shared__ ACC tile_b[16][17];
  TO* out = (TO*)ig_pointer(p.n[0]) + p.n[10];
  const TA* a = (const TA*)ig_pointer(p.n[1]) + p.n[11];
  const TB* b = (const TB*)ig_pointer(p.n[2]) + p.n[12];
  const long long M = p.n[4], N = p.n[5], K = p.n[6];
  long long t = blockIdx.x;
  const int x = threadIdx.x & 15, y = threadIdx.x >> 4;
  const long long col0 = (t % p.n[8]) * 16; t /= p.n[8];
  const long long row0 = (t % p.n[7]) * 16; t /= p.n[7];
  for (int d = (int)p.n[9] - 1; d >= 0; --d) {
    const long long* q = p.n + 21 + 4 * d;
    const long long i = t % q[0]; t /= q[0];
    out += i * q[1]; a += i * q[2]; b += i * q[3];
  }
  const long long row = row0 + y, col = col0 + x;
  ACC sum = ACC(0);
  for (long long k0 = 0; k0 < K; k0 += 16) {
    tile_a[y][x] = row < M && k0 + x < K ? ACC(UPA(a[row * p.n[15] + (k0 + x) * p.n[16]])) : ACC(0);
    tile_b[y][x] = k0 + y < K && col < N ? ACC(UPB(b[(k0 + y) * p.n[17] + col * p.n[18]])) : ACC(0);
    __syncthreads();
    IG_UNROLL for (int k = 0; k < 16; ++k) sum += tile_a[y][k] * tile_b[k][x];
    __syncthreads();
  }
  if (row >= M || col >= N) return;
  TO* at = out + row * p.n[13] + col * p.n[14];
  FINISH
  *at = DOWN(TC(sum));
}
)cuda";

// The same numbers; with SUMS, 0-3 are out, the sums of a's rows, a, b, and 19, 20 are the sums'.
// WARPS is 1, 2, 4, 8 or 16; ROWS, of a tile, 8 or 16; STEPS pieces of 16 of the inner dim are
// under way at once. AX, BX: the operand lies along the inner dim; VA, VB: elements that a lane
// loads at once. INDEX counts elements; WHOLE_M, WHOLE_N: no tile stands out over the result. Of a
// piece, a lane has 4 x 4 results for every (32 / ROWS)th place of the inner dim; no two lanes meet
// in a bank.
const char* const kSmall = R"cuda(
extern "C" __global__ void __launch_bounds__(WARPS * 32) ENTRY0(const IgParams<60> p) {
  TYPES
  const int G = 32 / ROWS, RB = ROWS / 4, NA = ROWS / 2 / VA, NB = 8 / VB;
  // Load i of a lane: row (or column) and place it begins with, and the steps from load to load.
  const int a_rows = AX ? 32 * VA / 16 : 0, a_places = AX ? 0 : 32 * VA / ROWS;
  const int b_cols = BX ? 32 * VB / 16 : 0, b_places = BX ? 0 : 32 * VB / 16;
#define A_AT(r, k) (AX ? (r) * 20 + (k) : (k) * (ROWS + 4) + (r))
#define B_AT(c, k) (BX ? (c) * 20 + (k) : (k) * 20 + (c))
  __shared__ __align__(16) float tiles[WARPS][(AX ? ROWS * 20 : 16 * (ROWS + 4)) + 320];
  typedef INDEX Index;
  Index in_out = (Index)p.n[10], in_a = (Index)p.n[11], in_b = (Index)p.n[12];
  const int M = (int)p.n[4], N = (int)p.n[5], K = (int)p.n[6];
  unsigned t = blockIdx.x;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int col0 = (int)(t % (unsigned)p.n[8]) * 16; t /= (unsigned)p.n[8];
  MEMBER
  const int slice = ((K + WARPS - 1) / WARPS + 15) & ~15, begin = warp * slice, left = K - begin < slice ? K - begin : slice;
  const int ar = AX ? lane / (16 / VA) : lane % (ROWS / VA) * VA, ak = AX ? lane % (16 / VA) * VA : lane / (ROWS / VA);
  const int bc = BX ? lane / (16 / VB) : lane % (16 / VB) * VB, bk = BX ? lane % (16 / VB) * VB : lane / (16 / VB);
  const Index a_row = (Index)p.n[15], a_place = (Index)p.n[16], b_place = (Index)p.n[17], b_col = (Index)p.n[18];
  in_a += (row0 + ar) * a_row + (begin + ak) * a_place;
  in_b += (begin + bk) * b_place + (col0 + bc) * b_col;
  const Index na = 16 * a_place, nb = 16 * b_place;
  const Index ga = AX ? a_rows * a_row : a_places * a_place, gb = BX ? b_cols * b_col : b_places * b_place;
  float* ta = tiles[warp];
  float* tb = ta + (AX ? ROWS * 20 : 16 * (ROWS + 4));
  IgVec<float, VA> ra[STEPS][NA];
  IgVec<float, VB> rb[STEPS][NB];
#define LOAD_A(from, k0) \
  IG_UNROLL for (int s = 0; s < STEPS; ++s) \
    IG_UNROLL for (int i = 0; i < NA; ++i) \
      if ((WHOLE_M || row0 + ar + i * a_rows < M) && ak + i * a_places + (k0) + s * 16 < left) ig_load<VA, 0>(ra[s][i], (from) + s * na + i * ga); \
      else IG_UNROLL for (int e = 0; e < VA; ++e) ra[s][i].e[e] = 0.0f;
#define LOAD_B(from, k0) \
  IG_UNROLL for (int s = 0; s < STEPS; ++s) \
    IG_UNROLL for (int i = 0; i < NB; ++i) \
      if ((WHOLE_N || col0 + bc + i * b_cols < N) && bk + i * b_places + (k0) + s * 16 < left) ig_load<VB, 0>(rb[s][i], (from) + s * nb + i * gb); \
      else IG_UNROLL for (int e = 0; e < VB; ++e) rb[s][i].e[e] = 0.0f;
  const bool early_a = STEADY_A && p.n[1 + SUMS] >= 0, early_b = STEADY_B && p.n[2 + SUMS] >= 0;
  if (early_a) { LOAD_A((const TA*)p.n[1 + SUMS] + in_a, 0) }
  if (early_b) { LOAD_B((const TB*)p.n[2 + SUMS] + in_b, 0) }
  WAIT
  const TA* pa = (const TA*)ig_pointer(p.n[1 + SUMS]) + in_a;
  const TB* pb = (const TB*)ig_pointer(p.n[2 + SUMS]) + in_b;
  TO* out = (TO*)ig_pointer(p.n[0]) + in_out;
  if (!early_a) { LOAD_A(pa, 0) }
  if (!early_b) { LOAD_B(pb, 0) }
  float acc[4][4], of_a[4];
  IG_UNROLL for (int i = 0; i < 16; ++i) acc[i >> 2][i & 3] = 0.0f;
  IG_UNROLL for (int i = 0; i < 4; ++i) of_a[i] = 0.0f;
  const int kg = lane / ROWS, rb0 = lane % ROWS >> 2, cb = lane & 3;
  for (int k0 = 0; k0 < left; k0 += 16 * STEPS) {
    IG_UNROLL for (int s = 0; s < STEPS; ++s) {
      IG_UNROLL for (int i = 0; i < NA; ++i) *(IgVec<float, VA>*)(ta + A_AT(ar + i * a_rows, ak + i * a_places)) = ra[s][i];
      IG_UNROLL for (int i = 0; i < NB; ++i) *(IgVec<float, VB>*)(tb + B_AT(bc + i * b_cols, bk + i * b_places)) = rb[s][i];
      __syncwarp();
      IG_UNROLL for (int k = 0; k < 16; k += G) {
        float x[4], y[4];
        IG_UNROLL for (int i = 0; i < 4; ++i) { x[i] = ta[A_AT(rb0 + RB * i, k + kg)]; y[i] = tb[B_AT(cb + 4 * i, k + kg)]; }
        IG_UNROLL for (int i = 0; i < 16; ++i) acc[i >> 2][i & 3] = fmaf(x[i >> 2], y[i & 3], acc[i >> 2][i & 3]);
        if (SUMS) IG_UNROLL for (int i = 0; i < 4; ++i) of_a[i] += x[i];
      }
      __syncwarp();
    }
    if (k0 + 16 * STEPS < left) {
      pa += STEPS * na; pb += STEPS * nb;
      LOAD_A(pa, k0 + 16 * STEPS)
      LOAD_B(pb, k0 + 16 * STEPS)
    }
  }
#undef LOAD_A
#undef LOAD_B
#undef A_AT
#undef B_AT
  IG_UNROLL for (int i = 0; i < 16; ++i)
    IG_UNROLL for (int d = ROWS; d < 32; d <<= 1) acc[i >> 2][i & 3] += ig_shuffle(acc[i >> 2][i & 3], d);
  if (SUMS)
    IG_UNROLL for (int i = 0; i < 4; ++i)
      IG_UNROLL for (int d = ROWS; d < 32; d <<= 1) of_a[i] += ig_shuffle(of_a[i], d);
  __shared__ float sums[SUMS ? WARPS * ROWS : 1];
  __syncthreads();
  float* part = tiles[0];
  IG_UNROLL for (int i = 0; i < 4; ++i)
    if (i % G == kg) IG_UNROLL for (int j = 0; j < 4; ++j) part[warp * (ROWS * 16) + (rb0 + RB * i) * 16 + cb + 4 * j] = acc[i][j];
  if (SUMS && cb == 0)
    IG_UNROLL for (int i = 0; i < 4; ++i)
      if (i % G == kg) sums[warp * ROWS + rb0 + RB * i] = of_a[i];
  __syncthreads();
  if (SUMS && col0 == 0 && threadIdx.x < ROWS && row0 + (int)threadIdx.x < M) {
    float sum = 0.0f;
    IG_UNROLL for (int w = 0; w < WARPS; ++w) sum += sums[w * ROWS + threadIdx.x];
    ((float*)ig_pointer(p.n[1]))[p.n[19] + (row0 + threadIdx.x) * p.n[20]] = sum;
  }
  for (int e = threadIdx.x; e < ROWS * 16; e += WARPS * 32) {
    const int row = row0 + (e >> 4), col = col0 + (e & 15);
    if (row >= M || col >= N) continue;
    ACC sum = 0.0f;
    IG_UNROLL for (int w = 0; w < WARPS; ++w) sum += part[w * (ROWS * 16) + e];
    TO* at = out + (row * (Index)p.n[13] + col * (Index)p.n[14]);
    FINISH
    *at = DOWN(TC(sum));
  }
}
)cuda";

// Which rows a block has; of a batch, which member.
const char* const kOnly = "const int row0 = (int)t * ROWS;";
const char* const kMember =
    R"cuda(const int row0 = (int)(t % (unsigned)p.n[7]) * ROWS; t /= (unsigned)p.n[7];
  for (int d = (int)p.n[9] - 1; d >= 0; --d) {
    const long long* q = p.n + 21 + 4 * d;
    const long long i = t % (unsigned)q[0]; t /= (unsigned)q[0];
    in_out += (Index)(i * q[1]); in_a += (Index)(i * q[2]); in_b += (Index)(i * q[3]);
  })cuda";

/// The product's two operands.
const OperandSpec* factors(const LibrarySpec& spec) {
  return &spec.operands[static_cast<size_t>(spec.written)];
}

std::string accumulator(const LibrarySpec& spec) {
  DType t = factors(spec)[0].dtype;
  if (is_half(t)) return spec.operands[0].dtype == DType::Float64 ? "double" : "float";
  return is_float(t) ? (t == DType::Float64 ? "double" : "float") : "long long";
}

std::string finish(const LibrarySpec& spec) {
  std::string s;
  if (spec.accumulate) s += "sum += ACC(UPO(*at));";
  if (spec.has(Epilogue::Bias))
    s += " sum += ACC(UPBIAS(((const TBIAS*)ig_pointer(p.n[3]))[p.n[19] + col * p.n[20]]));";
  // GELU's gradient is a separate pass (kernels/gelu.cpp), a bias's gradient too, or SUMS.
  if (spec.has(Epilogue::ReluGrad))
    s += " if (!(UPO(((const TO*)ig_pointer(p.n[3]))[p.n[19] + row * p.n[54] + col * p.n[55]]) > "
         "TC(0))) "
         "sum = ACC(0);";
  if (spec.has(Epilogue::Relu)) s += " sum = sum > ACC(0) ? sum : (sum != sum ? sum : ACC(0));";
  if (spec.has(Epilogue::GeluTanh))
    s += " sum = ACC(0.5) * sum * (ACC(1) + ig_tanh(ACC(0.7978845608028654) * (sum + "
         "ACC(0.044715) * sum * "
         "sum * sum)));";
  return s;
}

}  // namespace

void finish_matmul(const LibrarySpec& spec, std::string& body) {
  const auto& o = spec.operands;
  TextType out = text_type(o[0].dtype), a = text_type(factors(spec)[0].dtype),
           b = text_type(factors(spec)[1].dtype);
  replace_all(body, "FINISH", finish(spec));
  std::string types = "typedef " + accumulator(spec) + " ACC; typedef " + out.memory +
                      " TO; typedef " + a.memory + " TA; typedef " + b.memory + " TB; typedef " +
                      out.compute + " TC;";
  if (spec.has(Epilogue::Bias)) {
    TextType bias = text_type(o[3].dtype);
    types += " typedef " + bias.memory + " TBIAS;";
    replace_all(body, "UPBIAS", bias.up);
  }
  replace_all(body, "TYPES", types);
  replace_all(body, "UPA", a.up);
  replace_all(body, "UPB", b.up);
  replace_all(body, "UPO", out.up);
  replace_all(body, "DOWN", out.down);
}

namespace {

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

CudaText small_text(const LibrarySpec& spec) {
  std::string body = kSmall;
  finish_matmul(spec, body);
  const OperandSpec &a = factors(spec)[0], &b = factors(spec)[1];
  const int rank = a.shape.size();
  const int64_t K = a.shape[rank - 1];
  int64_t warps = 1;
  while (warps < 16 && warps * 32 < K) warps *= 2;
  const int64_t steps = std::clamp<int64_t>(((K + warps - 1) / warps + 15) / 16, 1, 4);
  const bool ax = a.stride[rank - 1] == 1, bx = b.stride[rank - 2] == 1 && b.stride[rank - 1] != 1;
  const bool a4 = in_fours(a, ax ? rank - 1 : rank - 2), b4 = in_fours(b, bx ? rank - 2 : rank - 1);
  const Dims& out = spec.operands[0].shape;
  const std::pair<const char*, std::string> words[] = {
      {"INDEX", near(spec) ? "int" : "long long"},
      {"MEMBER", rank == 2 ? kOnly : kMember},
      {"WHOLE_M", out[rank - 2] % tile_rows(spec) == 0 ? "true" : "false"},
      {"WHOLE_N", out[rank - 1] % 16 == 0 ? "true" : "false"},
      {"WARPS", std::to_string(warps)},
      {"ROWS", std::to_string(tile_rows(spec))},
      {"STEPS", std::to_string(steps)},
      {"STEADY_A", spec.unwritten_operands >> spec.written & 1 ? "true" : "false"},
      {"STEADY_B", spec.unwritten_operands >> spec.written & 2 ? "true" : "false"},
      {"SUMS", spec.has(Epilogue::BiasGrad) ? "1" : "0"},
      {"WAIT", spec.holds_back_next ? "ig_wait();" : "ig_go(); ig_wait();"},
      {"AX", ax ? "true" : "false"},
      {"BX", bx ? "true" : "false"},
      {"VA", a4 ? "4" : "1"},
      {"VB", b4 ? "4" : "1"}};
  for (const auto& [name, value] : words) replace_all(body, name, value);
  CudaText text = hand_text("small_matmul", body, {{"", static_cast<unsigned>(warps) * 32, true}});
  text.waits = true;
  return text;
}

CudaText simple_text(const LibrarySpec& spec) {
  std::string body = kText;
  finish_matmul(spec, body);
  return hand_text("matmul", body, {{"", 256, true}});
}

CudaKernel own_matmul(const LibrarySpec& spec, bool small) {
  const auto& o = spec.operands;
  int rank = o[0].shape.size(), dims = rank - 2;
  if (dims > kBatchDims)
    throw Error(ErrorKind::Unsupported, "matmul", "more than 8 batch dimensions");
  CudaKernel k;
  k.text = small ? small_text(spec) : simple_text(spec);
  std::vector<int64_t>& n = k.launch.words;
  n.assign(kNumbers, 0);
  const OperandSpec* in = factors(spec);
  int64_t M = o[0].shape[rank - 2], N = o[0].shape[rank - 1], K = in[0].shape[rank - 1], batch = 1;
  const int64_t rows = small ? tile_rows(spec) : 16;
  int64_t tiles_m = (M + rows - 1) / rows, tiles_n = (N + 15) / 16;
  n[4] = M, n[5] = N, n[6] = K, n[7] = tiles_m, n[8] = tiles_n, n[9] = dims;
  const OperandSpec* three[3] = {o.data(), in, in + 1};
  for (size_t i = 0; i < 3; ++i) {
    n[10 + i] = three[i]->offset;
    n[13 + 2 * i] = three[i]->stride[rank - 2];
    n[14 + 2 * i] = three[i]->stride[rank - 1];
  }
  if (spec.has(Epilogue::Bias)) n[19] = o[3].offset, n[20] = o[3].stride[0];
  if (spec.has(Epilogue::ReluGrad))
    n[19] = o[3].offset, n[54] = o[3].stride[rank - 2], n[55] = o[3].stride[rank - 1];
  if (spec.has(Epilogue::BiasGrad)) n[19] = o[1].offset, n[20] = o[1].stride.back();
  for (int d = 0; d < dims; ++d) {
    int64_t* q = &n[21 + 4 * static_cast<size_t>(d)];
    q[0] = o[0].shape[d];
    for (int i = 0; i < 3; ++i)
      q[1 + i] = three[i]->shape[d] == 1 && q[0] > 1 ? 0 : three[i]->stride[d];
    batch *= q[0];
  }
  int64_t blocks = tiles_m * tiles_n * batch;
  if (blocks > 0x7fffffff) throw Error(ErrorKind::Unsupported, "matmul", "more than 2^31 tiles");
  k.launch.stages = {{static_cast<unsigned>(blocks), 0}};
  k.launch.part_words = kNumbers;
  return k;
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

CudaKernel simple_matmul(const LibrarySpec& spec) { return own_matmul(spec, false); }
CudaKernel small_matmul(const LibrarySpec& spec) { return own_matmul(spec, true); }

}  // namespace ingot::cuda
