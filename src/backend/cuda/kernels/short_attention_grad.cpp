// The gradient of attention over short sequences: up to 256 queries and as many keys, heads of 64,
// 16 bits, causal or not. dq, dk, dv from q, k, v, the result, its gradient and the log-sum-exp
// that the forward call has left.
//
// Launch: a block a head, a warp for every 32 positions; q, k, v and the gradient of the result in
// dynamic shared memory, rows of 72 elements so that they begin in different banks. A warp has 32
// keys, for which it goes through the queries (dk, dv), then 32 queries, for which it goes through
// the keys (dq); with a causal mask those two together are as much for every warp. Scores are
// computed in both rounds.
// Bound by the tensor cores. Everything is read once, and nothing is added up in global memory: no
// accumulator to clear, no pass to round it, the same bits every time.
#include <bit>

#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {
namespace {

constexpr int64_t kLongest = 256, kHead = 64, kPitch = 72;

INGOT_KERNEL_PARAMS(ShortAttentionParams, {
  Address operands[8];  // dq, dk, dv, q, k, v, out, its gradient
  Address lse;          // float32, contiguous [batch, heads, rows]
  long long unused;     // keeps the offsets in the machine code as they were measured
  struct {
    long long offset;
    long long batch;  // strides
    long long head;
    long long row;
  } at[8];  // of the operands
  long long lse_offset;
  long long heads;
  double scale;
});

// Operands of the tensor cores (16 x 16 by 16 x 8) come from shared memory by ldmatrix: `left` is
// the first operand, 16 rows of a matrix; `right` the second, 16 rows of its transpose;
// `transposed` the second, 16 rows as they are.
const char* const kText = R"cuda(
IG_FN void left(unsigned* r, const unsigned short* m, int lane) { ig_matrix(r, m + (lane & 15) * 72 + (lane >> 4) * 8); }
IG_FN void right(unsigned* r, const unsigned short* m, int lane) {
  ig_matrix(r, m + ((lane & 7) + (lane >> 4) * 8) * 72 + (lane >> 3 & 1) * 8);
}
IG_FN void transposed(unsigned* r, const unsigned short* m, int lane) {
  ig_matrix_transposed(r, m + (lane & 15) * 72 + (lane >> 4) * 8);
}
template <class D> IG_FN void multiply(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  D::mma(c, a[0], a[1], a[2], a[3], b0, b1);
}
// 32 x 16 scores, and the gradients of what they become: rows of a and of da by those of b and db.
template <class D>
IG_FN void scores(float (*s)[2][4], float (*d)[2][4], const unsigned (*a)[4][4], const unsigned (*da)[4][4], const unsigned short* b,
                  const unsigned short* db, int lane) {
  IG_UNROLL for (int m = 0; m < 2; ++m)
    IG_UNROLL for (int n = 0; n < 2; ++n)
      IG_UNROLL for (int e = 0; e < 4; ++e) s[m][n][e] = d[m][n][e] = 0.0f;
  IG_UNROLL for (int k = 0; k < 4; ++k) {
    unsigned x[4], y[4];
    right(x, b + k * 16, lane);
    right(y, db + k * 16, lane);
    IG_UNROLL for (int m = 0; m < 2; ++m)
      IG_UNROLL for (int n = 0; n < 2; ++n) {
        multiply<D>(s[m][n], a[m][k], x[2 * n], x[2 * n + 1]);
        multiply<D>(d[m][n], da[m][k], y[2 * n], y[2 * n + 1]);
      }
  }
}
// 32 x 16 numbers as a first operand.
template <class D> IG_FN void as_left(unsigned (*a)[4], const float (*s)[2][4]) {
  IG_UNROLL for (int m = 0; m < 2; ++m)
    IG_UNROLL for (int n = 0; n < 2; ++n) {
      a[m][2 * n] = D::pair(s[m][n][0], s[m][n][1]);
      a[m][2 * n + 1] = D::pair(s[m][n][2], s[m][n][3]);
    }
}
template <class D> IG_FN void add_product(float (*sum)[8][4], const unsigned (*a)[4], const unsigned short* b, int lane) {
  IG_UNROLL for (int n = 0; n < 4; ++n) {
    unsigned x[4];
    transposed(x, b + n * 16, lane);
    IG_UNROLL for (int m = 0; m < 2; ++m) {
      multiply<D>(sum[m][2 * n], a[m], x[0], x[1]);
      multiply<D>(sum[m][2 * n + 1], a[m], x[2], x[3]);
    }
  }
}
IG_FN void clear(float (*sum)[8][4]) {
  IG_UNROLL for (int i = 0; i < 64; ++i) sum[i >> 5][i >> 2 & 7][i & 3] = 0.0f;
}
template <class D> IG_FN void write(unsigned short* to, long long stride, const float (*sum)[8][4], float scale, int lane) {
  to += (lane >> 2) * stride + (lane & 3) * 2;
  IG_UNROLL for (int i = 0; i < 4; ++i)
    IG_UNROLL for (int n = 0; n < 8; ++n)
      *(unsigned*)(to + i * 8 * stride + n * 8) =
        D::pair(sum[i >> 1][n][(i & 1) * 2] * scale, sum[i >> 1][n][(i & 1) * 2 + 1] * scale);
}
enum { kGradQ, kGradK, kGradV, kQ, kK, kV, kOut, kGradOut };  // operands
template <class D, int kWarps, bool kCausal> IG_FN void short_attention_grad(const Argument<ShortAttentionParams> p) {
  typedef unsigned short T;
  constexpr int N = kWarps * 32;
  IG_DYNAMIC_SHARED(memory);
  T* const sq = (T*)memory;
  T* const sk = sq + N * 72;
  T* const sv = sk + N * 72;
  T* const sd = sv + N * 72;
  float* const lse = (float*)(sd + N * 72);
  float* const delta = lse + N;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const long long b = blockIdx.x / (unsigned)p.heads, h = blockIdx.x % (unsigned)p.heads;
  const float scale = (float)p.scale, fast = scale * 1.44269504f;
  ig_wait();
#define PLACE(i) ((T*)ig_pointer(p.operands[i]) + p.at[i].offset + b * p.at[i].batch + h * p.at[i].head)
  {
    const int c = (threadIdx.x & 7) * 8, r0 = threadIdx.x >> 3;
    const T* const q = PLACE(kQ) + r0 * p.at[kQ].row + c;
    const T* const k = PLACE(kK) + r0 * p.at[kK].row + c;
    const T* const v = PLACE(kV) + r0 * p.at[kV].row + c;
    const T* const o = PLACE(kOut) + r0 * p.at[kOut].row + c;
    const T* const d = PLACE(kGradOut) + r0 * p.at[kGradOut].row + c;
    const float* const rows = (const float*)ig_pointer(p.lse) + p.lse_offset + (long long)blockIdx.x * N;
    IG_UNROLL for (int i0 = 0; i0 < 8; i0 += 4) {
      IgVec<T, 8> x[4][5];
      IG_UNROLL for (int i = 0; i < 4; ++i) {
        const long long r = (i0 + i) * (kWarps * 4);
        ig_load<8, 1>(x[i][0], q + r * p.at[kQ].row);
        ig_load<8, 1>(x[i][1], k + r * p.at[kK].row);
        ig_load<8, 1>(x[i][2], v + r * p.at[kV].row);
        ig_load<8, 1>(x[i][3], d + r * p.at[kGradOut].row);
        ig_load<8, 1>(x[i][4], o + r * p.at[kOut].row);
      }
      IG_UNROLL for (int i = 0; i < 4; ++i) {
        const int r = r0 + (i0 + i) * (kWarps * 4);
        *(IgVec<T, 8>*)(sq + r * 72 + c) = x[i][0];
        *(IgVec<T, 8>*)(sk + r * 72 + c) = x[i][1];
        *(IgVec<T, 8>*)(sv + r * 72 + c) = x[i][2];
        *(IgVec<T, 8>*)(sd + r * 72 + c) = x[i][3];
        float sum = 0.0f;
        IG_UNROLL for (int e = 0; e < 8; ++e) sum = fmaf(D::up(x[i][3].e[e]), D::up(x[i][4].e[e]), sum);
        IG_UNROLL for (int m = 1; m < 8; m <<= 1) sum += ig_shuffle(sum, m);
        if (c == 0) { delta[r] = sum; lse[r] = rows[r] * 1.44269504f; }
      }
    }
  }
  __syncthreads();
  float s[2][2][4], d[2][2][4];
  unsigned a[2][4][4], da[2][4][4], of_s[2][4], of_d[2][4];
  {  // keys and values
    const int k0 = warp * 32;
    IG_UNROLL for (int m = 0; m < 2; ++m)
      IG_UNROLL for (int k = 0; k < 4; ++k) {
        left(a[m][k], sk + (k0 + m * 16) * 72 + k * 16, lane);
        left(da[m][k], sv + (k0 + m * 16) * 72 + k * 16, lane);
      }
    float dk[2][8][4], dv[2][8][4];
    clear(dk);
    clear(dv);
    for (int q0 = kCausal ? k0 : 0; q0 < N; q0 += 16) {
      scores<D>(s, d, a, da, sq + q0 * 72, sd + q0 * 72, lane);
      IG_UNROLL for (int n = 0; n < 2; ++n)
        IG_UNROLL for (int e = 0; e < 2; ++e) {
          const int q = q0 + n * 8 + t * 2 + e;
          const float less = lse[q], mean = delta[q];
          IG_UNROLL for (int i = 0; i < 4; ++i) {  // rows g, g + 8 of both tiles
            float &x = s[i >> 1][n][(i & 1) * 2 + e], &y = d[i >> 1][n][(i & 1) * 2 + e];
            x = ig_exp2(fmaf(x, fast, -less));
            if (kCausal && k0 + i * 8 + g > q) x = 0.0f;
            y = x * (y - mean);
          }
        }
      as_left<D>(of_s, s);
      as_left<D>(of_d, d);
      add_product<D>(dv, of_s, sd + q0 * 72, lane);
      add_product<D>(dk, of_d, sq + q0 * 72, lane);
    }
    write<D>(PLACE(kGradK) + k0 * p.at[kGradK].row, p.at[kGradK].row, dk, scale, lane);
    write<D>(PLACE(kGradV) + k0 * p.at[kGradV].row, p.at[kGradV].row, dv, 1.0f, lane);
  }
  {  // queries
    const int q0 = warp * 32;
    IG_UNROLL for (int m = 0; m < 2; ++m)
      IG_UNROLL for (int k = 0; k < 4; ++k) {
        left(a[m][k], sq + (q0 + m * 16) * 72 + k * 16, lane);
        left(da[m][k], sd + (q0 + m * 16) * 72 + k * 16, lane);
      }
    float less[4], mean[4], dq[2][8][4];
    IG_UNROLL for (int i = 0; i < 4; ++i) { less[i] = lse[q0 + i * 8 + g]; mean[i] = delta[q0 + i * 8 + g]; }
    clear(dq);
    for (int k0 = 0; k0 < (kCausal ? q0 + 32 : N); k0 += 16) {
      scores<D>(s, d, a, da, sk + k0 * 72, sv + k0 * 72, lane);
      IG_UNROLL for (int n = 0; n < 2; ++n)
        IG_UNROLL for (int e = 0; e < 2; ++e)
          IG_UNROLL for (int i = 0; i < 4; ++i) {
            float x = ig_exp2(fmaf(s[i >> 1][n][(i & 1) * 2 + e], fast, -less[i])), &y = d[i >> 1][n][(i & 1) * 2 + e];
            if (kCausal && k0 + n * 8 + t * 2 + e > q0 + i * 8 + g) x = 0.0f;
            y = x * (y - mean[i]);
          }
      as_left<D>(of_d, d);
      add_product<D>(dq, of_d, sk + k0 * 72, lane);
    }
    write<D>(PLACE(kGradQ) + q0 * p.at[kGradQ].row, p.at[kGradQ].row, dq, scale, lane);
  }
#undef PLACE
}
)cuda";

}  // namespace

bool is_short_attention_grad(const LibrarySpec& spec) {
  if (spec.op != Op::AttentionGrad || spec.written != 3 || spec.operands.size() != 9) return false;
  const auto& o = spec.operands;
  const Dims& q = o[3].shape;
  if (!is_half(o[3].dtype) || q.size() != 4 || q[0] * q[1] < 1 || q[2] < 32 || q[2] > kLongest ||
      q[2] % 32 != 0 || q[3] != kHead || spec.attrs.as<AttentionAttrs>().newest())
    return false;
  for (size_t i = 0; i < 8; ++i) {
    if (o[i].dtype != o[3].dtype || !(o[i].shape == q) || o[i].stride[3] != 1 ||
        o[i].offset % 8 != 0)
      return false;
    for (int d = 0; d < 3; ++d)
      if (q[d] > 1 && o[i].stride[d] % 8 != 0) return false;
  }
  return o[8].dtype == DType::Float32 && o[8].shape.size() == 3 &&
         o[8].stride == row_major(o[8].shape);
}

CudaKernel short_attention_grad(const LibrarySpec& spec) {
  const auto& o = spec.operands;
  const Dims& q = o[3].shape;
  const auto& attrs = spec.attrs.as<AttentionAttrs>();
  ShortAttentionParams p{};
  for (size_t i = 0; i < 8; ++i)
    p.at[i] = {o[i].offset, o[i].stride[0], o[i].stride[1], o[i].stride[2]};
  p.lse_offset = o[8].offset, p.heads = q[1], p.scale = attrs.scale;
  const int64_t warps = q[2] / 32, shared = q[2] * (4 * kPitch * 2 + 2 * 4);
  CudaKernel k = make_kernel(
      "short_attention_grad", kText,
      {{instance("short_attention_grad", o[3].dtype, warps, attrs.causal()), q[0] * q[1],
        static_cast<unsigned>(warps) * 32, true, static_cast<unsigned>(shared)}},
      p);
  k.text.waits = true;
  return k;
}

}  // namespace ingot::cuda
