// Attention of one query per head, as decoding asks for: it waits for keys and values and for
// nothing else. A head's keys are shared out to PARTS blocks, which are a cluster. Neighbouring
// lanes share a key, each with 16 bytes of it and of its value, and each team of lanes goes through
// its keys by itself with the largest score, the sum and the weighted values so far; the teams are
// put together, then the warps, then, by the cluster's last block, the blocks. A key whose bias is
// minus infinity counts for nothing, and is not read after the first round.
#include <bit>

#include "backend/cuda/kernels/kernels.h"

namespace ingot::cuda {
namespace {

constexpr int64_t kLongest = 4096;  // keys that one block goes through, when there are few heads
constexpr int64_t kManyHeads = 96;
constexpr int kNumbers = 54;
constexpr unsigned kThreads = 256;
constexpr int64_t kMostParts = 8, kBusy = 264;  // blocks that keep a GPU of today busy

// n: pointers of o, (lse), q, k, v, (bias, (key, value)); from 10 five words an operand (o, lse, q,
// k, v, bias, key, value): offset, strides; 50 heads, 51 keys, 52 scale
const char* const kAttend = R"cuda(
template <class T, int N> IG_FN void get(IgVec<T, N>& into, const T* from, int stride) {
  if (ALIGNED) ig_load<N, 1>(into, from);
  else IG_UNROLL for (int i = 0; i < N; ++i) into.e[i] = from[(long long)i * stride];
}
extern "C" __global__ void CLUSTER __launch_bounds__(256) ENTRY0(const IgParams<54> p) {
  typedef TYPE T;
  const int PER = 16 / (int)sizeof(T), LANES = DIM / PER, TEAMS = 256 / LANES * PARTS, AHEAD = 4;
  __shared__ float values[8][DIM], mosts[8], sums[8];
  __shared__ float all_values[PARTS][DIM], all_mosts[PARTS], all_sums[PARTS];
  const int lane = threadIdx.x % LANES, part = (int)blockIdx.x % PARTS, S = (int)p.n[51];
  const int team = part * (256 / LANES) + (int)threadIdx.x / LANES, head = (int)blockIdx.x / PARTS;
  const long long b = head / (int)p.n[50], h = head % (int)p.n[50];
  const long long at_k = p.n[25] + b * p.n[26] + h * p.n[27] + lane * PER * p.n[29];
  const long long at_v = p.n[30] + b * p.n[31] + h * p.n[32] + lane * PER * p.n[34];
  if (ALIGNED && lane % 8 == 0 && p.n[K_AT] >= 0 && p.n[V_AT] >= 0 && S <= 2048)
    for (int s = team; s < S; s += TEAMS) {
      ig_prefetch((const T*)p.n[K_AT] + at_k + s * p.n[28]);
      ig_prefetch((const T*)p.n[V_AT] + at_v + s * p.n[33]);
    }
  if (PARTS > 1) ig_cluster_begin();
  ig_go();
  ig_wait();
  const T* k = (const T*)ig_pointer(p.n[K_AT]) + at_k + team * p.n[28];
  const T* v = (const T*)ig_pointer(p.n[V_AT]) + at_v + team * p.n[33];
  const long long k_step = TEAMS * p.n[28], v_step = TEAMS * p.n[33];
  const int ks = (int)p.n[29], vs = (int)p.n[34];
  MASK
  const float never = -ig_bits_f32(0x7f800000u), scale = (float)ig_bits_f64((ig_u64)p.n[52]);
  float bias[AHEAD];
  IgVec<T, PER> keys[AHEAD], vals[AHEAD];
#define ASK(wanted) \
  IG_UNROLL for (int j = 0; j < AHEAD; ++j) bias[j] = s0 + j * TEAMS < S ? BIAS : never; \
  IG_UNROLL for (int j = 0; j < AHEAD; ++j) { \
    if (wanted) { \
      get(keys[j], k + j * k_step, ks); \
      get(vals[j], v + j * v_step, vs); \
    } else { \
      IG_UNROLL for (int i = 0; i < PER; ++i) keys[j].e[i] = vals[j].e[i] = 0; \
    } \
  }
  int s0 = team;
  ASK(s0 + j * TEAMS < S)
  float q[PER], sum = 0.0f, most = never, made[PER];
  {
    IgVec<T, PER> from;
    get(from, (const T*)ig_pointer(p.n[Q_AT]) + p.n[20] + b * p.n[21] + h * p.n[22] + lane * PER * p.n[24], (int)p.n[24]);
    IG_UNROLL for (int i = 0; i < PER; ++i) { q[i] = UP(from.e[i]) * scale; made[i] = 0.0f; }
  }
  MORE
  for (int done = TEAMS * AHEAD;; done += TEAMS * AHEAD) {
    float score[AHEAD], next = most;
    IG_UNROLL for (int j = 0; j < AHEAD; ++j) {
      float dot = 0.0f;
      IG_UNROLL for (int i = 0; i < PER; ++i) dot = fmaf(q[i], UP(keys[j].e[i]), dot);
      IG_UNROLL for (int d = LANES / 2; d > 0; d >>= 1) dot += ig_shuffle(dot, d);
      score[j] = bias[j] == never ? never : bias[j] + dot;
      next = score[j] > next ? score[j] : next;
    }
    const float less = most == never ? 0.0f : ig_exp(most - next);
    sum *= less;
    IG_UNROLL for (int i = 0; i < PER; ++i) made[i] *= less;
    IG_UNROLL for (int j = 0; j < AHEAD; ++j) {
      const bool seen = bias[j] != never;  // what the first round has read of others may be anything
      const float w = seen ? ig_exp(score[j] - next) : 0.0f;
      sum += w;
      IG_UNROLL for (int i = 0; i < PER; ++i) made[i] = seen ? fmaf(w, UP(vals[j].e[i]), made[i]) : made[i];
    }
    most = next;
    if (done >= S) break;
    s0 += TEAMS * AHEAD;
    k += AHEAD * k_step; v += AHEAD * v_step;
    MASK_ON
    ASK(bias[j] != never)
  }
#undef ASK
  // The teams of a warp, then the warps, then the blocks.
  IG_UNROLL for (int d = LANES; d < 32; d <<= 1) {
    const float other = ig_shuffle(most, d), next = other > most ? other : most;
    const float mine = most == never ? 0.0f : ig_exp(most - next), theirs = other == never ? 0.0f : ig_exp(other - next);
    sum = sum * mine + ig_shuffle(sum, d) * theirs;
    IG_UNROLL for (int i = 0; i < PER; ++i) made[i] = made[i] * mine + ig_shuffle(made[i], d) * theirs;
    most = next;
  }
  const int warp = threadIdx.x >> 5;
  if ((threadIdx.x & 31) < LANES) {
    IG_UNROLL for (int i = 0; i < PER; ++i) values[warp][lane * PER + i] = made[i];
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
  if (threadIdx.x < DIM) { TOGETHER(8, mosts, sums, values) }
  if (PARTS > 1) {
    ig_cluster_wait();  // the last block is there
    if (threadIdx.x < DIM) {
      ig_put(&all_values[part][threadIdx.x], PARTS - 1, result);
      if (threadIdx.x == 0) { ig_put(&all_mosts[part], PARTS - 1, most); ig_put(&all_sums[part], PARTS - 1, total); }
    }
    ig_cluster_arrive();
    ig_cluster_wait();
    if (part != PARTS - 1) return;
    if (threadIdx.x < DIM) { TOGETHER(PARTS, all_mosts, all_sums, all_values) }
  }
#undef TOGETHER
  if (threadIdx.x >= DIM) return;
  T* o = (T*)ig_pointer(p.n[0]) + p.n[10] + b * p.n[11] + h * p.n[12];
  o[threadIdx.x * p.n[14]] = DOWN(result / total);
  LSE
}
)cuda";

// One key more, which is not among the others: the first team begins with it.
const char* const kMore = R"cuda(if (part == 0 && threadIdx.x < 32) {
    IgVec<T, PER> k1, v1;
    get(k1, (const T*)ig_pointer(p.n[KEY_AT]) + p.n[40] + b * p.n[41] + h * p.n[42] + lane * PER * p.n[44], (int)p.n[44]);
    get(v1, (const T*)ig_pointer(p.n[VALUE_AT]) + p.n[45] + b * p.n[46] + h * p.n[47] + lane * PER * p.n[49], (int)p.n[49]);
    float dot = 0.0f;
    IG_UNROLL for (int i = 0; i < PER; ++i) dot = fmaf(q[i], UP(k1.e[i]), dot);
    IG_UNROLL for (int d = LANES / 2; d > 0; d >>= 1) dot += ig_shuffle(dot, d);
    if (team == 0) {
      most = dot; sum = 1.0f;
      IG_UNROLL for (int i = 0; i < PER; ++i) made[i] = UP(v1.e[i]);
    }
  })cuda";

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
  const bool lse = spec.written == 2, bias = o.size() > static_cast<size_t>(spec.written) + 3;
  const int first = spec.written;
  const DType t = o[static_cast<size_t>(first)].dtype;
  const TextType type = text_type(t);
  const int64_t per = 16 / static_cast<int64_t>(size_of(t));
  // In pieces of 16 bytes, everywhere but in the result and the bias?
  bool aligned = true;
  for (int i = first; i < static_cast<int>(o.size()); ++i) {
    if (bias && i == first + 3) continue;
    const OperandSpec& x = o[static_cast<size_t>(i)];
    aligned = aligned && x.stride[3] == 1 && x.offset % per == 0;
    for (int d = 0; d < 3; ++d) aligned = aligned && (x.shape[d] == 1 || x.stride[d] % per == 0);
  }
  std::string body = kAttend;
  replace_all(body, "MASK_ON", bias ? "mask += AHEAD * TEAMS * p.n[38];" : "");
  replace_all(body, "MASK",
              bias ? "const T* mask = (const T*)ig_pointer(p.n[BIAS_AT]) + p.n[35] + b * p.n[36] + "
                     "h * p.n[37] "
                     "+ team * p.n[38];"
                   : "");
  replace_all(body, "BIAS_AT", std::to_string(first + 3));
  replace_all(body, "BIAS", bias ? "UP(mask[j * TEAMS * p.n[38]])" : "0.0f");
  replace_all(body, "LSE",
              lse ? "if (threadIdx.x == 0) ((float*)ig_pointer(p.n[1]))[p.n[15] + b * p.n[16] + h "
                    "* p.n[17]] = "
                    "most + logf(total);"
                  : "");
  replace_all(body, "MORE", spec.attrs.as<AttentionAttrs>().newest() ? kMore : "");
  const std::pair<const char*, int> places[] = {
      {"Q_AT", 0}, {"K_AT", 1}, {"V_AT", 2}, {"KEY_AT", 4}, {"VALUE_AT", 5}};
  for (const auto& [name, i] : places) replace_all(body, name, std::to_string(first + i));
  const int64_t heads = o[0].shape[0] * o[0].shape[1],
                keys = o[static_cast<size_t>(first) + 1].shape[2];
  int64_t parts = 1;
  while (clusters && parts < kMostParts && 2 * parts * heads <= kBusy && parts * 128 < keys)
    parts *= 2;
  replace_all(body, "CLUSTER", parts > 1 ? "__cluster_dims__(PARTS, 1, 1)" : "");
  replace_all(body, "PARTS", std::to_string(parts));
  replace_all(body, "ALIGNED", aligned ? "true" : "false");
  replace_all(body, "TYPE", type.memory);
  replace_all(body, "UP(", type.up + "(");
  replace_all(body, "DOWN(", type.down + "(");
  replace_all(body, "DIM", std::to_string(o[0].shape[3]));
  CudaKernel k;
  k.text = hand_text("row_attention", body, {{"", kThreads, true}});
  k.text.waits = true;
  std::vector<int64_t>& n = k.launch.words;
  n.assign(kNumbers, 0);
  n[50] = o[0].shape[1], n[51] = keys;
  n[52] = std::bit_cast<int64_t>(spec.attrs.as<AttentionAttrs>().scale);
  for (size_t i = 0; i < o.size(); ++i) {
    const size_t at = 10 + 5 * (lse || i == 0 ? i : i + 1);
    n[at] = o[i].offset;
    for (int d = 0; d < o[i].shape.size(); ++d)  // a bias may be the same for all
      n[at + 1 + static_cast<size_t>(d)] = o[i].shape[d] == 1 ? 0 : o[i].stride[d];
  }
  // Of the bias, word 38 is the stride from key to key; of the others it is behind two dims.
  if (bias) {
    const OperandSpec& x = o[static_cast<size_t>(first) + 3];
    n[38] = x.shape[3] == 1 ? 0 : x.stride[3];
  }
  k.launch.stages = {{static_cast<unsigned>(heads * parts), 0}};
  k.launch.part_words = kNumbers;
  return k;
}

}  // namespace ingot::cuda
