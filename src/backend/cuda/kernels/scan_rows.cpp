// A scan along an axis that is dense in memory, or of few lines.
//
// Launch: a block of 256 threads per chunk of a line, 2048 elements at a time: each thread combines
// 8 of them, the threads' totals are scanned in shared memory, and the total so far is carried on.
// Lines in several chunks take three launches: totals, carries (a block a line), chunks.
// Bound by memory bandwidth: one read and one write, two reads where there are chunks.
#include "backend/cuda/kernels/scan.h"

namespace ingot::cuda {

static const char* const kText = R"cuda(
// The totals of the threads to the left of this one, `total` becomes that of all.
template <class State>
IG_FN typename State::S scan_block(typename State::S own, typename State::S& total, typename State::S* shared) {
  typedef typename State::S S;
  shared[threadIdx.x] = own;
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    const S left = threadIdx.x >= (unsigned)step ? shared[threadIdx.x - step] : State::nothing();
    __syncthreads();
    shared[threadIdx.x] = State::both(left, shared[threadIdx.x]);
    __syncthreads();
  }
  const S before = threadIdx.x ? shared[threadIdx.x - 1] : State::nothing();
  total = shared[255];
  __syncthreads();
  return before;
}
template <class State, bool kWrite>
IG_FN typename State::S chunk(const Argument<ScanParams>& p, typename State::S carry, typename State::S* shared) {
  typedef typename State::S S;
  typedef typename State::T T;
  typedef typename State::R R;
  long long o, i;
  line_at(p, blockIdx.x / p.chunks, o, i);
  const long long begin = blockIdx.x % p.chunks * p.chunk, end = begin + p.chunk < p.length ? begin + p.chunk : p.length;
  const T* in = (const T*)ig_pointer(p.in) + i;
  R* out = (R*)ig_pointer(p.out) + o;
  for (long long base = begin; base < end; base += 2048) {
    const long long first = base + threadIdx.x * 8ll;
    S own[8], sum = State::nothing();
    IG_UNROLL for (int j = 0; j < 8; ++j) {
      own[j] = first + j < end ? State::of(in[(first + j) * p.in_stride], first + j) : State::nothing();
      sum = State::both(sum, own[j]);
    }
    S total;
    S at = State::both(carry, scan_block<State>(sum, total, shared));
    carry = State::both(carry, total);
    if (!kWrite) continue;
    IG_UNROLL for (int j = 0; j < 8; ++j) {
      at = State::both(at, own[j]);
      if (first + j < end) out[(first + j) * p.out_stride] = State::result(at);
    }
  }
  return carry;
}
template <class State> IG_FN void scan_rows(const Argument<ScanParams>& p) {
  typedef typename State::S S;
  __shared__ S shared[256];
  chunk<State, true>(p, State::nothing(), shared);
}
template <class State> IG_FN void scan_rows_totals(const Argument<ScanParams>& p) {
  typedef typename State::S S;
  __shared__ S shared[256];
  const S total = chunk<State, false>(p, State::nothing(), shared);
  if (threadIdx.x == 0) ((S*)p.scratch)[blockIdx.x] = total;
}
template <class State> IG_FN void scan_rows_carries(const Argument<ScanParams>& p) {
  typedef typename State::S S;
  __shared__ S shared[256];
  S* totals = (S*)p.scratch + blockIdx.x * p.chunks;
  S carry = State::nothing();
  for (long long base = 0; base < p.chunks; base += 256) {
    const long long k = base + threadIdx.x;
    const S own = k < p.chunks ? totals[k] : State::nothing();
    S total;
    const S before = State::both(carry, scan_block<State>(own, total, shared));
    if (k < p.chunks) totals[k] = before;
    carry = State::both(carry, total);
  }
}
template <class State> IG_FN void scan_rows_chunks(const Argument<ScanParams>& p) {
  typedef typename State::S S;
  __shared__ S shared[256];
  chunk<State, true>(p, ((const S*)p.scratch)[blockIdx.x], shared);
}
)cuda";

CudaKernel scan_rows(const LibrarySpec& spec, ScanParams p) {
  const std::string state = scan_state(spec);
  auto stage = [&](const char* function, int64_t blocks) {
    return KernelStage{instance(function, state), blocks, 256, true};
  };
  std::vector<KernelStage> stages{stage("scan_rows", p.lines)};
  if (p.chunks > 1)
    stages = {stage("scan_rows_totals", p.lines * p.chunks), stage("scan_rows_carries", p.lines),
              stage("scan_rows_chunks", p.lines * p.chunks)};
  return make_kernel("scan_rows", scan_text() + kText, stages, p);
}

}  // namespace ingot::cuda
