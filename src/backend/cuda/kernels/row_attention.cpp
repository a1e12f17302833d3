// Attention of one query per head, as decoding needs it: out = softmax(q k^T scale + bias) v, and
// its log-sum-exp where it is wanted.
//
// Launch: kParts blocks of 256 threads a head, which form a cluster (sm_90) when there are few
// heads and many keys. Neighbouring lanes share a key, each with 16 bytes of it and of its value;
// each team of lanes goes through its keys by itself with the largest score, the sum and the
// weighted values so far (online softmax). The teams are combined, then the warps, then, by the
// cluster's last block, the blocks. Bound by the bandwidth of keys and values, which are read once,
// four keys a team in flight; they are prefetched into L2 while the previous kernel still runs. A
// key whose bias is minus infinity counts for nothing, and is not read after the first round.
#include <bit>

#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {
namespace {

constexpr int64_t kLongest = 4096;  // keys that one block goes through, when there are few heads
constexpr int64_t kManyHeads = 96;
constexpr unsigned kThreads = 256;
constexpr int64_t kMostParts = 8, kBusy = 264;  // blocks that keep a GPU of today busy

INGOT_KERNEL_PARAMS(RowAttentionParams, {
  struct Operand {
    long long offset;
    long long batch;  // strides; 0 where the operand is the same for all
    long long head;
    long long row;  // from query to query, from key to key
    long long dim;
  };
  Address operands[8];  // out, (lse), q, k, v, (bias, (newest key, its value))
  long long unused[2];  // keeps the offsets in the machine code as they were measured
  Operand out;
  Operand lse;
  Operand q;
  Operand k;
  Operand v;
  Operand bias;  // row: from key to key
  Operand key;
  Operand value;
  long long heads;
  long long keys;
  double scale;
});

// C: the dtype D, kDim (of a head), kParts, kAligned (in pieces of 16 bytes, everywhere but in the
// result and the bias), kMask, kNewest, kLse.
const char* const kText = R"cuda(
// N elements: one access of 16 bytes where everything is aligned.
template <bool kAligned, class T, int N> IG_FN void get(IgVec<T, N>& into, const T* from, int stride) {
  if (kAligned) ig_load<N, 1>(into, from);
  else IG_UNROLL for (int i = 0; i < N; ++i) into.e[i] = from[(long long)i * stride];
}
template <class C> IG_FN void row_attention(const Argument<RowAttentionParams> p) {
  typedef typename C::D D;
  typedef typename D::Memory T;
  constexpr int kFirst = C::kLse ? 2 : 1, kDim = C::kDim, kParts = C::kParts;
  constexpr int kPer = 16 / (int)sizeof(T), kLanes = kDim / kPer, kTeams = 256 / kLanes * kParts, kAhead = 4;
  __shared__ float values[8][kDim], mosts[8], sums[8];
  __shared__ float all_values[kParts][kDim], all_mosts[kParts], all_sums[kParts];
  const int lane = threadIdx.x % kLanes, part = (int)blockIdx.x % kParts, S = (int)p.keys;
  const int team = part * (256 / kLanes) + (int)threadIdx.x / kLanes, head = (int)blockIdx.x / kParts;
  const long long b = head / (int)p.heads, h = head % (int)p.heads;
  const long long at_k = p.k.offset + b * p.k.batch + h * p.k.head + lane * kPer * p.k.dim;
  const long long at_v = p.v.offset + b * p.v.batch + h * p.v.head + lane * kPer * p.v.dim;
  if (C::kAligned && lane % 8 == 0 && p.operands[kFirst + 1] >= 0 && p.operands[kFirst + 2] >= 0 && S <= 2048)
    for (int s = team; s < S; s += kTeams) {
      ig_prefetch((const T*)p.operands[kFirst + 1] + at_k + s * p.k.row);
      ig_prefetch((const T*)p.operands[kFirst + 2] + at_v + s * p.v.row);
    }
  if (kParts > 1) ig_cluster_begin();
  ig_go();
  ig_wait();
  const T* k = (const T*)ig_pointer(p.operands[kFirst + 1]) + at_k + team * p.k.row;
  const T* v = (const T*)ig_pointer(p.operands[kFirst + 2]) + at_v + team * p.v.row;
  const long long k_step = kTeams * p.k.row, v_step = kTeams * p.v.row;
  const int ks = (int)p.k.dim, vs = (int)p.v.dim;
  const T* mask = C::kMask ? (const T*)ig_pointer(p.operands[kFirst + 3]) + p.bias.offset + b * p.bias.batch +
                                 h * p.bias.head + team * p.bias.row
                           : (const T*)0;
  const float never = -ig_bits_f32(0x7f800000u), scale = (float)p.scale;
  float bias[kAhead];
  IgVec<T, kPer> keys[kAhead], vals[kAhead];
#define ASK(wanted) \
  IG_UNROLL for (int j = 0; j < kAhead; ++j) \
    bias[j] = s0 + j * kTeams < S ? (C::kMask ? D::up(mask[j * kTeams * p.bias.row]) : 0.0f) : never; \
  IG_UNROLL for (int j = 0; j < kAhead; ++j) { \
    if (wanted) { \
      get<C::kAligned>(keys[j], k + j * k_step, ks); \
      get<C::kAligned>(vals[j], v + j * v_step, vs); \
    } else { \
      IG_UNROLL for (int i = 0; i < kPer; ++i) keys[j].e[i] = vals[j].e[i] = 0; \
    } \
  }
  int s0 = team;
  ASK(s0 + j * kTeams < S)
  float q[kPer], sum = 0.0f, most = never, made[kPer];
  {
    IgVec<T, kPer> from;
    get<C::kAligned>(from, (const T*)ig_pointer(p.operands[kFirst]) + p.q.offset + b * p.q.batch + h * p.q.head +
                               lane * kPer * p.q.dim, (int)p.q.dim);
    IG_UNROLL for (int i = 0; i < kPer; ++i) { q[i] = D::up(from.e[i]) * scale; made[i] = 0.0f; }
  }
  if (C::kNewest && part == 0 && threadIdx.x < 32) {  // one more key, kept apart from the others: the first team begins with it
    IgVec<T, kPer> k1, v1;
    get<C::kAligned>(k1, (const T*)ig_pointer(p.operands[kFirst + 4]) + p.key.offset + b * p.key.batch + h * p.key.head +
                             lane * kPer * p.key.dim, (int)p.key.dim);
    get<C::kAligned>(v1, (const T*)ig_pointer(p.operands[kFirst + 5]) + p.value.offset + b * p.value.batch +
                             h * p.value.head + lane * kPer * p.value.dim, (int)p.value.dim);
    float dot = 0.0f;
    IG_UNROLL for (int i = 0; i < kPer; ++i) dot = fmaf(q[i], D::up(k1.e[i]), dot);
    IG_UNROLL for (int d = kLanes / 2; d > 0; d >>= 1) dot += ig_shuffle(dot, d);
    if (team == 0) {
      most = dot; sum = 1.0f;
      IG_UNROLL for (int i = 0; i < kPer; ++i) made[i] = D::up(v1.e[i]);
    }
  }
  for (int done = kTeams * kAhead;; done += kTeams * kAhead) {
    float score[kAhead], next = most;
    IG_UNROLL for (int j = 0; j < kAhead; ++j) {
      float dot = 0.0f;
      IG_UNROLL for (int i = 0; i < kPer; ++i) dot = fmaf(q[i], D::up(keys[j].e[i]), dot);
      IG_UNROLL for (int d = kLanes / 2; d > 0; d >>= 1) dot += ig_shuffle(dot, d);
      score[j] = bias[j] == never ? never : bias[j] + dot;
      next = score[j] > next ? score[j] : next;
    }
    const float less = most == never ? 0.0f : ig_exp(most - next);
    sum *= less;
    IG_UNROLL for (int i = 0; i < kPer; ++i) made[i] *= less;
    IG_UNROLL for (int j = 0; j < kAhead; ++j) {
      const bool seen = bias[j] != never;  // what the first round has read of others may be anything
      const float w = seen ? ig_exp(score[j] - next) : 0.0f;
      sum += w;
      IG_UNROLL for (int i = 0; i < kPer; ++i) made[i] = seen ? fmaf(w, D::up(vals[j].e[i]), made[i]) : made[i];
    }
    most = next;
    if (done >= S) break;
    s0 += kTeams * kAhead;
    k += kAhead * k_step; v += kAhead * v_step;
    if (C::kMask) mask += kAhead * kTeams * p.bias.row;
    ASK(bias[j] != never)
  }
#undef ASK
  // The teams of a warp, then the warps, then the blocks.
  IG_UNROLL for (int d = kLanes; d < 32; d <<= 1) {
    const float other = ig_shuffle(most, d), next = other > most ? other : most;
    const float mine = most == never ? 0.0f : ig_exp(most - next), theirs = other == never ? 0.0f : ig_exp(other - next);
    sum = sum * mine + ig_shuffle(sum, d) * theirs;
    IG_UNROLL for (int i = 0; i < kPer; ++i) made[i] = made[i] * mine + ig_shuffle(made[i], d) * theirs;
    most = next;
  }
  const int warp = threadIdx.x >> 5;
  if ((threadIdx.x & 31) < kLanes) {
    IG_UNROLL for (int i = 0; i < kPer; ++i) values[warp][lane * kPer + i] = made[i];
    if (lane == 0) { mosts[warp] = most; sums[warp] = sum; }
  }
  __syncthreads();
#define TOGETHER(n, mosts, sums, values) \
  total = result = 0.0f; \
  most = never; \
  IG_UNROLL for (int w = 0; w < n; ++w) most = mosts[w] > most ? mosts[w] : most; \
  IG_UNROLL for (int w = 0; w < n; ++w) { \
    const float less = mosts[w] == never ? 0.0f : ig_exp(mosts[w] - most); \
    total += sums[w] * less; \
    result += values[w][threadIdx.x] * less; \
  }
  float total = 0.0f, result = 0.0f;
  if (threadIdx.x < kDim) { TOGETHER(8, mosts, sums, values) }
  if (kParts > 1) {
    ig_cluster_wait();  // the last block is there
    if (threadIdx.x < kDim) {
      ig_put(&all_values[part][threadIdx.x], kParts - 1, result);
      if (threadIdx.x == 0) { ig_put(&all_mosts[part], kParts - 1, most); ig_put(&all_sums[part], kParts - 1, total); }
    }
    ig_cluster_arrive();
    ig_cluster_wait();
    if (part != kParts - 1) return;
    if (threadIdx.x < kDim) { TOGETHER(kParts, all_mosts, all_sums, all_values) }
  }
#undef TOGETHER
  if (threadIdx.x >= kDim) return;
  T* o = (T*)ig_pointer(p.operands[0]) + p.out.offset + b * p.out.batch + h * p.out.head;
  o[threadIdx.x * p.out.dim] = D::down(result / total);
  if (C::kLse && threadIdx.x == 0)
    ((float*)ig_pointer(p.operands[1]))[p.lse.offset + b * p.lse.batch + h * p.lse.head] = most + logf(total);
}
)cuda";

}  // namespace

bool is_row_attention(const LibrarySpec& spec) {
  if (spec.op != Op::Attention || spec.attrs.as<AttentionAttrs>().causal()) return false;
  const bool more = spec.attrs.as<AttentionAttrs>().newest();
  const size_t first = static_cast<size_t>(spec.written), n = spec.operands.size();
  if (more ? n != first + 6 : n != first + 3 && n != first + 4) return false;
  const auto& o = spec.operands;
  const DType t = o[first].dtype;
  if (!(is_half(t) || t == DType::Float32)) return false;
  for (size_t i = 0; i < n; ++i)
    if (o[i].shape.size() != (i == 1 && first == 2 ? 3 : 4) ||
        (o[i].dtype != t && !(i == 1 && first == 2)))
      return false;
  const Dims &q = o[first].shape, &k = o[first + 1].shape, &v = o[first + 2].shape;
  const int64_t per = 16 / static_cast<int64_t>(size_of(t)), lanes = q[3] / per;
  if (q[2] != 1 || q[3] % per != 0 || !std::has_single_bit(static_cast<uint64_t>(lanes)) ||
      lanes > 32)
    return false;
  if (k[0] != q[0] || k[1] != q[1] || !(v == k) || k[2] < 1 || k[2] > (int64_t{1} << 30))
    return false;
  if (q[0] * q[1] < 1 || (k[2] > kLongest && q[0] * q[1] < kManyHeads)) return false;
  if (n == first + 3) return true;
  if (more && !(o[first + 4].shape == q && o[first + 5].shape == q)) return false;
  const Dims& bias = o[first + 3].shape;
  return (bias[0] == 1 || bias[0] == q[0]) && (bias[1] == 1 || bias[1] == q[1]) && bias[2] == 1 &&
         (bias[3] == 1 || bias[3] == k[2]);
}

CudaKernel row_attention(const LibrarySpec& spec, bool clusters) {
  const auto& o = spec.operands;
  const auto first = static_cast<size_t>(spec.written);
  const bool lse = first == 2, bias = o.size() > first + 3;
  const DType t = o[first].dtype;
  const int64_t per = 16 / static_cast<int64_t>(size_of(t));
  bool aligned = true;
  for (size_t i = first; i < o.size(); ++i) {
    if (bias && i == first + 3) continue;
    const OperandSpec& x = o[i];
    aligned = aligned && x.stride[3] == 1 && x.offset % per == 0;
    for (int d = 0; d < 3; ++d) aligned = aligned && (x.shape[d] == 1 || x.stride[d] % per == 0);
  }
  RowAttentionParams p{};
  p.heads = o[0].shape[1], p.keys = o[first + 1].shape[2];
  p.scale = spec.attrs.as<AttentionAttrs>().scale;
  auto operand = [&](size_t i) {
    RowAttentionParams::Operand x{o[i].offset, 0, 0, 0, 0};
    long long* const strides[] = {&x.batch, &x.head, &x.row, &x.dim};
    for (int d = 0; d < o[i].shape.size(); ++d)
      *strides[d] = o[i].shape[d] == 1 ? 0 : o[i].stride[d];
    return x;
  };
  p.out = operand(0);
  if (lse) p.lse = operand(1);
  RowAttentionParams::Operand* const inputs[] = {&p.q, &p.k, &p.v, &p.bias, &p.key, &p.value};
  for (size_t i = first; i < o.size(); ++i) *inputs[i - first] = operand(i);

  if (bias) p.bias.row = p.bias.dim;

  const int64_t heads = o[0].shape[0] * o[0].shape[1];
  int parts = 1;
  while (clusters && parts < kMostParts && 2 * parts * heads <= kBusy && parts * 128 < p.keys)
    parts *= 2;
  CallTraits c;
  c.type("D", t).value("kDim", o[0].shape[3]).value("kParts", parts).flag("kAligned", aligned);
  c.flag("kMask", bias).flag("kNewest", spec.attrs.as<AttentionAttrs>().newest());
  c.flag("kLse", lse);
  CudaKernel kernel =
      make_kernel("row_attention", c.text() + kText,
                  {{"row_attention<Call>", heads * parts, kThreads, true, 0, parts}}, p);
  kernel.text.waits = true;
  return kernel;
}

}  // namespace ingot::cuda
