// A scatter by sorting. Rows: the index is the same for a whole row of values, as in the gradient
// of an embedding; the rows are sorted by it. Singles: lines, but long and few; each value is a row
// of one, sorted by its place in out. The sorted positions are cut into chunks of 64, and each
// chunk combines its runs of equal keys in order. A run inside one chunk is written at once; the
// pieces of a run over several chunks are kept and combined in order at the end.
//
// Launch: keys and what out begins with (a sweep), three stages for each 8 bits of the key
// (radix_sort.cpp), then twice a block of 128 threads per chunk and 128 columns. Bound by memory
// bandwidth: for rows of any width that of the values, else that of the sort.
#include <algorithm>

#include "backend/cuda/kernels/radix_sort.h"
#include "backend/cuda/kernels/scatter.h"

namespace ingot::cuda {
namespace {

const char* const kPlaces = R"cuda(
// Where a position's index stands, which key it gives, where a key's values and results stand. Rows: the key is the index.
struct RowPlaces {
  IG_FN long long index_of(const Argument<ScatterParams>& p, long long i) { return p.index_offset + i * p.index_stride; }
  IG_FN unsigned key_of(const Argument<ScatterParams>&, long long, long long at) { return (unsigned)at; }
  IG_FN long long value_of(const Argument<ScatterParams>& p, long long v, unsigned position) {
    return v + position * p.value_stride;
  }
  IG_FN long long result_of(const Argument<ScatterParams>& p, long long o, unsigned key) { return o + key * p.out_stride; }
};
// Singles: the key is the place in out.
struct SinglePlaces {
  IG_FN long long index_of(const Argument<ScatterParams>& p, long long position) {
    long long o, i, v;
    place(p, position / p.line_length, o, i, v);
    return i + position % p.line_length * p.index_stride;
  }
  IG_FN unsigned key_of(const Argument<ScatterParams>& p, long long position, long long at) {
    long long o, i, v;
    place(p, position / p.line_length, o, i, v);
    return (unsigned)(o + at * p.out_stride);
  }
  IG_FN long long value_of(const Argument<ScatterParams>& p, long long, unsigned position) {
    long long o, i, v;
    place(p, position / p.line_length, o, i, v);
    return v + position % p.line_length * p.value_stride;
  }
  IG_FN long long result_of(const Argument<ScatterParams>&, long long, unsigned key) { return key; }
};
)cuda";

const char* const kText = R"cuda(
// What is stored where `old` was: a sum of zeros and nothing else has no sign of its own.
template <class C> IG_FN typename C::D::Memory finish(typename C::D::Memory old, typename C::D::Compute v) {
  return C::D::down(C::Op::both(C::kBased ? C::D::up(old) : typename C::D::Compute(0), v));
}
// Begins out; notes for each position which place it goes to (one more than there are: none, it is out of range).
template <class C> IG_FN void scatter_keys(const Argument<ScatterParams>& p) {
  typedef typename C::D::Memory T;
  const long long first = blockIdx.x * 256ll + threadIdx.x, step = gridDim.x * 256ll;
  T* out = (T*)ig_pointer(p.operands[0]);
  for (long long i = first; i < p.elements; i += step) out[i] = begin<C>(p, i);
  const typename C::Index* index = (const typename C::Index*)ig_pointer(p.operands[C::kIndex]);
  unsigned* keys = (unsigned*)(p.scratch + p.copies[0].keys);
  unsigned* positions = (unsigned*)(p.scratch + p.copies[0].positions);
  for (long long i = first; i < p.positions; i += step) {
    const long long at = ig_index((long long)index[C::Places::index_of(p, i)], p.extent, p.site, p.status);
    keys[i] = at < 0 ? (unsigned)p.keys : C::Places::key_of(p, i, at);
    positions[i] = (unsigned)i;
  }
}
// All positions as pass kPass finds them: from one copy to the other.
template <int kPass> IG_FN RadixLine<unsigned> line_of(const Argument<ScatterParams>& p) {
  const auto &from = p.copies[kPass & 1], &to = p.copies[1 - (kPass & 1)];
  RadixLine<unsigned> r;
  r.keys = (const unsigned*)(p.scratch + from.keys);
  r.places = (const unsigned*)(p.scratch + from.positions);
  r.keys_to = (unsigned*)(p.scratch + to.keys);
  r.places_to = (unsigned*)(p.scratch + to.positions);
  r.counts = (unsigned*)(p.scratch + p.counts);
  r.n = p.positions; r.tiles = p.tiles; r.shift = 8 * kPass;
  return r;
}
template <class C, int kPass> IG_FN void scatter_count(const Argument<ScatterParams>& p) {
  radix_count(line_of<kPass>(p), blockIdx.x);
}
template <class C, int kPass> IG_FN void scatter_scan(const Argument<ScatterParams>& p) { radix_scan(line_of<kPass>(p)); }
template <class C, int kPass> IG_FN void scatter_move(const Argument<ScatterParams>& p) {
  radix_move(line_of<kPass>(p), blockIdx.x);
}
// Combines the runs of equal keys in a chunk of 64 sorted positions, for 128 columns.
template <class C> IG_FN void scatter_segments(const Argument<ScatterParams>& p) {
  typedef typename C::D D;
  typedef typename D::Memory T;
  typedef typename D::Compute A;
  __shared__ unsigned key[66];
  __shared__ unsigned position[64];
  const long long L = p.positions, chunk = blockIdx.x / p.column_blocks, first = chunk * 64;
  const long long column = (blockIdx.x % p.column_blocks) * 128 + threadIdx.x;
  const unsigned* keys = (const unsigned*)(p.scratch + p.copies[C::kSorted].keys);
  const unsigned* positions = (const unsigned*)(p.scratch + p.copies[C::kSorted].positions);
  const int n = L - first < 64 ? (int)(L - first) : 64;
  // key[1..n] are the chunk's; key[0] and key[n + 1] its neighbours' (no key is 0xffffffff).
  for (int i = threadIdx.x; i < n + 2; i += 128) {
    const long long at = first + i - 1;
    key[i] = at < 0 || at >= L ? 0xffffffffu : keys[at];
    if (i < n) position[i] = positions[first + i];
  }
  __syncthreads();
  if (column >= p.columns) return;
  long long o, i, v;
  place(p, column, o, i, v);
  T* out = (T*)ig_pointer(p.operands[0]);
  const T* value = (const T*)ig_pointer(p.operands[C::kIndex + 1]);
  A* pieces = (A*)(p.scratch + p.pieces) + chunk * 2 * p.columns + column;
  A sum = A(0);
  bool begun_here = key[0] != key[1], fresh = true;
  for (int k0 = 0; k0 < n; k0 += 8) {
    T block[8];
    IG_UNROLL for (int k = 0; k < 8; ++k) block[k] = k0 + k < n ? value[C::Places::value_of(p, v, position[k0 + k])] : T(0);
    IG_UNROLL for (int k = 0; k < 8; ++k) {
      const int j = k0 + k + 1;
      if (j > n) break;
      sum = fresh ? D::up(block[k]) : C::Op::both(sum, D::up(block[k]));
      fresh = false;
      if (key[j] == key[j + 1] && j < n) continue;
      const bool ends_here = key[j] != key[j + 1];
      if (key[j] < (unsigned)p.keys) {
        T* to = out + C::Places::result_of(p, o, key[j]);
        if (begun_here && ends_here) *to = finish<C>(*to, sum);
        else pieces[begun_here ? p.columns : 0] = sum;
      }
      begun_here = fresh = true;
    }
  }
}
// Where a run begins in a chunk and goes on into the next ones, its pieces are combined in order.
template <class C> IG_FN void scatter_joints(const Argument<ScatterParams>& p) {
  typedef typename C::D D;
  typedef typename D::Memory T;
  typedef typename D::Compute A;
  const long long L = p.positions, chunk = blockIdx.x / p.column_blocks;
  const long long column = (blockIdx.x % p.column_blocks) * 128 + threadIdx.x;
  const unsigned* keys = (const unsigned*)(p.scratch + p.copies[C::kSorted].keys);
  const long long first = chunk * 64, next = first + 64;
  if (column >= p.columns || next >= L) return;
  const unsigned key = keys[next - 1];
  if (key != keys[next] || key >= (unsigned)p.keys) return;
  if (keys[first] == key && first > 0 && keys[first - 1] == key) return;
  const A* pieces = (const A*)(p.scratch + p.pieces) + column;
  A sum = pieces[(chunk * 2 + 1) * p.columns];
  for (long long c = chunk + 1; c < p.chunks && keys[c * 64] == key; ++c) sum = C::Op::both(sum, pieces[c * 2 * p.columns]);
  long long o, i, v;
  place(p, column, o, i, v);
  T* to = (T*)ig_pointer(p.operands[0]) + C::Places::result_of(p, o, key);
  *to = finish<C>(*to, sum);
}
)cuda";

}  // namespace

CudaKernel scatter_sorted(const LibrarySpec& spec, ScatterParams p, bool singles,
                          int multiprocessors) {
  p.keys = p.extent;
  if (singles) {
    p.line_length = p.positions;
    p.positions *= p.columns;
    p.columns = 1;
    p.keys = p.elements;
  }
  const int64_t L = p.positions;
  int passes = 1;
  while (passes < 4 && (p.keys >> (8 * passes)) != 0) ++passes;
  p.tiles = (L + kRadixTile - 1) / kRadixTile;
  p.chunks = (L + kScatterChunk - 1) / kScatterChunk;
  p.column_blocks = (p.columns + kScatterColumns - 1) / kScatterColumns;
  ScratchLayout scratch;
  for (auto& copy : p.copies) copy = {scratch.take(L * 4), scratch.take(L * 4)};
  p.counts = scratch.take(p.tiles * 256 * 4);
  p.pieces = scratch.take(p.chunks * 2 * p.columns * 8);

  CallTraits t = scatter_traits(spec);
  t.type("Places", singles ? "SinglePlaces" : "RowPlaces").value("kSorted", passes % 2);
  const int64_t sweep = sweep_blocks(std::max<int64_t>(p.elements, L), multiprocessors * 8);
  const int64_t blocks = p.chunks * p.column_blocks;
  const auto columns = static_cast<unsigned>(kScatterColumns);
  std::vector<KernelStage> stages{{"scatter_keys<Call>", sweep, 256, false}};
  append_radix_passes(stages, "scatter", "Call", passes, 1, p.tiles);
  stages.push_back({"scatter_segments<Call>", blocks, columns, true});
  stages.push_back({"scatter_joints<Call>", blocks, columns, false});
  CudaKernel k =
      make_kernel("scatter_sorted",
                  std::string(kScatterText) + kRadixText + kPlaces + t.text() + kText, stages, p);
  k.launch.scratch_bytes = scratch.bytes();
  return k;
}

}  // namespace ingot::cuda
