// Sort: where the elements along an axis stand in sorted order.
//
// Elements become unsigned keys of the same order (NaN the largest, both zeros equal; inverted for
// largest first). Short: lines of up to 2048 elements, as many as fit into a block's shared memory,
// by a bitonic network over keys and places; places make all pairs different, so the result is the
// stable order. Long: a stable radix sort over global memory, 8 bits a pass. Each block counts the
// digits of a tile of 4096 keys; one block for each line turns the counts into first places; then
// each block moves its tile. A warp ranks 32 keys at once by voting on the digit's bits, and its
// earlier keys come first, so equal digits keep their order.
#include <algorithm>

#include "backend/cuda/kernels/kernels.h"

namespace ingot::cuda {
namespace {

constexpr int kNumbers = 72;
constexpr int64_t kShort = 2048;

// n: 0 out, 1 in; 3 lines, 4 elements of a line, 5 places wanted; 6, 7 strides along the axis of
// out and in; 8, 9 offsets; 10 dims of a line's number; 11 smallest power of two that holds a line;
// 12 lines a block; 13 tiles of a line; 20-24 byte offsets in scratch: keys, places, their second
// copies, counts; from 28 three words a dim: size, strides
const char* const kCommon = R"cuda(
typedef TYPE T; typedef KEY K;
typedef IgParams<72> P;
IG_FN K key_of(T v) {
  union { T v; RAW u; } x; x.v = v;
  K u = (K)x.u;
  const K sign = K(1) << (sizeof(T) * 8 - 1);
  if (EXPONENT) {
    if ((u & K(sign - 1)) > K(EXPONENT)) u = K(sign | K(sign - 1));
    else if (u == sign || u == 0) u = sign;
    else u = (u & sign) ? K(~u & (sign | K(sign - 1))) : K(u | sign);
  } else if (SIGNED) {
    u ^= sign;
  }
  return DESCENDING ? K(~u & (sign | K(sign - 1))) : u;
}
)cuda";

const char* const kShortText = R"cuda(
extern "C" __global__ void __launch_bounds__(512) ENTRY0(const P p) {
  __shared__ K key[2048];
  __shared__ unsigned place[2048];
  const int size = (int)p.n[11], lines = (int)p.n[12], n = (int)p.n[4];
  const long long first = blockIdx.x * p.n[12];
  const T* in = (const T*)ig_pointer(p.n[1]);
  for (int e = threadIdx.x; e < lines * size; e += 512) {
    const long long line = first + e / size;
    const int k = e % size;
    // What fills up stands behind every element.
    key[e] = ~K(0); place[e] = 0xffffffffu;
    if (line >= p.n[3] || k >= n) continue;
    long long o, i;
    line_at(p, line, o, i);
    key[e] = key_of(in[i + k * p.n[7]]);
    place[e] = (unsigned)k;
  }
  __syncthreads();
  for (int part = 2; part <= size; part *= 2)
    for (int step = part / 2; step > 0; step /= 2) {
      for (int e = threadIdx.x; e < lines * size / 2; e += 512) {
        const int a = 2 * e - (e & (step - 1)), b = a + step;
        const bool up = (a & part) == 0 || part == size;
        const bool swap = key[a] != key[b] ? (key[a] > key[b]) == up : (place[a] > place[b]) == up;
        if (!swap) continue;
        const K x = key[a]; key[a] = key[b]; key[b] = x;
        const unsigned y = place[a]; place[a] = place[b]; place[b] = y;
      }
      __syncthreads();
    }
  long long* out = (long long*)ig_pointer(p.n[0]);
  const int wanted = (int)p.n[5];
  for (int e = threadIdx.x; e < lines * wanted; e += 512) {
    const long long line = first + e / wanted;
    if (line >= p.n[3]) return;
    long long o, i;
    line_at(p, line, o, i);
    out[o + e % wanted * p.n[6]] = (long long)place[e / wanted * size + e % wanted];
  }
}
)cuda";

const char* const kLongText = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const P p) {
  const T* in = (const T*)ig_pointer(p.n[1]);
  K* keys = (K*)(p.scratch + p.n[20]);
  unsigned* places = (unsigned*)(p.scratch + p.n[21]);
  const long long line = blockIdx.x / p.n[13], begin = blockIdx.x % p.n[13] * 4096;
  long long o, i;
  line_at(p, line, o, i);
  for (long long k = begin + threadIdx.x; k < p.n[4] && k < begin + 4096; k += 256) {
    keys[line * p.n[4] + k] = key_of(in[i + k * p.n[7]]);
    places[line * p.n[4] + k] = (unsigned)k;
  }
}
IG_FN RadixLine<K> line_of(const P& p, int pass, long long line) {
  const int from = 20 + 2 * (pass & 1), to = 22 - 2 * (pass & 1);
  RadixLine<K> r;
  r.keys = (const K*)(p.scratch + p.n[from]) + line * p.n[4];
  r.places = (const unsigned*)(p.scratch + p.n[from + 1]) + line * p.n[4];
  r.keys_to = (K*)(p.scratch + p.n[to]) + line * p.n[4];
  r.places_to = (unsigned*)(p.scratch + p.n[to + 1]) + line * p.n[4];
  r.counts = (unsigned*)(p.scratch + p.n[24]) + line * 256 * p.n[13];
  r.n = p.n[4]; r.tiles = p.n[13]; r.shift = 8 * pass;
  return r;
}
)cuda";

const char* const kPass = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY@1(const P p) { radix_count(line_of(p, @0, blockIdx.x / p.n[13]), blockIdx.x % p.n[13]); }
extern "C" __global__ void __launch_bounds__(1024) ENTRY@2(const P p) { radix_scan(line_of(p, @0, blockIdx.x)); }
extern "C" __global__ void __launch_bounds__(256) ENTRY@3(const P p) { radix_move(line_of(p, @0, blockIdx.x / p.n[13]), blockIdx.x % p.n[13]); }
)cuda";

const char* const kOut = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY@1(const P p) {
  const unsigned* places = (const unsigned*)(p.scratch + p.n[21 + 2 * SORTED]);
  const long long line = blockIdx.x / p.n[13], begin = blockIdx.x % p.n[13] * 4096;
  long long* out = (long long*)ig_pointer(p.n[0]);
  long long o, i;
  line_at(p, line, o, i);
  for (long long k = begin + threadIdx.x; k < p.n[5] && k < begin + 4096; k += 256) out[o + k * p.n[6]] = (long long)places[line * p.n[4] + k];
}
)cuda";

const char* const kRadix = R"cuda(
#ifdef IG_EMULATED
#define IG_OUTLINE static inline
#else
#define IG_OUTLINE static __device__ __noinline__
#endif
template <class K> struct RadixLine {
  const K* keys; const unsigned* places; K* keys_to; unsigned* places_to; unsigned* counts;
  long long n, tiles; int shift;
};
template <class K> IG_OUTLINE void radix_count(const RadixLine<K>& r, long long tile) {
  __shared__ unsigned count[256];
  count[threadIdx.x] = 0;
  __syncthreads();
  for (long long k = tile * 4096 + threadIdx.x; k < r.n && k < (tile + 1) * 4096; k += 256)
    atomicAdd(&count[(unsigned)(r.keys[k] >> r.shift) & 255u], 1u);
  __syncthreads();
  r.counts[threadIdx.x * r.tiles + tile] = count[threadIdx.x];
}
// Counts become first places: all of digit 0, tile by tile, then all of digit 1, ...
template <class K> IG_OUTLINE void radix_scan(const RadixLine<K>& r) {
  __shared__ unsigned sum[1024];
  unsigned before = 0;
  const long long all = 256 * r.tiles;
  for (long long base = 0; base < all; base += 4096) {
    unsigned own[4], total = 0;
    for (int j = 0; j < 4; ++j) {
      const long long k = base + threadIdx.x * 4ll + j;
      own[j] = k < all ? r.counts[k] : 0u;
      total += own[j];
    }
    sum[threadIdx.x] = total;
    __syncthreads();
    for (int step = 1; step < 1024; step *= 2) {
      const unsigned left = threadIdx.x >= (unsigned)step ? sum[threadIdx.x - step] : 0u;
      __syncthreads();
      sum[threadIdx.x] += left;
      __syncthreads();
    }
    unsigned at = before + sum[threadIdx.x] - total;
    for (int j = 0; j < 4; ++j) {
      const long long k = base + threadIdx.x * 4ll + j;
      if (k < all) r.counts[k] = at;
      at += own[j];
    }
    before += sum[1023];
    __syncthreads();
  }
}
template <class K> IG_OUTLINE void radix_move(const RadixLine<K>& r, long long tile) {
  __shared__ unsigned count[8][256];
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  for (int w = 0; w < 8; ++w) count[w][threadIdx.x] = 0;
  __syncthreads();
  K key[16]; unsigned place[16], rank[16];
  const long long first = tile * 4096 + warp * 512 + lane;
  IG_UNROLL for (int j = 0; j < 16; ++j) {
    const long long k = first + j * 32;
    const bool here = k < r.n;
    key[j] = here ? r.keys[k] : K(0);
    place[j] = here ? r.places[k] : 0u;
    const unsigned digit = (unsigned)(key[j] >> r.shift) & 255u;
    unsigned same = __ballot_sync(0xffffffffu, here);
    IG_UNROLL for (int b = 0; b < 8; ++b) {
      const bool bit = (digit >> b) & 1u;
      const unsigned votes = __ballot_sync(0xffffffffu, bit);
      same &= bit ? votes : ~votes;
    }
    const unsigned before = same & ((1u << lane) - 1u);
    rank[j] = count[warp][digit] + (unsigned)__popc(before);
    __syncwarp();
    if (here && before == 0) count[warp][digit] += (unsigned)__popc(same);
    __syncwarp();
  }
  __syncthreads();
  unsigned at = r.counts[threadIdx.x * r.tiles + tile];
  for (int w = 0; w < 8; ++w) {
    const unsigned c = count[w][threadIdx.x];
    count[w][threadIdx.x] = at;
    at += c;
  }
  __syncthreads();
  IG_UNROLL for (int j = 0; j < 16; ++j) {
    if (first + j * 32 >= r.n) break;
    const unsigned to = count[warp][(unsigned)(key[j] >> r.shift) & 255u] + rank[j];
    r.keys_to[to] = key[j];
    r.places_to[to] = place[j];
  }
}
#undef IG_OUTLINE
)cuda";

std::string common(const LibrarySpec& spec) {
  DType t = spec.operands[1].dtype;
  size_t size = size_of(t);
  const char* raw[] = {"", "unsigned char", "unsigned short", "", "unsigned", "", "", "", "ig_u64"};
  const char* exponent = t == DType::Float64    ? "0x7ff0000000000000ull"
                         : t == DType::Float32  ? "0x7f800000u"
                         : t == DType::Float16  ? "0x7c00u"
                         : t == DType::BFloat16 ? "0x7f80u"
                                                : "0";
  std::string s = kCommon + line_at_text(8, 10);
  replace_all(s, "TYPE", text_type(t).memory);
  replace_all(s, "KEY", size == 8 ? "ig_u64" : "unsigned");
  replace_all(s, "RAW", raw[size]);
  replace_all(s, "EXPONENT", exponent);
  replace_all(s, "SIGNED", t == DType::UInt8 || t == DType::Bool ? "0" : "1");
  replace_all(s, "DESCENDING", spec.attrs.as<SortAttrs>().descending ? "1" : "0");
  return s;
}

std::vector<int64_t> numbers(const LibrarySpec& spec) {
  const OperandSpec &out = spec.operands[0], &in = spec.operands[1];
  const int axis = spec.attrs.as<SortAttrs>().axis;
  std::vector<int64_t> n(kNumbers, 0);
  n[10] = put_lines(spec, n);
  n[4] = in.shape[axis], n[5] = out.shape[axis];
  n[6] = out.stride[axis], n[7] = in.stride[axis], n[8] = out.offset, n[9] = in.offset;
  return n;
}

CudaKernel short_lines(const LibrarySpec& spec, std::vector<int64_t> n) {
  CudaKernel k;
  n[11] = 2;
  while (n[11] < n[4]) n[11] *= 2;
  n[12] = kShort / n[11];
  k.text = hand_text("sort_short", common(spec) + kShortText, {{"", 512, true}});
  k.launch.stages = {{static_cast<unsigned>((n[3] + n[12] - 1) / n[12]), 0}};
  k.launch.words = std::move(n);
  k.launch.part_words = kNumbers;
  return k;
}

CudaKernel long_lines(const LibrarySpec& spec, std::vector<int64_t> n) {
  CudaKernel k;
  const size_t key = size_of(spec.operands[1].dtype) == 8 ? 8 : 4;
  const auto passes = static_cast<int>(size_of(spec.operands[1].dtype));
  n[13] = (n[4] + kRadixTile - 1) / kRadixTile;
  const auto tiles = static_cast<unsigned>(n[3] * n[13]), lines = static_cast<unsigned>(n[3]);
  std::string body = common(spec) + kRadix + kLongText;
  std::vector<CudaStage> stages{{"", 256, false}};
  k.launch.stages = {{tiles, 0}};
  append_radix_passes(body, stages, k.launch.stages, kPass, passes, lines, tiles);
  std::string last = kOut;
  replace_all(last, "ENTRY@1", "ENTRY" + std::to_string(stages.size()));
  replace_all(last, "SORTED", passes % 2 ? "1" : "0");
  stages.push_back({"", 256, false});
  k.launch.stages.push_back({tiles, 0});
  k.text = hand_text("sort_long", body + last, stages);
  int64_t at = 0;
  auto take = [&](int64_t bytes) {
    int64_t here = at;
    at += (bytes + 255) / 256 * 256;
    return here;
  };
  const int64_t elements = n[3] * n[4];
  for (size_t copy = 0; copy < 2; ++copy) {
    n[20 + 2 * copy] = take(elements * static_cast<int64_t>(key));
    n[21 + 2 * copy] = take(elements * 4);
  }
  n[24] = take(static_cast<int64_t>(tiles) * 256 * 4);
  k.launch.scratch_bytes = static_cast<size_t>(at);
  k.launch.words = std::move(n);
  k.launch.part_words = kNumbers;
  return k;
}

}  // namespace

const char* radix_text() { return kRadix; }

void append_radix_passes(std::string& body, std::vector<CudaStage>& stages,
                         std::vector<CudaLaunch::Stage>& grids, const char* pass_text, int passes,
                         unsigned lines, unsigned tiles) {
  for (int pass = 0; pass < passes; ++pass) {
    std::string part = pass_text;
    for (int s = 1; s <= 3; ++s)
      replace_all(part, "ENTRY@" + std::to_string(s),
                  "ENTRY" + std::to_string(stages.size() + static_cast<size_t>(s) - 1));
    replace_all(part, "@0", std::to_string(pass));
    body += part;
    stages.insert(stages.end(), {{"", 256, true}, {"", 1024, true}, {"", 256, true}});
    grids.insert(grids.end(), {{tiles, 0}, {lines, 0}, {tiles, 0}});
  }
}

bool supports_sort(const LibrarySpec& spec) {
  const OperandSpec& in = spec.operands[1];
  const int64_t length = in.shape[spec.attrs.as<SortAttrs>().axis];
  const int64_t tiles = (length + kRadixTile - 1) / kRadixTile;
  return length < (int64_t{1} << 31) &&
         in.shape.numel() / std::max<int64_t>(1, length) * tiles < (int64_t{1} << 31);
}

CudaKernel sort(const LibrarySpec& spec) {
  std::vector<int64_t> n = numbers(spec);
  return n[4] <= kShort ? short_lines(spec, std::move(n)) : long_lines(spec, std::move(n));
}

}  // namespace ingot::cuda
