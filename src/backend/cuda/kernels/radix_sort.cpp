// A pass of the radix sort, over 8 bits of the key:
//
//   radix_count  a block of 256 threads per tile of 4096 keys counts the tile's digits
//   radix_scan   a block of 1024 threads per line turns the counts into first places
//   radix_move   a block of 256 threads per tile moves its keys and places
//
// A warp ranks 32 keys at once by voting on the digit's bits, and its earlier keys come first, so
// equal digits keep their order. Bound by memory bandwidth: two reads of the keys, one of the
// places, and a scattered write of both.
#include "backend/cuda/kernels/radix_sort.h"

namespace ingot::cuda {

const char* const kRadixText = R"cuda(
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

void append_radix_passes(std::vector<KernelStage>& stages, const std::string& name,
                         const std::string& arguments, int passes, int64_t lines, int64_t tiles) {
  for (int pass = 0; pass < passes; ++pass) {
    auto function = [&](const char* step) {
      return instance((name + step).c_str(), arguments, pass);
    };
    stages.push_back({function("_count"), tiles, 256, true});
    stages.push_back({function("_scan"), lines, 1024, true});
    stages.push_back({function("_move"), tiles, 256, true});
  }
}

}  // namespace ingot::cuda
