// Sorts lines of up to 2048 elements: a bitonic network over keys and places in shared memory.
// Places make all pairs different, so the result is the stable order.
//
// Launch: 512 threads a block, which has as many lines as 2048 elements hold. Bound by shared
// memory and barriers: log2(size)^2 / 2 rounds over the block's elements.
#include "backend/cuda/kernels/sort.h"

namespace ingot::cuda {
namespace {

constexpr int64_t kElements = 2048;  // of a block

const char* const kText = R"cuda(
template <class D, bool kDescending> IG_FN void sort_short(const Argument<SortParams>& p) {
  typedef SortKey<D, kDescending> Key;
  typedef typename Key::T T;
  typedef typename Key::K K;
  __shared__ K key[2048];
  __shared__ unsigned place[2048];
  const int size = (int)p.size, lines = (int)p.lines_per_block, n = (int)p.length;
  const long long first = blockIdx.x * p.lines_per_block;
  const T* in = (const T*)ig_pointer(p.in);
  for (int e = threadIdx.x; e < lines * size; e += 512) {
    const long long line = first + e / size;
    const int k = e % size;
    // What fills up stands behind every element.
    key[e] = ~K(0); place[e] = 0xffffffffu;
    if (line >= p.lines || k >= n) continue;
    long long o, i;
    line_at(p, line, o, i);
    key[e] = Key::of(in[i + k * p.in_stride]);
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
  long long* out = (long long*)ig_pointer(p.out);
  const int wanted = (int)p.wanted;
  for (int e = threadIdx.x; e < lines * wanted; e += 512) {
    const long long line = first + e / wanted;
    if (line >= p.lines) return;
    long long o, i;
    line_at(p, line, o, i);
    out[o + e % wanted * p.out_stride] = (long long)place[e / wanted * size + e % wanted];
  }
}
)cuda";

}  // namespace

CudaKernel sort_short(const LibrarySpec& spec, SortParams p) {
  p.size = 2;
  while (p.size < p.length) p.size *= 2;
  p.lines_per_block = kElements / p.size;
  const std::string function =
      instance("sort_short", spec.operands[1].dtype, spec.attrs.as<SortAttrs>().descending);
  const int64_t blocks = (p.lines + p.lines_per_block - 1) / p.lines_per_block;
  return make_kernel("sort_short", sort_text() + kText, {{function, blocks, 512, true}}, p);
}

}  // namespace ingot::cuda
