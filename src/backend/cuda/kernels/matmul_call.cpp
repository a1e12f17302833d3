// See matmul_call.h.
#include "backend/cuda/kernels/matmul_call.h"

#include "ingot/error.h"

namespace ingot::cuda {
namespace {

constexpr int kBatchDims = kMaxDims - 2;
static_assert(sizeof(MatmulParams::batch) == sizeof(MatmulParams::batch[0]) * kBatchDims);

const char* accumulator(const LibrarySpec& spec) {
  DType t = factors(spec)[0].dtype;
  if (is_half(t)) return spec.operands[0].dtype == DType::Float64 ? "double" : "float";
  return is_float(t) ? (t == DType::Float64 ? "double" : "float") : "long long";
}

}  // namespace

// GELU's gradient is a separate pass (kernels/gelu.cpp), and so is a bias's gradient unless the
// kernel sums a's rows itself.
const char* const kMatmulEpilogues = R"cuda(
// The value that goes to *at, element (row, col) of the result, from its sum. `bias` loads the bias of the column.
template <class C, class I, class LoadBias>
IG_FN typename C::Out::Memory finish(const Argument<MatmulParams>& p, typename C::Acc sum, const typename C::Out::Memory* at,
                                     I row, I col, LoadBias bias) {
  typedef typename C::Acc Acc;
  typedef typename C::Out Out;
  if constexpr (C::kAccumulate) sum += Acc(Out::up(*at));
  if constexpr (C::kBias) sum += Acc(C::Bias::up(bias()));
  if constexpr (C::kReluGrad) {
    const typename Out::Memory* relu = (const typename Out::Memory*)ig_pointer(p.operands[3]);
    if (!(Out::up(relu[p.extra_offset + row * p.relu_row + col * p.relu_col]) > typename Out::Compute(0))) sum = Acc(0);
  }
  if constexpr (C::kRelu) sum = sum > Acc(0) ? sum : (sum != sum ? sum : Acc(0));
  if constexpr (C::kGelu)
    sum = Acc(0.5) * sum * (Acc(1) + ig_tanh(Acc(0.7978845608028654) * (sum + Acc(0.044715) * sum * sum * sum)));
  return Out::down(typename Out::Compute(sum));
}
template <class C, class I>
IG_FN typename C::Out::Memory finish(const Argument<MatmulParams>& p, typename C::Acc sum, const typename C::Out::Memory* at,
                                     I row, I col) {
  return finish<C>(p, sum, at, row, col,
                   [&] { return ((const typename C::Bias::Memory*)ig_pointer(p.operands[3]))[p.extra_offset + col * p.extra_stride]; });
}
)cuda";

const OperandSpec* factors(const LibrarySpec& spec) {
  return &spec.operands[static_cast<size_t>(spec.written)];
}

MatmulParams matmul_params(const LibrarySpec& spec) {
  const auto& o = spec.operands;
  const OperandSpec &out = o[0], &a = factors(spec)[0], &b = factors(spec)[1];
  const int rank = out.shape.size(), row = rank - 2, col = rank - 1;
  if (rank - 2 > kBatchDims)
    throw Error(ErrorKind::Unsupported, "matmul", "more than 8 batch dimensions");
  MatmulParams p{};
  p.M = out.shape[row], p.N = out.shape[col], p.K = a.shape[col];
  p.batch_dims = rank - 2;
  p.out_offset = out.offset, p.a_offset = a.offset, p.b_offset = b.offset;
  p.out_row = out.stride[row], p.out_col = out.stride[col];
  p.a_row = a.stride[row], p.a_inner = a.stride[col];
  p.b_inner = b.stride[row], p.b_col = b.stride[col];
  if (spec.has(Epilogue::Bias)) p.extra_offset = o[3].offset, p.extra_stride = o[3].stride[0];
  if (spec.has(Epilogue::BiasGrad))
    p.extra_offset = o[1].offset, p.extra_stride = o[1].stride.back();
  if (spec.has(Epilogue::ReluGrad)) {
    p.extra_offset = o[3].offset;
    p.relu_row = o[3].stride[row], p.relu_col = o[3].stride[col];
  }
  for (int d = 0; d < rank - 2; ++d) {
    const int64_t size = out.shape[d];
    auto stride = [&](const OperandSpec& x) {
      return x.shape[d] == 1 && size > 1 ? 0 : x.stride[d];
    };
    p.batch[d] = {size, stride(out), stride(a), stride(b)};
  }
  return p;
}

CallTraits matmul_traits(const LibrarySpec& spec) {
  const auto& o = spec.operands;
  CallTraits t;
  t.type("Out", o[0].dtype).type("A", factors(spec)[0].dtype).type("B", factors(spec)[1].dtype);
  t.type("Bias", spec.has(Epilogue::Bias) ? o[3].dtype : o[0].dtype);
  t.type("Acc", accumulator(spec));
  t.flag("kAccumulate", spec.accumulate).flag("kBias", spec.has(Epilogue::Bias));
  t.flag("kReluGrad", spec.has(Epilogue::ReluGrad)).flag("kRelu", spec.has(Epilogue::Relu));
  return t.flag("kGelu", spec.has(Epilogue::GeluTanh));
}

}  // namespace ingot::cuda
