// A matrix product for whatever the library does not take: integers, mixed dtypes, odd strides.
// out = a b, with batch dims, accumulation and epilogues. Correct first, not fast.
//
// Launch: a block of 16 x 16 threads for each 16 x 16 tile of the result, one element per thread;
// 2 * 16 * 17 sums' worth of shared memory. Bound by shared memory: each multiply-add loads both of
// its factors from there.
#include "backend/cuda/kernels/matmul_call.h"

namespace ingot::cuda {
namespace {

const char* const kText = R"cuda(
template <class C> IG_FN void matmul(const Argument<MatmulParams>& p) {
  typedef typename C::Out::Memory TO;
  typedef typename C::A::Memory TA;
  typedef typename C::B::Memory TB;
  typedef typename C::Acc Acc;
  __shared__ Acc tile_a[16][17];
  __shared__ Acc tile_b[16][17];
  TO* out = (TO*)ig_pointer(p.operands[0]) + p.out_offset;
  const TA* a = (const TA*)ig_pointer(p.operands[1]) + p.a_offset;
  const TB* b = (const TB*)ig_pointer(p.operands[2]) + p.b_offset;
  const long long M = p.M, N = p.N, K = p.K;
  long long t = blockIdx.x;
  const int x = threadIdx.x & 15, y = threadIdx.x >> 4;
  const long long col0 = (t % p.tiles_n) * 16; t /= p.tiles_n;
  const long long row0 = (t % p.tiles_m) * 16; t /= p.tiles_m;
  for (int d = (int)p.batch_dims - 1; d >= 0; --d) {
    const auto& dim = p.batch[d];
    const long long i = t % dim.size; t /= dim.size;
    out += i * dim.out; a += i * dim.a; b += i * dim.b;
  }
  const long long row = row0 + y, col = col0 + x;
  Acc sum = Acc(0);
  for (long long k0 = 0; k0 < K; k0 += 16) {
    tile_a[y][x] = row < M && k0 + x < K ? Acc(C::A::up(a[row * p.a_row + (k0 + x) * p.a_inner])) : Acc(0);
    tile_b[y][x] = k0 + y < K && col < N ? Acc(C::B::up(b[(k0 + y) * p.b_inner + col * p.b_col])) : Acc(0);
    __syncthreads();
    IG_UNROLL for (int k = 0; k < 16; ++k) sum += tile_a[y][k] * tile_b[k][x];
    __syncthreads();
  }
  if (row >= M || col >= N) return;
  TO* at = out + row * p.out_row + col * p.out_col;
  *at = finish<C>(p, sum, at, row, col);
}
)cuda";

}  // namespace

CudaKernel simple_matmul(const LibrarySpec& spec) {
  MatmulParams p = matmul_params(spec);
  p.tiles_m = (p.M + 15) / 16, p.tiles_n = (p.N + 15) / 16;
  int64_t blocks = p.tiles_m * p.tiles_n;
  for (int64_t d = 0; d < p.batch_dims; ++d) blocks *= p.batch[d].size;
  return make_kernel("matmul", kMatmulEpilogues + matmul_traits(spec).text() + kText,
                     {{"matmul<Call>", blocks, 256, true}}, p);
}

}  // namespace ingot::cuda
