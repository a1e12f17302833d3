// Fold: windows added up where they overlap, as in the gradients of unfold and pooling. With a
// third operand (max pooling's), a window adds its one value to the place of it that was picked.
//
// Launch: a thread per kLanes neighbouring elements of the result (16 bytes, where channels are
// last), 256 threads a block; neighbouring threads have neighbouring memory. Each element gathers
// from the windows it lies in, in their own order, so the bits are always the same: at most
// kWindows0 * kWindows1 * kWindows2, of which four loads are in flight at once.
// Bound by memory bandwidth, so sizes, strides and offsets are template arguments: divisions are by
// constants.
#include <algorithm>
#include <cstdlib>

#include "backend/cuda/kernels/kernel_source.h"
#include "ingot/error.h"

namespace ingot::cuda {
namespace {

INGOT_KERNEL_PARAMS(FoldParams, {
  Address out;
  Address value;
  Address position;
});

const char* const kDimsText = R"cuda(
// One dim of the result and how a thread's number gives its place along it. kAxis: which of the windows' dims it is, or -1.
template <long long kSize, long long kStep, long long kStride, long long kValueStride, long long kPositionStride, int kAxis>
struct FoldDim {
  template <class Counter, class I> IG_FN void take(I& t, I& to, I& value, I& position, I* e) {
    const I at = (Counter)t % (Counter)kSize * (Counter)kStep;
    t = (Counter)t / (Counter)kSize;
    to += at * (I)kStride;
    if (kAxis >= 0) { e[kAxis < 0 ? 0 : kAxis] = at; return; }
    value += at * (I)kValueStride;
    position += at * (I)kPositionStride;
  }
};
// All dims, the one with the smallest stride first.
template <class... Dim> struct FoldDims {
  template <class Counter, class I> IG_FN void find(I t, I& to, I& value, I& position, I* e) {
    (Dim::template take<Counter>(t, to, value, position, e), ...);
  }
};
)cuda";

// Of each of the windows' dims: K window, S stride, D dilation, F padding in front, N windows that
// one element can lie in, O windows in all; strides: V of value from window to window, W within a
// window, P of position.
const char* const kText = R"cuda(
// The windows [first, last] that place e lies in, with e = window * S + place * D - F.
template <class I> IG_FN I first_window(I h, I reach, I S) { return h <= reach ? 0 : (h - reach + S - 1) / S; }
template <class I> IG_FN I last_window(I h, I S, I O) { return h < 0 ? -1 : h / S < O ? h / S : O - 1; }
template <class C> IG_FN void fold(const Argument<FoldParams> p) {
  typedef typename C::Type Type;
  typedef typename Type::Memory T;
  typedef typename C::Position::Memory IX;
  typedef typename C::A A;
  typedef typename C::I I;
  constexpr int kLanes = C::kLanes;
  constexpr I K0 = (I)C::kWindow0, K1 = (I)C::kWindow1, K2 = (I)C::kWindow2;
  constexpr I S0 = (I)C::kStride0, S1 = (I)C::kStride1, S2 = (I)C::kStride2;
  constexpr I D0 = (I)C::kDilation0, D1 = (I)C::kDilation1, D2 = (I)C::kDilation2;
  constexpr I F0 = (I)C::kFront0, F1 = (I)C::kFront1, F2 = (I)C::kFront2;
  constexpr I N0 = (I)C::kWindows0, N1 = (I)C::kWindows1, N2 = (I)C::kWindows2;
  constexpr I O0 = (I)C::kCount0, O1 = (I)C::kCount1, O2 = (I)C::kCount2;
  constexpr I V0 = (I)C::kValueStride0, V1 = (I)C::kValueStride1, V2 = (I)C::kValueStride2;
  constexpr I P0 = (I)C::kPositionStride0, P1 = (I)C::kPositionStride1, P2 = (I)C::kPositionStride2;
  constexpr I W0 = (I)C::kPlaceStride0, W1 = (I)C::kPlaceStride1, W2 = (I)C::kPlaceStride2;
  const I i = (I)blockIdx.x * 256 + (I)threadIdx.x;
  if (i >= (I)C::kElements) return;
  I to = (I)C::kOutOffset, value = (I)C::kValueOffset, position = (I)C::kPositionOffset, e[3] = {0, 0, 0};
  C::Dims::template find<typename C::Counter>(i, to, value, position, e);
  const T* v = (const T*)ig_pointer(p.value);
  const IX* where = (const IX*)ig_pointer(p.position);
  A sum[kLanes];
  IG_UNROLL for (int j = 0; j < kLanes; ++j) sum[j] = A(0);
  const I h0 = e[0] + F0, h1 = e[1] + F1, h2 = e[2] + F2;
  const I x0 = first_window(h0, (K0 - 1) * D0, S0), x1 = last_window(h0, S0, O0);
  const I y0 = first_window(h1, (K1 - 1) * D1, S1), y1 = last_window(h1, S1, O1);
  const I z0 = first_window(h2, (K2 - 1) * D2, S2), z1 = last_window(h2, S2, O2);
  constexpr int N = N0 * N1 * N2, M = N < 4 ? N : 4;
  for (int m = 0; m < N; m += M) {
    IgVec<T, kLanes> r[M];
    IgVec<IX, kLanes> at[M];
    I here[M];  // which place of the window the element is; -1: none
    IG_UNROLL for (int u = 0; u < M; ++u) {
      const int n = m + u;
      const I x = x0 + n / (N1 * N2), y = y0 + n / N2 % N1, z = z0 + n % N2;
      const I a = (h0 - x * S0) / D0, b = (h1 - y * S1) / D1, f = (h2 - z * S2) / D2;
      const bool hit = a * D0 == h0 - x * S0 && b * D1 == h1 - y * S1 && f * D2 == h2 - z * S2;  // not between two places
      const bool in = n < N && x <= x1 && y <= y1 && z <= z1 && hit;
      here[u] = in ? (a * K1 + b) * K2 + f : -1;
      if (in) {
        if constexpr (C::kPicks) {
          ig_load<kLanes, 1>(r[u], v + (value + x * V0 + y * V1 + z * V2));
          ig_load<kLanes, 1>(at[u], where + (position + x * P0 + y * P1 + z * P2));
        } else {
          ig_load<kLanes, 1>(r[u], v + (value + x * V0 + y * V1 + z * V2 + a * W0 + b * W1 + f * W2));
        }
      }
    }
    IG_UNROLL for (int u = 0; u < M; ++u) if (here[u] >= 0) {
      IG_UNROLL for (int j = 0; j < kLanes; ++j) if (!C::kPicks || (I)at[u].e[j] == here[u]) sum[j] += A(Type::up(r[u].e[j]));
    }
  }
  IgVec<T, kLanes> w;
  IG_UNROLL for (int j = 0; j < kLanes; ++j) w.e[j] = Type::down(typename Type::Compute(sum[j]));
  ig_store<kLanes, 0>((T*)ig_pointer(p.out) + to, w);
}
)cuda";

const char* accumulator(DType t) {
  return is_float(t) ? (t == DType::Float64 ? "double" : "float") : "long long";
}

// The dim along which the result is contiguous, the one that neighbouring threads have neighbours
// of.
int fold_inner_dim(const OperandSpec& out) {
  int inner = 0;
  for (int d = 1; d < out.shape.size(); ++d)
    if (out.stride[d] <= out.stride[inner]) inner = d;
  return inner;
}

// How many neighbouring elements a thread may take at once: sixteen bytes of them where they lie
// side by side in the same window of every operand (channels last), else one.
int fold_lanes(const LibrarySpec& spec, int lead) {
  const int inner = fold_inner_dim(spec.operands[0]);
  if (inner >= lead) return 1;
  int lanes = static_cast<int>(16 / size_of(spec.operands[0].dtype));
  auto fits = [&](const OperandSpec& o) {
    bool fine = o.stride[inner] == 1 && o.shape[inner] % lanes == 0 && o.offset % lanes == 0;
    for (int d = 0; d < o.shape.size(); ++d)
      fine = fine && (d == inner || o.stride[d] % lanes == 0);
    return fine;
  };
  while (lanes > 1 && !std::all_of(spec.operands.begin(), spec.operands.end(), fits)) lanes /= 2;
  return lanes;
}

/// FoldDims of a call.
std::string fold_dims(const LibrarySpec& spec, int lead, int lanes) {
  const OperandSpec& out = spec.operands[0];
  const int rank = out.shape.size(), dims = rank - lead, inner = fold_inner_dim(out);
  std::vector<int> order;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return out.stride[a] > out.stride[b]; });
  std::string list;
  for (size_t k = order.size(); k-- > 0;) {
    const int d = order[k], step = d == inner ? lanes : 1;
    const bool leads = d < lead, picks = spec.operands.size() == 3;
    list +=
        (list.empty() ? "" : ", ") + instance("FoldDim", out.shape[d] / step, step, out.stride[d],
                                              leads ? spec.operands[1].stride[d] : 0,
                                              leads && picks ? spec.operands[2].stride[d] : 0,
                                              leads ? -1 : 3 - dims + d - lead);
  }
  return "FoldDims<" + list + ">";
}

/// May every position be counted in 32 bits?
bool is_small_fold(const LibrarySpec& spec) {
  for (const OperandSpec& o : spec.operands) {
    int64_t reach = o.offset;
    for (int d = 0; d < o.shape.size(); ++d) reach += (o.shape[d] - 1) * std::abs(o.stride[d]);
    if (reach >= (int64_t{1} << 30) || o.shape.numel() >= (int64_t{1} << 30)) return false;
  }
  return true;
}

}  // namespace

CudaKernel fold(const LibrarySpec& spec) {
  const bool picks = spec.operands.size() == 3, small = is_small_fold(spec);
  const OperandSpec &out = spec.operands[0], &value = spec.operands[1];
  const OperandSpec* position = picks ? &spec.operands[2] : nullptr;
  const FoldAttrs& a = spec.attrs.as<FoldAttrs>();
  const int dims = a.window.size(), lead = out.shape.size() - dims;
  if (dims > 3) throw Error(ErrorKind::Unsupported, "fold", "too many dims");
  const int lanes = fold_lanes(spec, lead);
  CallTraits c;
  c.type("Type", out.dtype).type("A", accumulator(out.dtype));
  c.type("Position", picks ? position->dtype : DType::Int32).flag("kPicks", picks);
  c.type("I", small ? "int" : "long long");
  c.type("Counter", small ? "unsigned" : "unsigned long long");
  c.type("Dims", fold_dims(spec, lead, lanes));
  const int64_t elements = out.shape.numel() / lanes;
  c.value("kElements", elements).value("kLanes", lanes).value("kOutOffset", out.offset);
  c.value("kValueOffset", value.offset).value("kPositionOffset", picks ? position->offset : 0);
  for (int d = 0; d < 3; ++d) {
    const int from = d - (3 - dims);
    const bool there = from >= 0;
    auto put = [&](const char* name, int64_t v) { c.value((name + std::to_string(d)).c_str(), v); };
    put("kWindow", there ? a.window[from] : 1);
    put("kStride", there ? a.stride[from] : 1);
    put("kDilation", there ? a.dilation[from] : 1);
    put("kFront", there ? a.front[from] : 0);
    put("kWindows", there ? (a.window[from] - 1) * a.dilation[from] / a.stride[from] + 1 : 1);
    put("kCount", there ? value.shape[lead + from] : 1);
    put("kValueStride", there ? value.stride[lead + from] : 0);
    put("kPositionStride", there && picks ? position->stride[lead + from] : 0);
    put("kPlaceStride", there && !picks ? value.stride[lead + dims + from] : 0);
  }
  // The parameters are the operands' addresses; a fold without positions has two.
  return make_kernel("fold", kDimsText + c.text() + kText,
                     {{"fold<Call>", (elements + 255) / 256, 256, true}}, FoldParams{});
}

}  // namespace ingot::cuda
