// ScatterAdd and Scatter: the same bits every time, without float atomics.
//
// Lines: index differs from line to line. One thread takes a line (all positions along the axis, in
// order). Rows: the index is the same for a whole row of values, as in the gradient of an
// embedding. The positions are sorted by index (a stable radix sort), cut into chunks of 64, and
// each chunk combines its runs of equal indices. A run inside one chunk is written at once; pieces
// of a run over several chunks are kept and combined in order at the end. Singles: lines, but long
// and few. Each value is a row of one, sorted by its place in the result.
#include <algorithm>

#include "backend/cuda/kernels/kernels.h"

namespace ingot::cuda {
namespace {

constexpr int kNumbers = 104;
constexpr int64_t kChunk = 64, kColumns = 128;

// n: 0 out, then base (Scatter), index, value; 4 positions, 5 size of the indexed axis, 6 site; 7-9
// strides along the axis of out, index, value; 10-12 offsets; 13 elements of out; 14 dims of a
// line's number; 15 tiles; 16 chunks; 17 column blocks; 18 lines or columns; 19 positions of a line
// (singles); 20-25 byte offsets in scratch: keys, positions, their second copies, counts, pieces;
// 26 keys that stand for a place; from 28 four words a dim: size, strides; 70 offset of base; 71
// dims of base; from 72 two words a dim: size, stride of base
const char* const kCommon = R"cuda(
typedef TYPE T; typedef INDEX IX; typedef ACCUMULATOR A;
typedef IgParams<104> P;
IG_FN A up(T v) { return A(UP(v)); }
IG_FN T down(A v) { return DOWN(v); }
IG_FN A plus(A a, A b) { return COMBINE; }
// What comes to a place, and what was there.
IG_FN T finish(T old, A v) { return down(FINISH); }
IG_FN void place(const P& p, long long line, long long& o, long long& i, long long& v) {
  o = p.n[10]; i = p.n[11]; v = p.n[12];
  for (int d = (int)p.n[14] - 1; d >= 0; --d) {
    const long long* q = p.n + 28 + 4 * d;
    const long long at = line % q[0]; line /= q[0];
    o += at * q[1]; i += at * q[2]; v += at * q[3];
  }
}
IG_FN T begin(const P& p, long long i) {
  if (!BASED) return T(0);
  long long b = p.n[70];
  for (int d = (int)p.n[71] - 1; d >= 0; --d) {
    const long long* q = p.n + 72 + 2 * d;
    b += i % q[0] * q[1]; i /= q[0];
  }
  return ((const T*)ig_pointer(p.n[1]))[b];
}
)cuda";

const char* const kLines = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const P p) {
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n[13]; i += gridDim.x * 256ll) {
    if (WIDE) ((A*)p.scratch)[i] = up(begin(p, i));
    else ((T*)ig_pointer(p.n[0]))[i] = begin(p, i);
  }
}
extern "C" __global__ void __launch_bounds__(256) ENTRY1(const P p) {
  const long long line = blockIdx.x * 256ll + threadIdx.x;
  if (line >= p.n[18]) return;
  A* sums = WIDE ? (A*)p.scratch : (A*)ig_pointer(p.n[0]);
  const IX* index = (const IX*)ig_pointer(p.n[IX_AT]);
  const T* value = (const T*)ig_pointer(p.n[VALUE_AT]);
  long long o, i, v;
  place(p, line, o, i, v);
  for (long long k = 0; k < p.n[4]; ++k) {
    const long long at = ig_index((long long)index[i + k * p.n[8]], p.n[5], p.n[6], p.status);
    if (at < 0) continue;
    A* s = sums + o + at * p.n[7];
    *s = plus(*s, up(value[v + k * p.n[9]]));
  }
}
)cuda";

const char* const kLinesDown = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY2(const P p) {
  const A* sums = (const A*)p.scratch;
  T* out = (T*)ig_pointer(p.n[0]);
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n[13]; i += gridDim.x * 256ll) out[i] = down(sums[i]);
}
)cuda";

// Where a position's index stands, which key it gives, where a key's values and results stand: for
// rows and for singles.
const char* const kRowsPlaces = R"cuda(
IG_FN long long index_of(const P& p, long long i) { return p.n[11] + i * p.n[8]; }
IG_FN unsigned key_of(const P&, long long, long long at) { return (unsigned)at; }
IG_FN long long value_of(const P& p, long long v, unsigned position) { return v + position * p.n[9]; }
IG_FN long long result_of(const P& p, long long o, unsigned key) { return o + key * p.n[7]; }
)cuda";

const char* const kSinglesPlaces = R"cuda(
IG_FN long long index_of(const P& p, long long position) {
  long long o, i, v;
  place(p, position / p.n[19], o, i, v);
  return i + position % p.n[19] * p.n[8];
}
IG_FN unsigned key_of(const P& p, long long position, long long at) {
  long long o, i, v;
  place(p, position / p.n[19], o, i, v);
  return (unsigned)(o + at * p.n[7]);
}
IG_FN long long value_of(const P& p, long long, unsigned position) {
  long long o, i, v;
  place(p, position / p.n[19], o, i, v);
  return v + position % p.n[19] * p.n[9];
}
IG_FN long long result_of(const P&, long long, unsigned key) { return key; }
)cuda";

const char* const kSort = R"cuda(
// Begins out; notes for each position which place it goes to (one more than there are: none, it is out of range).
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const P p) {
  const long long first = blockIdx.x * 256ll + threadIdx.x, step = gridDim.x * 256ll;
  T* out = (T*)ig_pointer(p.n[0]);
  for (long long i = first; i < p.n[13]; i += step) out[i] = begin(p, i);
  const IX* index = (const IX*)ig_pointer(p.n[IX_AT]);
  unsigned* keys = (unsigned*)(p.scratch + p.n[20]);
  unsigned* positions = (unsigned*)(p.scratch + p.n[21]);
  for (long long i = first; i < p.n[4]; i += step) {
    const long long at = ig_index((long long)index[index_of(p, i)], p.n[5], p.n[6], p.status);
    keys[i] = at < 0 ? (unsigned)p.n[26] : key_of(p, i, at);
    positions[i] = (unsigned)i;
  }
}
IG_FN RadixLine<unsigned> line_of(const P& p, int pass) {
  const int from = 20 + 2 * (pass & 1), to = 22 - 2 * (pass & 1);
  RadixLine<unsigned> r;
  r.keys = (const unsigned*)(p.scratch + p.n[from]);
  r.places = (const unsigned*)(p.scratch + p.n[from + 1]);
  r.keys_to = (unsigned*)(p.scratch + p.n[to]);
  r.places_to = (unsigned*)(p.scratch + p.n[to + 1]);
  r.counts = (unsigned*)(p.scratch + p.n[24]);
  r.n = p.n[4]; r.tiles = p.n[15]; r.shift = 8 * pass;
  return r;
}
)cuda";

const char* const kPass = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY@1(const P p) { radix_count(line_of(p, @0), blockIdx.x); }
extern "C" __global__ void __launch_bounds__(1024) ENTRY@2(const P p) { radix_scan(line_of(p, @0)); }
extern "C" __global__ void __launch_bounds__(256) ENTRY@3(const P p) { radix_move(line_of(p, @0), blockIdx.x); }
)cuda";

const char* const kSegments = R"cuda(
// Combines the runs of equal keys in a chunk of 64 sorted positions, for 128 columns.
extern "C" __global__ void __launch_bounds__(128) ENTRY@1(const P p) {
  __shared__ unsigned key[66];
  __shared__ unsigned position[64];
  const long long L = p.n[4], chunk = blockIdx.x / p.n[17], first = chunk * 64;
  const long long column = (blockIdx.x % p.n[17]) * 128 + threadIdx.x;
  const unsigned* keys = (const unsigned*)(p.scratch + p.n[20 + 2 * SORTED]);
  const unsigned* positions = (const unsigned*)(p.scratch + p.n[21 + 2 * SORTED]);
  const int n = L - first < 64 ? (int)(L - first) : 64;
  // key[1..n] are the chunk's; key[0] and key[n + 1] its neighbours' (no key is 0xffffffff).
  for (int i = threadIdx.x; i < n + 2; i += 128) {
    const long long at = first + i - 1;
    key[i] = at < 0 || at >= L ? 0xffffffffu : keys[at];
    if (i < n) position[i] = positions[first + i];
  }
  __syncthreads();
  if (column >= p.n[18]) return;
  long long o, i, v;
  place(p, column, o, i, v);
  T* out = (T*)ig_pointer(p.n[0]);
  const T* value = (const T*)ig_pointer(p.n[VALUE_AT]);
  A* pieces = (A*)(p.scratch + p.n[25]) + chunk * 2 * p.n[18] + column;
  A sum = A(0);
  bool begun_here = key[0] != key[1], fresh = true;
  for (int k0 = 0; k0 < n; k0 += 8) {
    T block[8];
    IG_UNROLL for (int k = 0; k < 8; ++k) block[k] = k0 + k < n ? value[value_of(p, v, position[k0 + k])] : T(0);
    IG_UNROLL for (int k = 0; k < 8; ++k) {
      const int j = k0 + k + 1;
      if (j > n) break;
      sum = fresh ? up(block[k]) : plus(sum, up(block[k]));
      fresh = false;
      if (key[j] == key[j + 1] && j < n) continue;
      const bool ends_here = key[j] != key[j + 1];
      if (key[j] < (unsigned)p.n[26]) {
        T* to = out + result_of(p, o, key[j]);
        if (begun_here && ends_here) *to = finish(*to, sum);
        else pieces[begun_here ? p.n[18] : 0] = sum;
      }
      begun_here = fresh = true;
    }
  }
}
// Where a run begins in a chunk and goes on into the next ones, its pieces are combined in order.
extern "C" __global__ void __launch_bounds__(128) ENTRY@2(const P p) {
  const long long L = p.n[4], chunk = blockIdx.x / p.n[17], column = (blockIdx.x % p.n[17]) * 128 + threadIdx.x;
  const unsigned* keys = (const unsigned*)(p.scratch + p.n[20 + 2 * SORTED]);
  const long long first = chunk * 64, next = first + 64;
  if (column >= p.n[18] || next >= L) return;
  const unsigned key = keys[next - 1];
  if (key != keys[next] || key >= (unsigned)p.n[26]) return;
  if (keys[first] == key && first > 0 && keys[first - 1] == key) return;
  const A* pieces = (const A*)(p.scratch + p.n[25]) + column;
  A sum = pieces[(chunk * 2 + 1) * p.n[18]];
  for (long long c = chunk + 1; c < p.n[16] && keys[c * 64] == key; ++c) sum = plus(sum, pieces[c * 2 * p.n[18]]);
  long long o, i, v;
  place(p, column, o, i, v);
  T* to = (T*)ig_pointer(p.n[0]) + result_of(p, o, key);
  *to = finish(*to, sum);
}
)cuda";

/// The operands by name; base is there for Scatter alone.
struct Operands {
  const OperandSpec &out, &base, &index, &value;
  bool based;
  explicit Operands(const LibrarySpec& s)
      : out(s.operands[0]),
        base(s.operands[s.op == Op::Scatter ? 1 : 0]),
        index(s.operands[s.op == Op::Scatter ? 2 : 1]),
        value(s.operands[s.op == Op::Scatter ? 3 : 2]),
        based(s.op == Op::Scatter) {}
};

std::string with_names(const LibrarySpec& spec, std::string s) {
  Operands op(spec);
  DType t = op.out.dtype;
  TextType type = text_type(t);
  const ScatterMode mode = op.based ? spec.attrs.as<ScatterAttrs>().mode : ScatterMode::Set;
  std::string combine = !op.based                   ? "A(a + b)"
                        : mode == ScatterMode::Set  ? "b"
                        : mode == ScatterMode::Prod ? "A(a * b)"
                        : mode == ScatterMode::Max  ? "ig_max(a, b)"
                                                    : "ig_min(a, b)";
  replace_all(s, "COMBINE", combine);
  // Zeros that nothing else comes to have no sign of their own.
  replace_all(s, "FINISH", op.based ? "plus(up(old), v)" : "plus(A(0), v)");
  replace_all(s, "BASED", op.based ? "1" : "0");
  replace_all(s, "IX_AT", op.based ? "2" : "1");
  replace_all(s, "VALUE_AT", op.based ? "3" : "2");
  replace_all(s, "TYPE", type.memory);
  replace_all(s, "INDEX", op.index.dtype == DType::Int32 ? "int" : "long long");
  replace_all(s, "ACCUMULATOR", type.compute);
  replace_all(s, "UP(", type.up + "(");
  replace_all(s, "DOWN(v)", is_half(t) ? type.down + "(v)" : "T(v)");
  return s;
}

/// Numbers all ways share. The dims of a line are those of the value but the axis, neighbours
/// merged.
std::vector<int64_t> numbers(const LibrarySpec& spec, int axis) {
  Operands op(spec);
  std::vector<int64_t> n(kNumbers, 0);
  struct Dim {
    int64_t size, o, i, v;
  };
  std::vector<Dim> dims;
  int64_t lines = 1;
  for (int d = 0; d < op.value.shape.size(); ++d) {
    if (d == axis || op.value.shape[d] == 1) continue;
    Dim x{op.value.shape[d], op.out.stride[d], op.index.stride[d], op.value.stride[d]};
    lines *= x.size;
    if (!dims.empty()) {
      Dim& l = dims.back();
      if (l.o == x.o * x.size && l.i == x.i * x.size && l.v == x.v * x.size) {
        l = {l.size * x.size, x.o, x.i, x.v};
        continue;
      }
    }
    dims.push_back(x);
  }
  n[18] = lines;
  n[4] = op.value.shape.empty() ? 1 : op.value.shape[axis];
  n[5] = op.out.shape.empty() ? 1 : op.out.shape[axis];
  n[6] = spec.site;
  if (!op.value.shape.empty())
    n[7] = op.out.stride[axis], n[8] = op.index.stride[axis], n[9] = op.value.stride[axis];
  n[10] = op.out.offset, n[11] = op.index.offset, n[12] = op.value.offset;
  n[13] = op.out.shape.numel();
  n[14] = static_cast<int64_t>(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t* q = &n[28 + 4 * d];
    q[0] = dims[d].size, q[1] = dims[d].o, q[2] = dims[d].i, q[3] = dims[d].v;
  }
  if (!op.based) return n;
  n[70] = op.base.offset;
  for (int d = 0; d < op.base.shape.size(); ++d) {
    if (op.base.shape[d] == 1) continue;
    int64_t* q = &n[72 + 2 * static_cast<size_t>(n[71]++)];
    q[0] = op.base.shape[d], q[1] = op.base.stride[d];
  }
  return n;
}

unsigned blocks_for(int64_t work, int64_t most) {
  return static_cast<unsigned>(std::clamp<int64_t>((work + 255) / 256, 1, most));
}

CudaKernel by_lines(const LibrarySpec& spec, std::vector<int64_t> n, int multiprocessors) {
  CudaKernel k;
  bool wide = is_half(spec.operands[0].dtype);
  std::string body = with_names(spec, std::string(kCommon) + kLines + (wide ? kLinesDown : ""));
  replace_all(body, "WIDE", wide ? "1" : "0");
  std::vector<CudaStage> stages(wide ? 3 : 2, CudaStage{"", 256, false});
  k.text = hand_text("scatter_lines", body, stages);
  unsigned sweep = blocks_for(n[13], multiprocessors * 8);
  k.launch.stages = {{sweep, 0}, {static_cast<unsigned>((n[18] + 255) / 256), 0}};
  if (wide) {
    k.launch.stages.push_back({sweep, 0});
    k.launch.scratch_bytes = static_cast<size_t>(n[13]) * 4;
  }
  k.launch.words = std::move(n);
  k.launch.part_words = kNumbers;
  return k;
}

/// n[4] positions with keys below n[26].
CudaKernel by_sorting(const LibrarySpec& spec, std::vector<int64_t> n, const char* places,
                      int multiprocessors) {
  CudaKernel k;
  int passes = 1;
  while (passes < 4 && (n[26] >> (8 * passes)) != 0) ++passes;
  int64_t L = n[4], tiles = (L + kRadixTile - 1) / kRadixTile, chunks = (L + kChunk - 1) / kChunk;
  std::string body = with_names(spec, std::string(kCommon) + radix_text() + places + kSort);
  std::vector<CudaStage> stages{{"", 256, false}};
  k.launch.stages = {{blocks_for(std::max(n[13], L), multiprocessors * 8), 0}};
  append_radix_passes(body, stages, k.launch.stages, kPass, passes, 1,
                      static_cast<unsigned>(tiles));
  std::string part = with_names(spec, kSegments);
  for (int s = 1; s <= 2; ++s)
    replace_all(part, "ENTRY@" + std::to_string(s),
                "ENTRY" + std::to_string(stages.size() + static_cast<size_t>(s) - 1));
  replace_all(part, "SORTED", passes % 2 ? "1" : "0");
  body += part;
  stages.push_back({"", static_cast<unsigned>(kColumns), true});
  stages.push_back({"", static_cast<unsigned>(kColumns), false});
  n[15] = tiles, n[16] = chunks, n[17] = (n[18] + kColumns - 1) / kColumns;
  auto grid = static_cast<unsigned>(chunks * n[17]);
  k.launch.stages.insert(k.launch.stages.end(), {{grid, 0}, {grid, 0}});
  k.text = hand_text("scatter_sorted", body, stages);

  int64_t at = 0;
  auto take = [&](int64_t bytes) {
    int64_t here = at;
    at += (bytes + 255) / 256 * 256;
    return here;
  };
  for (size_t i = 0; i < 4; ++i) n[20 + i] = take(L * 4);
  n[24] = take(tiles * 256 * 4);
  n[25] = take(chunks * 2 * n[18] * 8);
  k.launch.scratch_bytes = static_cast<size_t>(at);
  k.launch.words = std::move(n);
  k.launch.part_words = kNumbers;
  return k;
}

}  // namespace

CudaKernel scatter(const LibrarySpec& spec, int multiprocessors) {
  Operands op(spec);
  const int axis = axis_of(spec);
  std::vector<int64_t> n = numbers(spec, axis);
  constexpr int64_t most = int64_t{1} << 31;
  bool rows = n[4] > 32 && n[4] < most && n[5] < most;
  for (int d = 0; d < op.value.shape.size(); ++d)
    rows = rows && (d == axis || op.index.stride[d] == 0 || op.value.shape[d] == 1);
  rows = rows && ((n[4] + kChunk - 1) / kChunk) * ((n[18] + kColumns - 1) / kColumns) < most;
  if (rows) {
    n[26] = n[5];
    return by_sorting(spec, std::move(n), kRowsPlaces, multiprocessors);
  }
  bool singles = n[4] >= 128 && n[18] < int64_t{256} * multiprocessors && n[4] * n[18] < most &&
                 n[13] < most - 1;
  if (!singles) return by_lines(spec, std::move(n), multiprocessors);
  n[19] = n[4];
  n[4] *= n[18];
  n[18] = 1;
  n[26] = n[13];
  return by_sorting(spec, std::move(n), kSinglesPlaces, multiprocessors);
}

}  // namespace ingot::cuda
