// Sorts lines of more than 2048 elements: a stable radix sort over global memory, 8 bits a pass.
//
// Launch: keys, then three stages a pass (radix_sort.cpp), then the places that are wanted; a block
// per tile of 4096 elements of a line. Bound by memory bandwidth, a pass per byte of the dtype.
#include "backend/cuda/kernels/radix_sort.h"
#include "backend/cuda/kernels/sort.h"

namespace ingot::cuda {
namespace {

const char* const kText = R"cuda(
// Keys and places of a tile, before the first pass.
template <class D, bool kDescending> IG_FN void sort_long_keys(const Argument<SortParams>& p) {
  typedef SortKey<D, kDescending> Key;
  typedef typename Key::T T;
  typedef typename Key::K K;
  const T* in = (const T*)ig_pointer(p.in);
  K* keys = (K*)(p.scratch + p.copies[0].keys);
  unsigned* places = (unsigned*)(p.scratch + p.copies[0].places);
  const long long line = blockIdx.x / p.tiles, begin = blockIdx.x % p.tiles * 4096;
  long long o, i;
  line_at(p, line, o, i);
  for (long long k = begin + threadIdx.x; k < p.length && k < begin + 4096; k += 256) {
    keys[line * p.length + k] = Key::of(in[i + k * p.in_stride]);
    places[line * p.length + k] = (unsigned)k;
  }
}
// A line as pass kPass finds it: from one copy to the other.
template <class K, int kPass> IG_FN RadixLine<K> line_of(const Argument<SortParams>& p, long long line) {
  const auto &from = p.copies[kPass & 1], &to = p.copies[1 - (kPass & 1)];
  RadixLine<K> r;
  r.keys = (const K*)(p.scratch + from.keys) + line * p.length;
  r.places = (const unsigned*)(p.scratch + from.places) + line * p.length;
  r.keys_to = (K*)(p.scratch + to.keys) + line * p.length;
  r.places_to = (unsigned*)(p.scratch + to.places) + line * p.length;
  r.counts = (unsigned*)(p.scratch + p.counts) + line * 256 * p.tiles;
  r.n = p.length; r.tiles = p.tiles; r.shift = 8 * kPass;
  return r;
}
template <class K, int kPass> IG_FN void sort_long_count(const Argument<SortParams>& p) {
  radix_count(line_of<K, kPass>(p, blockIdx.x / p.tiles), blockIdx.x % p.tiles);
}
template <class K, int kPass> IG_FN void sort_long_scan(const Argument<SortParams>& p) {
  radix_scan(line_of<K, kPass>(p, blockIdx.x));
}
template <class K, int kPass> IG_FN void sort_long_move(const Argument<SortParams>& p) {
  radix_move(line_of<K, kPass>(p, blockIdx.x / p.tiles), blockIdx.x % p.tiles);
}
// The first places of each line, from the copy that holds them after the last pass.
template <int kSorted> IG_FN void sort_long_places(const Argument<SortParams>& p) {
  const unsigned* places = (const unsigned*)(p.scratch + p.copies[kSorted].places);
  const long long line = blockIdx.x / p.tiles, begin = blockIdx.x % p.tiles * 4096;
  long long* out = (long long*)ig_pointer(p.out);
  long long o, i;
  line_at(p, line, o, i);
  for (long long k = begin + threadIdx.x; k < p.wanted && k < begin + 4096; k += 256)
    out[o + k * p.out_stride] = (long long)places[line * p.length + k];
}
)cuda";

}  // namespace

CudaKernel sort_long(const LibrarySpec& spec, SortParams p) {
  const DType t = spec.operands[1].dtype;
  const int passes = static_cast<int>(size_of(t));
  const int64_t key_bytes = passes == 8 ? 8 : 4;
  p.tiles = (p.length + kRadixTile - 1) / kRadixTile;
  const int64_t tiles = p.lines * p.tiles, elements = p.lines * p.length;
  ScratchLayout scratch;
  for (auto& copy : p.copies) {
    copy.keys = scratch.take(elements * key_bytes);
    copy.places = scratch.take(elements * 4);
  }
  p.counts = scratch.take(tiles * 256 * 4);

  std::vector<KernelStage> stages{
      {instance("sort_long_keys", t, spec.attrs.as<SortAttrs>().descending), tiles, 256, false}};
  append_radix_passes(stages, "sort_long", key_bytes == 8 ? "ig_u64" : "unsigned", passes, p.lines,
                      tiles);
  stages.push_back({instance("sort_long_places", passes % 2), tiles, 256, false});
  CudaKernel k = make_kernel("sort_long", sort_text() + kRadixText + kText, stages, p);
  k.launch.scratch_bytes = scratch.bytes();
  return k;
}

}  // namespace ingot::cuda
