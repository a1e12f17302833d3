// A scan along an axis whose neighbouring lines are neighbours in memory.
//
// Launch: a thread per chunk of a line, 256 threads a block; neighbouring threads have neighbouring
// lines. Lines in several chunks take three launches: totals, carries (a thread a line), chunks.
// Bound by memory bandwidth where there are lines enough to fill the GPU, else by the latency of
// one element after the other.
#include "backend/cuda/kernels/scan.h"

namespace ingot::cuda {

static const char* const kText = R"cuda(
template <class State, bool kWrite>
IG_FN typename State::S chunk(const Argument<ScanParams>& p, long long task, typename State::S carry) {
  typedef typename State::T T;
  typedef typename State::R R;
  long long o, i;
  line_at(p, task % p.lines, o, i);
  const long long begin = task / p.lines * p.chunk, end = begin + p.chunk < p.length ? begin + p.chunk : p.length;
  const T* in = (const T*)ig_pointer(p.in) + i;
  R* out = (R*)ig_pointer(p.out) + o;
  for (long long k = begin; k < end; ++k) {
    carry = State::both(carry, State::of(in[k * p.in_stride], k));
    if (kWrite) out[k * p.out_stride] = State::result(carry);
  }
  return carry;
}
template <class State> IG_FN void scan_columns(const Argument<ScanParams>& p) {
  const long long task = blockIdx.x * 256ll + threadIdx.x;
  if (task < p.lines) chunk<State, true>(p, task, State::nothing());
}
template <class State> IG_FN void scan_columns_totals(const Argument<ScanParams>& p) {
  typedef typename State::S S;
  const long long task = blockIdx.x * 256ll + threadIdx.x;
  if (task < p.lines * p.chunks) ((S*)p.scratch)[task] = chunk<State, false>(p, task, State::nothing());
}
template <class State> IG_FN void scan_columns_carries(const Argument<ScanParams>& p) {
  typedef typename State::S S;
  const long long line = blockIdx.x * 256ll + threadIdx.x;
  if (line >= p.lines) return;
  S carry = State::nothing();
  for (long long c = 0; c < p.chunks; ++c) {
    S* at = (S*)p.scratch + c * p.lines + line;
    const S own = *at;
    *at = carry;
    carry = State::both(carry, own);
  }
}
template <class State> IG_FN void scan_columns_chunks(const Argument<ScanParams>& p) {
  typedef typename State::S S;
  const long long task = blockIdx.x * 256ll + threadIdx.x;
  if (task < p.lines * p.chunks) chunk<State, true>(p, task, ((const S*)p.scratch)[task]);
}
)cuda";

CudaKernel scan_columns(const LibrarySpec& spec, ScanParams p) {
  const std::string state = scan_state(spec);
  auto stage = [&](const char* function, int64_t threads) {
    return KernelStage{instance(function, state), (threads + 255) / 256, 256, false};
  };
  std::vector<KernelStage> stages{stage("scan_columns", p.lines)};
  if (p.chunks > 1)
    stages = {stage("scan_columns_totals", p.lines * p.chunks),
              stage("scan_columns_carries", p.lines),
              stage("scan_columns_chunks", p.lines * p.chunks)};
  return make_kernel("scan_columns", scan_text() + kText, stages, p);
}

}  // namespace ingot::cuda
