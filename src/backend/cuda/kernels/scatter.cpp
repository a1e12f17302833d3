// See scatter.h: which kernel takes a call, and the parameters they share.
#include "backend/cuda/kernels/scatter.h"

#include <algorithm>

namespace ingot::cuda {

const char* const kScatterText = R"cuda(
// How a value is combined with what came before it.
struct Add { template <class A> IG_FN A both(A a, A b) { return A(a + b); } };
struct Set { template <class A> IG_FN A both(A, A b) { return b; } };
struct Prod { template <class A> IG_FN A both(A a, A b) { return A(a * b); } };
struct Max { template <class A> IG_FN A both(A a, A b) { return ig_max(a, b); } };
struct Min { template <class A> IG_FN A both(A a, A b) { return ig_min(a, b); } };
// The offsets of a line (or column) in out, index and value.
IG_FN void place(const Argument<ScatterParams>& p, long long line, long long& o, long long& i, long long& v) {
  o = p.out_offset; i = p.index_offset; v = p.value_offset;
  for (int d = (int)p.line_dims - 1; d >= 0; --d) {
    const auto& dim = p.dims[d];
    const long long at = line % dim.size; line /= dim.size;
    o += at * dim.out; i += at * dim.index; v += at * dim.value;
  }
}
// What element i of out begins with: base's, or 0.
template <class C> IG_FN typename C::D::Memory begin(const Argument<ScatterParams>& p, long long i) {
  typedef typename C::D::Memory T;
  if (!C::kBased) return T(0);
  long long b = p.base_offset;
  for (int d = (int)p.base_dims - 1; d >= 0; --d) {
    const auto& dim = p.base[d];
    b += i % dim.size * dim.stride; i /= dim.size;
  }
  return ((const T*)ig_pointer(p.operands[1]))[b];
}
)cuda";

namespace {

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

/// What both kernels need. The dims of a line are those of the value but the axis, neighbours
/// merged.
ScatterParams scatter_params(const LibrarySpec& spec, int axis) {
  const Operands op(spec);
  ScatterParams p{};
  p.columns = 1;
  for (int d = 0; d < op.value.shape.size(); ++d) {
    const int64_t size = op.value.shape[d];
    if (d == axis || size == 1) continue;
    const int64_t out = op.out.stride[d], index = op.index.stride[d], value = op.value.stride[d];
    p.columns *= size;
    if (p.line_dims > 0) {
      auto& last = p.dims[p.line_dims - 1];
      if (last.out == out * size && last.index == index * size && last.value == value * size) {
        last = {last.size * size, out, index, value};
        continue;
      }
    }
    p.dims[p.line_dims++] = {size, out, index, value};
  }
  const bool scalar = op.value.shape.empty();
  p.positions = scalar ? 1 : op.value.shape[axis];
  p.extent = op.out.shape.empty() ? 1 : op.out.shape[axis];
  p.site = spec.site;
  if (!scalar) {
    p.out_stride = op.out.stride[axis];
    p.index_stride = op.index.stride[axis];
    p.value_stride = op.value.stride[axis];
  }
  p.out_offset = op.out.offset, p.index_offset = op.index.offset;
  p.value_offset = op.value.offset;
  p.elements = op.out.shape.numel();
  if (!op.based) return p;
  p.base_offset = op.base.offset;
  for (int d = 0; d < op.base.shape.size(); ++d)
    if (op.base.shape[d] != 1) p.base[p.base_dims++] = {op.base.shape[d], op.base.stride[d]};
  return p;
}

}  // namespace

CallTraits scatter_traits(const LibrarySpec& spec) {
  const Operands op(spec);
  const char* combine = "Add";
  if (op.based) switch (spec.attrs.as<ScatterAttrs>().mode) {
      case ScatterMode::Set:
        combine = "Set";
        break;
      case ScatterMode::Prod:
        combine = "Prod";
        break;
      case ScatterMode::Max:
        combine = "Max";
        break;
      case ScatterMode::Min:
        combine = "Min";
        break;
    }
  CallTraits t;
  t.type("D", op.out.dtype).type("Op", combine);
  t.type("Index", op.index.dtype == DType::Int32 ? "int" : "long long");
  t.flag("kBased", op.based).value("kIndex", op.based ? 2 : 1);
  return t;
}

int64_t sweep_blocks(int64_t work, int64_t most) {
  return std::clamp<int64_t>((work + 255) / 256, 1, most);
}

CudaKernel scatter(const LibrarySpec& spec, int multiprocessors) {
  const Operands op(spec);
  const int axis = axis_of(spec);
  const ScatterParams p = scatter_params(spec, axis);
  constexpr int64_t most = int64_t{1} << 31;
  bool rows = p.positions > 32 && p.positions < most && p.extent < most;
  for (int d = 0; d < op.value.shape.size(); ++d)
    rows = rows && (d == axis || op.index.stride[d] == 0 || op.value.shape[d] == 1);
  rows = rows && ((p.positions + kScatterChunk - 1) / kScatterChunk) *
                         ((p.columns + kScatterColumns - 1) / kScatterColumns) <
                     most;
  if (rows) return scatter_sorted(spec, p, false, multiprocessors);
  const bool singles = p.positions >= 128 && p.columns < int64_t{256} * multiprocessors &&
                       p.positions * p.columns < most && p.elements < most - 1;
  return singles ? scatter_sorted(spec, p, true, multiprocessors)
                 : scatter_lines(spec, p, multiprocessors);
}

}  // namespace ingot::cuda
