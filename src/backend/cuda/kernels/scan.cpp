// Scan: running values along an axis, in an order that depends on the shape alone.
//
// Rows: the axis is dense in memory. A block takes a chunk of a line, 2048 elements at a time: each
// thread combines 8 of them, the threads' totals are scanned in shared memory, and the total so far
// is carried on. Columns: neighbouring lines are neighbours in memory. A thread takes a chunk of
// one line. Where lines are few, each is cut into chunks: the chunks' totals are found first, then
// scanned, then each chunk begins from what came before it.
#include <algorithm>

#include "backend/cuda/kernels/kernels.h"

namespace ingot::cuda {
namespace {

constexpr int kNumbers = 72;

// n: 0 out, 1 in; 3 lines, 4 elements of a line, 5 elements of a chunk, 6 chunks; 7, 8 strides
// along the axis of out and in; 10, 11 offsets; 14 dims of a line's number; from 28 three words a
// dim: size, strides
const char* const kCommon = R"cuda(
typedef TYPE T; typedef RESULT R; typedef COMPUTE A;
typedef IgParams<72> P;
)cuda";

const char* const kValues = R"cuda(
struct S { A v; };
IG_FN S nothing() { S s; s.v = NEUTRAL; return s; }
IG_FN S of(T x, long long) { S s; s.v = A(UP(x)); return s; }
IG_FN R result(S s) { return DOWN(s.v); }
IG_FN A sum_exp(A a, A b) {
  if (a != a || b != b) return a + b;
  const A hi = a > b ? a : b, lo = a > b ? b : a;
  return hi == lo && hi - hi != A(0) ? hi : hi + ig_log1p(ig_exp(lo - hi));
}
IG_FN S both(S a, S b) { S s; s.v = COMBINE; return s; }
)cuda";

const char* const kPlaces = R"cuda(
struct S { A v; long long at; };
IG_FN S nothing() { S s; s.v = A(0); s.at = -1; return s; }
IG_FN S of(T x, long long k) { S s; s.v = A(UP(x)); s.at = k; return s; }
IG_FN R result(S s) { return s.at; }
// b comes later.
IG_FN S both(S a, S b) {
  if (a.at < 0) return b;
  if (b.at < 0) return a;
  return b.v != b.v || (a.v == a.v && COMBINE) ? b : a;
}
)cuda";

const char* const kRows = R"cuda(
// The totals of the threads to the left of this one, `total` becomes that of all.
IG_FN S scan_block(S own, S& total, S* shared) {
  shared[threadIdx.x] = own;
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    const S left = threadIdx.x >= (unsigned)step ? shared[threadIdx.x - step] : nothing();
    __syncthreads();
    shared[threadIdx.x] = both(left, shared[threadIdx.x]);
    __syncthreads();
  }
  const S before = threadIdx.x ? shared[threadIdx.x - 1] : nothing();
  total = shared[255];
  __syncthreads();
  return before;
}
template <bool WRITE> IG_FN S chunk(const P& p, S carry, S* shared) {
  long long o, i;
  line_at(p, blockIdx.x / p.n[6], o, i);
  const long long begin = blockIdx.x % p.n[6] * p.n[5], end = begin + p.n[5] < p.n[4] ? begin + p.n[5] : p.n[4];
  const T* in = (const T*)ig_pointer(p.n[1]) + i;
  R* out = (R*)ig_pointer(p.n[0]) + o;
  for (long long base = begin; base < end; base += 2048) {
    const long long first = base + threadIdx.x * 8ll;
    S own[8], sum = nothing();
    IG_UNROLL for (int j = 0; j < 8; ++j) {
      own[j] = first + j < end ? of(in[(first + j) * p.n[8]], first + j) : nothing();
      sum = both(sum, own[j]);
    }
    S total;
    S at = both(carry, scan_block(sum, total, shared));
    carry = both(carry, total);
    if (!WRITE) continue;
    IG_UNROLL for (int j = 0; j < 8; ++j) {
      at = both(at, own[j]);
      if (first + j < end) out[(first + j) * p.n[7]] = result(at);
    }
  }
  return carry;
}
)cuda";

const char* const kRowsWhole = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const P p) {
  __shared__ S shared[256];
  chunk<true>(p, nothing(), shared);
}
)cuda";

const char* const kRowsChunks = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const P p) {
  __shared__ S shared[256];
  const S total = chunk<false>(p, nothing(), shared);
  if (threadIdx.x == 0) ((S*)p.scratch)[blockIdx.x] = total;
}
extern "C" __global__ void __launch_bounds__(256) ENTRY1(const P p) {
  __shared__ S shared[256];
  S* totals = (S*)p.scratch + blockIdx.x * p.n[6];
  S carry = nothing();
  for (long long base = 0; base < p.n[6]; base += 256) {
    const long long k = base + threadIdx.x;
    const S own = k < p.n[6] ? totals[k] : nothing();
    S total;
    const S before = both(carry, scan_block(own, total, shared));
    if (k < p.n[6]) totals[k] = before;
    carry = both(carry, total);
  }
}
extern "C" __global__ void __launch_bounds__(256) ENTRY2(const P p) {
  __shared__ S shared[256];
  chunk<true>(p, ((const S*)p.scratch)[blockIdx.x], shared);
}
)cuda";

const char* const kColumns = R"cuda(
template <bool WRITE> IG_FN S chunk(const P& p, long long task, S carry) {
  long long o, i;
  line_at(p, task % p.n[3], o, i);
  const long long begin = task / p.n[3] * p.n[5], end = begin + p.n[5] < p.n[4] ? begin + p.n[5] : p.n[4];
  const T* in = (const T*)ig_pointer(p.n[1]) + i;
  R* out = (R*)ig_pointer(p.n[0]) + o;
  for (long long k = begin; k < end; ++k) {
    carry = both(carry, of(in[k * p.n[8]], k));
    if (WRITE) out[k * p.n[7]] = result(carry);
  }
  return carry;
}
)cuda";

const char* const kColumnsWhole = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const P p) {
  const long long task = blockIdx.x * 256ll + threadIdx.x;
  if (task < p.n[3]) chunk<true>(p, task, nothing());
}
)cuda";

const char* const kColumnsChunks = R"cuda(
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const P p) {
  const long long task = blockIdx.x * 256ll + threadIdx.x;
  if (task < p.n[3] * p.n[6]) ((S*)p.scratch)[task] = chunk<false>(p, task, nothing());
}
extern "C" __global__ void __launch_bounds__(256) ENTRY1(const P p) {
  const long long line = blockIdx.x * 256ll + threadIdx.x;
  if (line >= p.n[3]) return;
  S carry = nothing();
  for (long long c = 0; c < p.n[6]; ++c) {
    S* at = (S*)p.scratch + c * p.n[3] + line;
    const S own = *at;
    *at = carry;
    carry = both(carry, own);
  }
}
extern "C" __global__ void __launch_bounds__(256) ENTRY2(const P p) {
  const long long task = blockIdx.x * 256ll + threadIdx.x;
  if (task < p.n[3] * p.n[6]) chunk<true>(p, task, ((const S*)p.scratch)[task]);
}
)cuda";

std::string common(const LibrarySpec& spec) {
  DType t = spec.operands[1].dtype;
  TextType type = text_type(t), result = text_type(spec.operands[0].dtype);
  const ScanKind kind = spec.attrs.as<ScanAttrs>().kind;
  bool places = kind == ScanKind::ArgMax || kind == ScanKind::ArgMin;
  std::string s = std::string(kCommon) + line_at_text(10, 14) + (places ? kPlaces : kValues);
  replace_all(s, "TYPE", type.memory);
  replace_all(s, "RESULT", result.memory);
  replace_all(s, "COMPUTE", type.compute);
  replace_all(s, "UP(x)", type.up + "(x)");
  replace_all(s, "DOWN(s.v)", is_half(t) ? type.down + "(s.v)" : "R(s.v)");
  const char* neutral = kind == ScanKind::Sum    ? "A(0)"
                        : kind == ScanKind::Prod ? "A(1)"
                        : t == DType::Float64    ? "ig_bits_f64(0xfff0000000000000ull)"
                                                 : "ig_bits_f32(0xff800000u)";
  replace_all(s, "NEUTRAL", neutral);
  const char* combine = kind == ScanKind::Sum      ? "A(a.v + b.v)"
                        : kind == ScanKind::Prod   ? "A(a.v * b.v)"
                        : kind == ScanKind::LogSum ? "sum_exp(a.v, b.v)"
                        : kind == ScanKind::ArgMax ? "b.v >= a.v"
                                                   : "b.v <= a.v";
  replace_all(s, "COMBINE", combine);
  if (kind != ScanKind::LogSum && !places) {  // integers have no such function
    size_t a = s.find("IG_FN A sum_exp"), b = s.find("IG_FN S both");
    s.erase(a, b - a);
  }
  return s;
}

std::vector<int64_t> numbers(const LibrarySpec& spec) {
  const OperandSpec &out = spec.operands[0], &in = spec.operands[1];
  const int axis = spec.attrs.as<ScanAttrs>().axis;
  std::vector<int64_t> n(kNumbers, 0);
  n[14] = put_lines(spec, n);
  n[4] = in.shape[axis];
  n[7] = out.stride[axis], n[8] = in.stride[axis], n[10] = out.offset, n[11] = in.offset;
  return n;
}

}  // namespace

bool supports_scan(const LibrarySpec& spec) {
  return spec.operands[1].shape.numel() / 32 < (int64_t{1} << 31);
}

CudaKernel scan(const LibrarySpec& spec, int multiprocessors) {
  std::vector<int64_t> n = numbers(spec);
  const int64_t size = spec.operands[1].stride[spec.attrs.as<ScanAttrs>().axis];
  const bool rows = size == 1 || size == -1 || n[3] < 32;
  // A block's share of a line, or a thread's: enough of them to fill the device.
  const int64_t wanted = rows ? multiprocessors * 4 : multiprocessors * 1024,
                least = rows ? 8192 : 64;
  n[5] = n[4];
  if (n[3] < wanted && n[4] > 2 * least) {
    const int64_t chunks = std::min((wanted + n[3] - 1) / n[3], (n[4] + least - 1) / least);
    n[5] = (n[4] + chunks - 1) / chunks;
    n[5] = (n[5] + least - 1) / least * least;
  }
  n[6] = (n[4] + n[5] - 1) / n[5];
  const bool chunks = n[6] > 1;
  CudaKernel k;
  std::string body = common(spec) + (rows ? kRows : kColumns) +
                     (rows     ? (chunks ? kRowsChunks : kRowsWhole)
                      : chunks ? kColumnsChunks
                               : kColumnsWhole);
  k.text = hand_text(rows ? "scan_rows" : "scan_columns", body,
                     std::vector<CudaStage>(chunks ? 3 : 1, CudaStage{"", 256, rows}));
  auto blocks = [&](int64_t tasks) {
    return static_cast<unsigned>(rows ? tasks : (tasks + 255) / 256);
  };
  if (chunks) {
    k.launch.stages = {{blocks(n[3] * n[6]), 0}, {blocks(n[3]), 0}, {blocks(n[3] * n[6]), 0}};
    k.launch.scratch_bytes = static_cast<size_t>(n[3] * n[6]) * 16;
  } else {
    k.launch.stages = {{blocks(n[3]), 0}};
  }
  k.launch.words = std::move(n);
  k.launch.part_words = kNumbers;
  return k;
}

}  // namespace ingot::cuda
