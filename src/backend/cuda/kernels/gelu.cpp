// GELU (by tanh) and its gradient as a pass of their own, behind a product whose library has no
// such epilogue.
#include <algorithm>

#include "backend/cuda/kernels/kernels.h"

namespace ingot::cuda {
namespace {

// n: 0 out, 1 in; 2, 3 their offsets; 4 elements
const char* const kPass = R"cuda(
typedef TYPE T;
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const IgParams<5> p) {
  T* out = (T*)ig_pointer(p.n[0]) + p.n[2];
  const T* in = (const T*)ig_pointer(p.n[1]) + p.n[3];
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n[4]; i += gridDim.x * 256ll) {
    const float x = UP(in[i]);
    const float t = ig_tanh(0.7978845608f * (x + 0.044715f * x * x * x));
    RESULT
  }
}
)cuda";

// n: 0 out, 1 in; 2, 3 their offsets; 4 rows, 5 columns; 6, 7 the strides of in. Neighbouring
// threads have neighbouring rows, which lie side by side in dY^T; eight of them share a row.
const char* const kRowSums = R"cuda(
typedef TYPE T;
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const IgParams<8> p) {
  __shared__ float part[8][32];
  T* out = (T*)ig_pointer(p.n[0]) + p.n[2];
  const T* in = (const T*)ig_pointer(p.n[1]) + p.n[3];
  const int x = threadIdx.x & 31, y = threadIdx.x >> 5;
  const long long row = blockIdx.x * 32ll + x;
  float sum = 0.0f;
  if (row < p.n[4])
    for (long long k = y; k < p.n[5]; k += 8) sum += UP(in[row * p.n[6] + k * p.n[7]]);
  part[y][x] = sum;
  __syncthreads();
  if (y != 0 || row >= p.n[4]) return;
  for (int i = 1; i < 8; ++i) sum += part[i][x];
  out[row] = DOWN(sum);
}
)cuda";

}  // namespace

CudaKernel row_sums(const LibrarySpec& spec) {
  const OperandSpec &out = spec.operands[1], &in = spec.operands[2];
  TextType t = text_type(out.dtype);
  std::string body = kRowSums;
  replace_all(body, "TYPE", t.memory);
  replace_all(body, "UP", t.up);
  replace_all(body, "DOWN", t.down);
  CudaKernel k;
  k.text = hand_text("row_sums", body, {{"", 256, true}});
  k.launch.words = {0,           0,           out.offset,   in.offset,
                    in.shape[0], in.shape[1], in.stride[0], in.stride[1]};
  k.launch.stages = {{static_cast<unsigned>((in.shape[0] + 31) / 32), 0}};
  k.launch.part_words = 8;
  return k;
}

CudaKernel gelu_pass(const LibrarySpec& spec) {
  const bool gradient = spec.has(Epilogue::GeluTanhGrad);
  const OperandSpec &out = spec.operands[gradient ? 0 : 1],
                    &in = gradient ? spec.operands.back() : spec.operands[0];
  TextType t = text_type(out.dtype);
  std::string body = kPass;
  replace_all(body, "RESULT",
              gradient
                  ? "out[i] = DOWN(UP(out[i]) * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * "
                    "0.7978845608f * (1.0f + 0.134145f * x * x)));"
                  : "out[i] = DOWN(0.5f * x * (1.0f + t));");
  replace_all(body, "TYPE", t.memory);
  replace_all(body, "UP", t.up);
  replace_all(body, "DOWN", t.down);
  CudaKernel k;
  k.text = hand_text(gradient ? "gelu_grad" : "gelu", body, {{"", 256, true}});
  const int64_t n = in.shape.numel();
  k.launch.words = {0, 0, out.offset, in.offset, n};
  k.launch.stages = {
      {static_cast<unsigned>(std::clamp<int64_t>((n + 1023) / 1024, 1, 1 << 16)), 0}};
  k.launch.part_words = 5;
  return k;
}

}  // namespace ingot::cuda
