// ScatterAdd: the same bits every time, without float atomics.
//
// Lines: index differs from line to line. One thread takes a line (all positions along the axis, in order).
// Rows: the index is the same for a whole row of values, as in the gradient of an embedding. The positions are sorted by
// index (a stable radix sort, 8 bits a pass), cut into chunks of 64, and each chunk sums its runs of equal indices. A run
// inside one chunk is written at once; pieces of a run over several chunks are kept and added up in order at the end.
#include <algorithm>

#include "backend/cuda/kernel_text.h"

namespace ingot::cuda {
namespace {

constexpr int kNumbers = 72;
constexpr int64_t kTile = 1024, kChunk = 64, kColumns = 128;

// n: 0-2 out, index, value; 3 lines or columns, 4 positions (L), 5 size of the indexed axis (V), 6 site; 7-9 strides along the axis of
// out, index, value; 10-12 offsets; 13 elements of out; 14 dims of a line's number; 15 tiles; 16 chunks; 17 column blocks;
// 20-25 byte offsets in scratch: keys, positions, their second copies, counts, pieces; from 28 four words a dim: size, strides
const char* const kCommon = R"cuda(
typedef TYPE T; typedef INDEX IX; typedef ACCUMULATOR A;
typedef IgParams<72> P;
IG_FN A up(T v) { return A(UP(v)); }
IG_FN T down(A v) { return DOWN(v); }
IG_FN A plus(A a, A b) { return A(a + b); }
IG_FN void place(const P& p, long long line, long long& o, long long& i, long long& v) {
  o = p.n[10]; i = p.n[11]; v = p.n[12];
  for (int d = (int)p.n[14] - 1; d >= 0; --d) {
    const long long* q = p.n + 28 + 4 * d;
    const long long at = line % q[0]; line /= q[0];
    o += at * q[1]; i += at * q[2]; v += at * q[3];
  }
}
)cuda";

const char* const kLines = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const P p) {
  A* sums = WIDE ? (A*)p.scratch : (A*)ig_pointer(p.n[0]);
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n[13]; i += gridDim.x * 256ll) sums[i] = A(0);
}
extern "C" __global__ void __launch_bounds__(256) ENTRY1(const P p) {
  const long long line = blockIdx.x * 256ll + threadIdx.x;
  if (line >= p.n[3]) return;
  A* sums = WIDE ? (A*)p.scratch : (A*)ig_pointer(p.n[0]);
  const IX* index = (const IX*)ig_pointer(p.n[1]);
  const T* value = (const T*)ig_pointer(p.n[2]);
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

const char* const kSort = R"cuda(
// Clears out; notes for each position which row it goes to (V: none, it is out of range).
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const P p) {
  const long long first = blockIdx.x * 256ll + threadIdx.x, step = gridDim.x * 256ll;
  T* out = (T*)ig_pointer(p.n[0]);
  for (long long i = first; i < p.n[13]; i += step) out[i] = T(0);
  const IX* index = (const IX*)ig_pointer(p.n[1]) + p.n[11];
  unsigned* keys = (unsigned*)(p.scratch + p.n[20]);
  unsigned* positions = (unsigned*)(p.scratch + p.n[21]);
  for (long long i = first; i < p.n[4]; i += step) {
    const long long at = ig_index((long long)index[i * p.n[8]], p.n[5], p.n[6], p.status);
    keys[i] = at < 0 ? (unsigned)p.n[5] : (unsigned)at;
    positions[i] = (unsigned)i;
  }
}
// Thread d of a block looks after digit d of the tile's 1024 keys.
IG_FN const unsigned* tile_of(const P& p, int keys, unsigned* tile, int& n) {
  const unsigned* from = (const unsigned*)(p.scratch + p.n[keys]) + blockIdx.x * 1024ll;
  const long long left = p.n[4] - blockIdx.x * 1024ll;
  n = left < 1024 ? (int)left : 1024;
  for (int i = threadIdx.x; i < n; i += 256) tile[i] = from[i];
  __syncthreads();
  return from;
}
template <int PASS> IG_FN void count_digits(const P& p, unsigned* tile) {
  int n;
  tile_of(p, 20 + 2 * (PASS & 1), tile, n);
  unsigned count = 0;
  for (int i = 0; i < n; ++i) count += ((tile[i] >> (8 * PASS)) & 255u) == threadIdx.x;
  ((unsigned*)(p.scratch + p.n[24]))[blockIdx.x * 256ll + threadIdx.x] = count;
}
// Counts become first places: all of digit 0, tile by tile, then all of digit 1, ...
IG_FN void place_digits(const P& p, unsigned* total) {
  unsigned* counts = (unsigned*)(p.scratch + p.n[24]);
  const int d = threadIdx.x;
  unsigned sum = 0;
  for (long long t = 0; t < p.n[15]; ++t) sum += counts[t * 256 + d];
  total[d] = sum;
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    const unsigned before = d >= step ? total[d - step] : 0u;
    __syncthreads();
    total[d] += before;
    __syncthreads();
  }
  unsigned at = total[d] - sum;
  for (long long t = 0; t < p.n[15]; ++t) {
    const unsigned c = counts[t * 256 + d];
    counts[t * 256 + d] = at;
    at += c;
  }
}
template <int PASS> IG_FN void move_digits(const P& p, unsigned* tile) {
  int n;
  tile_of(p, 20 + 2 * (PASS & 1), tile, n);
  const unsigned* positions = (const unsigned*)(p.scratch + p.n[21 + 2 * (PASS & 1)]) + blockIdx.x * 1024ll;
  unsigned* keys_to = (unsigned*)(p.scratch + p.n[20 + 2 * (1 - (PASS & 1))]);
  unsigned* positions_to = (unsigned*)(p.scratch + p.n[21 + 2 * (1 - (PASS & 1))]);
  unsigned at = ((const unsigned*)(p.scratch + p.n[24]))[blockIdx.x * 256ll + threadIdx.x];
  for (int i = 0; i < n; ++i)
    if (((tile[i] >> (8 * PASS)) & 255u) == threadIdx.x) {
      keys_to[at] = tile[i];
      positions_to[at] = positions[i];
      ++at;
    }
}
)cuda";

const char* const kPass = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY@1(const P p) { __shared__ unsigned tile[1024]; count_digits<@0>(p, tile); }
extern "C" __global__ void __launch_bounds__(256) ENTRY@2(const P p) { __shared__ unsigned total[256]; place_digits(p, total); }
extern "C" __global__ void __launch_bounds__(256) ENTRY@3(const P p) { __shared__ unsigned tile[1024]; move_digits<@0>(p, tile); }
)cuda";

const char* const kSegments = R"cuda(
// Sums the runs of equal keys in a chunk of 64 sorted positions, for 128 columns.
extern "C" __global__ void __launch_bounds__(128) ENTRY@1(const P p) {
  __shared__ unsigned key[66];
  __shared__ unsigned position[64];
  const long long L = p.n[4], V = p.n[5], chunk = blockIdx.x / p.n[17], first = chunk * 64;
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
  if (column >= p.n[3]) return;
  long long o, i, v;
  place(p, column, o, i, v);
  T* out = (T*)ig_pointer(p.n[0]);
  const T* value = (const T*)ig_pointer(p.n[2]) + v;
  A* pieces = (A*)(p.scratch + p.n[25]) + chunk * 2 * p.n[3] + column;
  A sum = A(0);
  bool begun_here = key[0] != key[1];
  for (int k0 = 0; k0 < n; k0 += 8) {
    T block[8];
    IG_UNROLL for (int k = 0; k < 8; ++k) block[k] = k0 + k < n ? value[position[k0 + k] * p.n[9]] : T(0);
    IG_UNROLL for (int k = 0; k < 8; ++k) {
      const int j = k0 + k + 1;
      if (j > n) break;
      sum = plus(sum, up(block[k]));
      if (key[j] == key[j + 1] && j < n) continue;
      const bool ends_here = key[j] != key[j + 1];
      if (key[j] < (unsigned)V) {
        if (begun_here && ends_here) out[o + key[j] * p.n[7]] = down(sum);
        else pieces[begun_here ? p.n[3] : 0] = sum;
      }
      sum = A(0);
      begun_here = true;
    }
  }
}
// Where a run begins in a chunk and goes on into the next ones, its pieces are added up in order.
extern "C" __global__ void __launch_bounds__(128) ENTRY@2(const P p) {
  const long long L = p.n[4], chunk = blockIdx.x / p.n[17], column = (blockIdx.x % p.n[17]) * 128 + threadIdx.x;
  const unsigned* keys = (const unsigned*)(p.scratch + p.n[20 + 2 * SORTED]);
  const long long first = chunk * 64, next = first + 64;
  if (column >= p.n[3] || next >= L) return;
  const unsigned key = keys[next - 1];
  if (key != keys[next] || key >= (unsigned)p.n[5]) return;
  if (keys[first] == key && first > 0 && keys[first - 1] == key) return;
  const A* pieces = (const A*)(p.scratch + p.n[25]) + column;
  A sum = pieces[(chunk * 2 + 1) * p.n[3]];
  for (long long c = chunk + 1; c < p.n[16] && keys[c * 64] == key; ++c) sum = plus(sum, pieces[c * 2 * p.n[3]]);
  long long o, i, v;
  place(p, column, o, i, v);
  ((T*)ig_pointer(p.n[0]))[o + key * p.n[7]] = down(sum);
}
)cuda";

void replace_all(std::string& s, const std::string& from, const std::string& to) {
  for (size_t at = s.find(from); at != std::string::npos; at = s.find(from, at + to.size())) s.replace(at, from.size(), to);
}

std::string common(const LibrarySpec& spec) {
  DType t = spec.operands[0].dtype;
  TextType type = text_type(t);
  std::string s = kCommon;
  replace_all(s, "TYPE", type.memory);
  replace_all(s, "INDEX", spec.operands[1].dtype == DType::Int32 ? "int" : "long long");
  replace_all(s, "ACCUMULATOR", type.compute);
  replace_all(s, "UP(", type.up + "(");
  replace_all(s, "DOWN(v)", is_half(t) ? type.down + "(v)" : "T(v)");
  return s;
}

/// Numbers both ways share. The dims of a line are those of the value but the axis, neighbours merged.
std::vector<int64_t> numbers(const LibrarySpec& spec, int axis) {
  const OperandSpec &out = spec.operands[0], &index = spec.operands[1], &value = spec.operands[2];
  std::vector<int64_t> n(kNumbers, 0);
  struct Dim {
    int64_t size, o, i, v;
  };
  std::vector<Dim> dims;
  int64_t lines = 1;
  for (int d = 0; d < value.shape.size(); ++d) {
    if (d == axis || value.shape[d] == 1) continue;
    Dim x{value.shape[d], out.stride[d], index.stride[d], value.stride[d]};
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
  n[3] = lines;
  n[4] = value.shape.size() ? value.shape[axis] : 1;
  n[5] = out.shape.size() ? out.shape[axis] : 1;
  n[6] = spec.site;
  if (value.shape.size()) n[7] = out.stride[axis], n[8] = index.stride[axis], n[9] = value.stride[axis];
  n[10] = out.offset, n[11] = index.offset, n[12] = value.offset;
  n[13] = out.shape.numel();
  n[14] = static_cast<int64_t>(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t* q = &n[28 + 4 * d];
    q[0] = dims[d].size, q[1] = dims[d].o, q[2] = dims[d].i, q[3] = dims[d].v;
  }
  return n;
}

unsigned blocks_for(int64_t work, int64_t most) {
  return static_cast<unsigned>(std::clamp<int64_t>((work + 255) / 256, 1, most));
}

HandKernel by_lines(const LibrarySpec& spec, std::vector<int64_t> n, int multiprocessors) {
  HandKernel k;
  bool wide = is_half(spec.operands[0].dtype);
  std::string body = common(spec) + kLines + (wide ? kLinesDown : "");
  replace_all(body, "WIDE", wide ? "1" : "0");
  std::vector<CudaStage> stages(wide ? 3 : 2, CudaStage{"", 256, false});
  k.text = hand_text("scatter_lines", body, stages);
  unsigned sweep = blocks_for(n[13], multiprocessors * 8);
  k.launch.stages = {{sweep, 0}, {static_cast<unsigned>((n[3] + 255) / 256), 0}};
  if (wide) {
    k.launch.stages.push_back({sweep, 0});
    k.launch.scratch_bytes = static_cast<size_t>(n[13]) * 4;
  }
  k.launch.words = std::move(n);
  k.launch.part_words = kNumbers;
  return k;
}

HandKernel by_rows(const LibrarySpec& spec, std::vector<int64_t> n, int multiprocessors) {
  HandKernel k;
  int passes = 1;
  while (passes < 4 && (n[5] >> (8 * passes)) != 0) ++passes;
  std::string body = common(spec) + kSort;
  std::vector<CudaStage> stages{{"", 256, false}};
  int64_t L = n[4], tiles = (L + kTile - 1) / kTile, chunks = (L + kChunk - 1) / kChunk;
  k.launch.stages = {{blocks_for(std::max(n[13], L), multiprocessors * 8), 0}};
  auto name_stages = [&](std::string part) {
    for (int s = 1; s <= 3; ++s) replace_all(part, "ENTRY@" + std::to_string(s), "ENTRY" + std::to_string(stages.size() + s - 1));
    return part;
  };
  for (int pass = 0; pass < passes; ++pass) {
    std::string part = name_stages(kPass);
    replace_all(part, "@0", std::to_string(pass));
    body += part;
    stages.insert(stages.end(), 3, CudaStage{"", 256, true});
    auto t = static_cast<unsigned>(tiles);
    k.launch.stages.insert(k.launch.stages.end(), {{t, 0}, {1, 0}, {t, 0}});
  }
  std::string part = name_stages(kSegments);
  replace_all(part, "SORTED", passes % 2 ? "1" : "0");
  body += part;
  stages.push_back({"", static_cast<unsigned>(kColumns), true});
  stages.push_back({"", static_cast<unsigned>(kColumns), false});
  n[15] = tiles, n[16] = chunks, n[17] = (n[3] + kColumns - 1) / kColumns;
  auto grid = static_cast<unsigned>(chunks * n[17]);
  k.launch.stages.insert(k.launch.stages.end(), {{grid, 0}, {grid, 0}});
  k.text = hand_text("scatter_rows", body, stages);

  int64_t at = 0;
  auto take = [&](int64_t bytes) {
    int64_t here = at;
    at += (bytes + 255) / 256 * 256;
    return here;
  };
  for (int i = 0; i < 4; ++i) n[20 + static_cast<size_t>(i)] = take(L * 4);
  n[24] = take(tiles * 256 * 4);
  n[25] = take(chunks * 2 * n[3] * 8);
  k.launch.scratch_bytes = static_cast<size_t>(at);
  k.launch.words = std::move(n);
  k.launch.part_words = kNumbers;
  return k;
}

}  // namespace

HandKernel scatter_add(const LibrarySpec& spec, int multiprocessors) {
  const OperandSpec &index = spec.operands[1], &value = spec.operands[2];
  int axis = static_cast<int>(spec.attr[0]);
  std::vector<int64_t> n = numbers(spec, axis);
  bool rows = n[4] > 32 && n[4] < (int64_t{1} << 31) && n[5] < (int64_t{1} << 31);
  for (int d = 0; d < value.shape.size(); ++d) rows = rows && (d == axis || index.stride[d] == 0 || value.shape[d] == 1);
  rows = rows && ((n[4] + kChunk - 1) / kChunk) * ((n[3] + kColumns - 1) / kColumns) < (int64_t{1} << 31);
  return rows ? by_rows(spec, std::move(n), multiprocessors) : by_lines(spec, std::move(n), multiprocessors);
}

}  // namespace ingot::cuda
