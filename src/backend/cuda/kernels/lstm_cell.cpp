// The cell of an LSTM's step, forward and backward: the elementwise part of a step, after its
// product.
//
//   forward:  i, f, o = sigmoid(z + h W), g = tanh(z + h W); c = f c + i g; h = o tanh(c)
//   backward: the gradients of z and of the previous c from those of h and c
//
// Launch: a thread for kLanes neighbouring elements of a row, 128 threads a block, no shared
// memory. Bound by memory bandwidth at large batches and by launch latency at small ones, so
// whatever no kernel of this call writes between the previous cell and this one is loaded before
// ig_wait(). Computed in float32 whatever the dtype.
#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {
namespace {

// All rows of one step. H = width.
INGOT_KERNEL_PARAMS(LstmForwardParams, {
  Address z;          // [rows, 4 H], row_stride apart: what the input gives
  Address product;    // float32 [rows, 4 H]: what the previous h gives
  Address previous;   // float32 [rows, H]: c of the previous step
  Address h;          // [rows, H]
  Address gates;      // [rows, 4 H], kept for the gradient, or null
  Address c;          // float32 [rows, H]
  Address unused[2];  // a launch passes eight addresses, forward and backward
  long long threads;  // that have work
  long long width;
  long long row_stride;
});

INGOT_KERNEL_PARAMS(LstmBackwardParams, {
  Address grad_h;         // [rows, H], row_stride apart: from above
  Address product;        // float32 [rows, H]: the gradient of h from the next step, or null
  Address gates;          // [rows, 4 H]
  Address c;              // float32 [rows, H]
  Address previous;       // float32 [rows, H]: c of the previous step
  Address grad_c;         // float32 [rows, H]: from the next step
  Address grad_z;         // [rows, 4 H]
  Address grad_previous;  // float32 [rows, H]: the gradient of the previous step's c
  long long threads;
  long long width;
  long long row_stride;
});

const char* const kForward = R"cuda(
IG_FN float sigmoid(float x) { return 1.0f / (1.0f + ig_exp(-x)); }
template <class D, int kLanes> IG_FN void lstm_forward(const Argument<LstmForwardParams> p) {
  typedef typename D::Memory T;
  const unsigned i = blockIdx.x * 128u + threadIdx.x, H = (unsigned)p.width;
  if (i >= (unsigned)p.threads) return;
  const unsigned e = i * kLanes, row = e / H, j = e - row * H;
  const T* z = (const T*)p.z + row * p.row_stride + j;
  const float* product = (const float*)p.product + row * 4ll * H + j;
  IgVec<T, kLanes> x[4], h;
  IgVec<float, kLanes> y[4], c;
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_load<kLanes, 0>(x[g], z + g * H);
  ig_load<kLanes, 0>(c, (const float*)p.previous + e);
  ig_wait();
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_load<kLanes, 0>(y[g], product + g * H);
  IG_UNROLL for (int k = 0; k < kLanes; ++k) {
    const float in = sigmoid(D::up(x[0].e[k]) + y[0].e[k]), forget = sigmoid(D::up(x[1].e[k]) + y[1].e[k]);
    const float fresh = ig_tanh(D::up(x[2].e[k]) + y[2].e[k]), out = sigmoid(D::up(x[3].e[k]) + y[3].e[k]);
    c.e[k] = forget * c.e[k] + in * fresh;
    h.e[k] = D::down(out * ig_tanh(c.e[k]));
    x[0].e[k] = D::down(in); x[1].e[k] = D::down(forget); x[2].e[k] = D::down(fresh); x[3].e[k] = D::down(out);
  }
  ig_store<kLanes, 0>((T*)p.h + e, h);
  ig_store<kLanes, 0>((float*)p.c + e, c);
  T* gates = (T*)p.gates;
  if (!gates) return;
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_store<kLanes, 0>(gates + row * 4ll * H + j + g * H, x[g]);
}
)cuda";

const char* const kBackward = R"cuda(
template <class D, int kLanes> IG_FN void lstm_backward(const Argument<LstmBackwardParams> p) {
  typedef typename D::Memory T;
  const unsigned i = blockIdx.x * 128u + threadIdx.x, H = (unsigned)p.width;
  if (i >= (unsigned)p.threads) return;
  const unsigned e = i * kLanes, row = e / H, j = e - row * H;
  const T* gates = (const T*)p.gates + row * 4ll * H + j;
  IgVec<T, kLanes> x[4], top;
  IgVec<float, kLanes> c, previous, dc, dh;
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_load<kLanes, 0>(x[g], gates + g * H);
  ig_load<kLanes, 0>(top, (const T*)p.grad_h + row * p.row_stride + j);
  ig_load<kLanes, 0>(c, (const float*)p.c + e);
  ig_load<kLanes, 0>(previous, (const float*)p.previous + e);
  ig_load<kLanes, 0>(dc, (const float*)p.grad_c + e);
  ig_wait();
  if (p.product) ig_load<kLanes, 0>(dh, (const float*)p.product + e);
  IG_UNROLL for (int k = 0; k < kLanes; ++k) {
    const float in = D::up(x[0].e[k]), forget = D::up(x[1].e[k]), fresh = D::up(x[2].e[k]), out = D::up(x[3].e[k]);
    const float t = ig_tanh(c.e[k]), d = D::up(top.e[k]) + (p.product ? dh.e[k] : 0.0f);
    const float s = dc.e[k] + d * out * (1.0f - t * t);
    x[0].e[k] = D::down(s * fresh * in * (1.0f - in));
    x[1].e[k] = D::down(s * previous.e[k] * forget * (1.0f - forget));
    x[2].e[k] = D::down(s * in * (1.0f - fresh * fresh));
    x[3].e[k] = D::down(d * t * out * (1.0f - out));
    dc.e[k] = s * forget;
  }
  ig_store<kLanes, 0>((float*)p.grad_previous + e, dc);
  T* dz = (T*)p.grad_z + row * 4ll * H + j;
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_store<kLanes, 0>(dz + g * H, x[g]);
}
)cuda";

}  // namespace

CudaKernel lstm_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                     int lanes) {
  const int64_t threads = rows * width / lanes;
  if (backward)
    return cell_kernel<LstmBackwardParams>(
        "lstm_back", kBackward, instance("lstm_backward", type, lanes), threads, width, row_stride);
  return cell_kernel<LstmForwardParams>(
      "lstm_cell", kForward, instance("lstm_forward", type, lanes), threads, width, row_stride);
}

}  // namespace ingot::cuda
