// A scatter by lines, where the index differs from line to line: one thread takes a line, all
// positions along the axis in order.
//
// Launch: a sweep that writes what out begins with, 256 threads a block, a thread a line, and for
// 16 bits, which are summed in float32 in scratch memory, a sweep that rounds. Bound by the latency
// of one read-modify-write after the other where lines are few.
#include "backend/cuda/kernels/scatter.h"

namespace ingot::cuda {

static const char* const kText = R"cuda(
// out, or the sums in scratch (16 bits), before the first value.
template <class C> IG_FN void scatter_lines_begin(const Argument<ScatterParams>& p) {
  typedef typename C::D D;
  typedef typename D::Memory T;
  typedef typename D::Compute A;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.elements; i += gridDim.x * 256ll) {
    if (C::kWide) ((A*)p.scratch)[i] = D::up(begin<C>(p, i));
    else ((T*)ig_pointer(p.operands[0]))[i] = begin<C>(p, i);
  }
}
template <class C> IG_FN void scatter_lines(const Argument<ScatterParams>& p) {
  typedef typename C::D D;
  typedef typename D::Memory T;
  typedef typename D::Compute A;
  const long long line = blockIdx.x * 256ll + threadIdx.x;
  if (line >= p.columns) return;
  A* sums = C::kWide ? (A*)p.scratch : (A*)ig_pointer(p.operands[0]);
  const typename C::Index* index = (const typename C::Index*)ig_pointer(p.operands[C::kIndex]);
  const T* value = (const T*)ig_pointer(p.operands[C::kIndex + 1]);
  long long o, i, v;
  place(p, line, o, i, v);
  for (long long k = 0; k < p.positions; ++k) {
    const long long at = ig_index((long long)index[i + k * p.index_stride], p.extent, p.site, p.status);
    if (at < 0) continue;
    A* s = sums + o + at * p.out_stride;
    *s = C::Op::both(*s, D::up(value[v + k * p.value_stride]));
  }
}
// The sums of 16-bit types, rounded.
template <class C> IG_FN void scatter_lines_round(const Argument<ScatterParams>& p) {
  typedef typename C::D D;
  typedef typename D::Memory T;
  typedef typename D::Compute A;
  const A* sums = (const A*)p.scratch;
  T* out = (T*)ig_pointer(p.operands[0]);
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.elements; i += gridDim.x * 256ll) out[i] = D::down(sums[i]);
}
)cuda";

CudaKernel scatter_lines(const LibrarySpec& spec, const ScatterParams& p, int multiprocessors) {
  const bool wide = is_half(spec.operands[0].dtype);
  CallTraits t = scatter_traits(spec);
  t.flag("kWide", wide);
  const int64_t sweep = sweep_blocks(p.elements, multiprocessors * 8);
  std::vector<KernelStage> stages{{"scatter_lines_begin<Call>", sweep, 256, false},
                                  {"scatter_lines<Call>", (p.columns + 255) / 256, 256, false}};
  if (wide) stages.push_back({"scatter_lines_round<Call>", sweep, 256, false});
  CudaKernel k = make_kernel("scatter_lines", kScatterText + t.text() + kText, stages, p);
  if (wide) k.launch.scratch_bytes = static_cast<size_t>(p.elements) * 4;
  return k;
}

}  // namespace ingot::cuda
