// GELU (by tanh) and its gradient as a pass after a product whose library has no such epilogue:
// out = gelu(in), or out *= gelu'(in). Both are contiguous.
//
// Launch: 256 threads a block, a grid-stride loop of about four elements a thread. Bound by memory
// bandwidth.
#include <algorithm>

#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {
namespace {

INGOT_KERNEL_PARAMS(GeluParams, {
  Address out;
  Address in;
  long long out_offset;
  long long in_offset;
  long long elements;
});

const char* const kText = R"cuda(
template <class D, bool kGradient> IG_FN void gelu(const Argument<GeluParams> p) {
  typedef typename D::Memory T;
  T* out = (T*)ig_pointer(p.out) + p.out_offset;
  const T* in = (const T*)ig_pointer(p.in) + p.in_offset;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.elements; i += gridDim.x * 256ll) {
    const float x = D::up(in[i]);
    const float t = ig_tanh(0.7978845608f * (x + 0.044715f * x * x * x));
    if (kGradient)
      out[i] = D::down(D::up(out[i]) * (0.5f * (1.0f + t) +
                                        0.5f * x * (1.0f - t * t) * 0.7978845608f * (1.0f + 0.134145f * x * x)));
    else
      out[i] = D::down(0.5f * x * (1.0f + t));
  }
}
)cuda";

}  // namespace

CudaKernel gelu_pass(const LibrarySpec& spec) {
  const bool gradient = spec.has(Epilogue::GeluTanhGrad);
  const OperandSpec &out = spec.operands[gradient ? 0 : 1],
                    &in = gradient ? spec.operands.back() : spec.operands[0];
  GeluParams p{};
  p.out_offset = out.offset, p.in_offset = in.offset;
  p.elements = in.shape.numel();
  const int64_t blocks = std::clamp<int64_t>((p.elements + 1023) / 1024, 1, 1 << 16);
  return make_kernel(gradient ? "gelu_grad" : "gelu", kText,
                     {{instance("gelu", out.dtype, gradient), blocks, 256, true}}, p);
}

}  // namespace ingot::cuda
