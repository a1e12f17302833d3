// The cell of a GRU's step, forward and backward: the elementwise part of a step, after its
// product.
//
//   forward:  r, u = sigmoid(z + h W), s = h W + bias, n = tanh(z + r s); h = (1 - u) n + u h
//   backward: the gradients of z and of the product from that of h, and what goes on to the
//   previous
//             h beside the product
//   first_state: the gradient of the first h, both of its parts
//
// Launch: a thread for kLanes neighbouring elements of a row, 128 threads a block, no shared
// memory. Bound by memory bandwidth at large batches and by launch latency at small ones, so
// whatever no kernel of this call writes between the previous cell and this one is loaded before
// ig_wait(). Computed in float32 whatever the dtype.
#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {
namespace {

// All rows of one step. H = width.
INGOT_KERNEL_PARAMS(GruForwardParams, {
  Address z;         // [rows, 3 H], row_stride apart: what the input gives
  Address product;   // float32 [rows, 3 H]: what the previous h gives
  Address previous;  // [rows, H]: the previous h
  Address h;         // [rows, H]
  Address gates;     // [rows, 4 H]: r, u, n, s, kept for the gradient, or null
  long long unused;
  Address bias;  // [H]
  long long unused_too;
  long long threads;  // that have work
  long long width;
  long long row_stride;
});

INGOT_KERNEL_PARAMS(GruBackwardParams, {
  Address grad_h;   // [rows, H], row_stride apart: from above
  Address product;  // float32 [rows, H]: the gradient of h from the next step's product, or null
  Address gates;    // [rows, 4 H]
  Address grad_product;  // [rows, 3 H]: of this step's product
  Address previous;      // [rows, H]: the previous h
  Address passed;        // float32 [rows, H]: what the next step passes on, or null
  Address grad_gates;    // [rows, 4 H]
  Address pass_on;       // float32 [rows, H]
  long long threads;
  long long width;
  long long row_stride;
});

INGOT_KERNEL_PARAMS(GruFirstStateParams, {
  Address product;  // float32 [count]
  Address passed;   // float32 [count]
  Address grad_h;   // float32 [count]
  long long unused[5];
  long long count;
});

const char* const kForward = R"cuda(
IG_FN float sigmoid(float x) { return 1.0f / (1.0f + ig_exp(-x)); }
template <class D, int kLanes> IG_FN void gru_forward(const Argument<GruForwardParams> p) {
  typedef typename D::Memory T;
  const unsigned i = blockIdx.x * 128u + threadIdx.x, H = (unsigned)p.width;
  if (i >= (unsigned)p.threads) return;
  const unsigned e = i * kLanes, row = e / H, j = e - row * H;
  const T* z = (const T*)p.z + row * p.row_stride + j;
  const float* product = (const float*)p.product + row * 3ll * H + j;
  IgVec<T, kLanes> x[4], previous, bias, h;
  IgVec<float, kLanes> y[3];
  IG_UNROLL for (int g = 0; g < 3; ++g) ig_load<kLanes, 0>(x[g], z + g * H);
  ig_load<kLanes, 0>(previous, (const T*)p.previous + e);
  ig_load<kLanes, 0>(bias, (const T*)p.bias + j);
  ig_wait();
  IG_UNROLL for (int g = 0; g < 3; ++g) ig_load<kLanes, 0>(y[g], product + g * H);
  IG_UNROLL for (int k = 0; k < kLanes; ++k) {
    const float reset = sigmoid(D::up(x[0].e[k]) + y[0].e[k]), update = sigmoid(D::up(x[1].e[k]) + y[1].e[k]);
    const float state = y[2].e[k] + D::up(bias.e[k]), fresh = ig_tanh(D::up(x[2].e[k]) + reset * state);
    h.e[k] = D::down((1.0f - update) * fresh + update * D::up(previous.e[k]));
    x[0].e[k] = D::down(reset); x[1].e[k] = D::down(update); x[2].e[k] = D::down(fresh); x[3].e[k] = D::down(state);
  }
  ig_store<kLanes, 0>((T*)p.h + e, h);
  T* gates = (T*)p.gates;
  if (!gates) return;
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_store<kLanes, 0>(gates + row * 4ll * H + j + g * H, x[g]);
}
)cuda";

const char* const kBackward = R"cuda(
template <class D, int kLanes> IG_FN void gru_backward(const Argument<GruBackwardParams> p) {
  typedef typename D::Memory T;
  const unsigned i = blockIdx.x * 128u + threadIdx.x, H = (unsigned)p.width;
  if (i >= (unsigned)p.threads) return;
  const unsigned e = i * kLanes, row = e / H, j = e - row * H;
  const T* gates = (const T*)p.gates + row * 4ll * H + j;
  IgVec<T, kLanes> x[4], top, previous;
  IgVec<float, kLanes> passed, dh;
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_load<kLanes, 0>(x[g], gates + g * H);
  ig_load<kLanes, 0>(top, (const T*)p.grad_h + row * p.row_stride + j);
  ig_load<kLanes, 0>(previous, (const T*)p.previous + e);
  if (p.passed) ig_load<kLanes, 0>(passed, (const float*)p.passed + e);
  ig_wait();
  if (p.product) ig_load<kLanes, 0>(dh, (const float*)p.product + e);
  IG_UNROLL for (int k = 0; k < kLanes; ++k) {
    const float reset = D::up(x[0].e[k]), update = D::up(x[1].e[k]), fresh = D::up(x[2].e[k]), state = D::up(x[3].e[k]);
    const float d = D::up(top.e[k]) + (p.product ? dh.e[k] : 0.0f) + (p.passed ? passed.e[k] : 0.0f);
    const float d_fresh = d * (1.0f - update) * (1.0f - fresh * fresh), d_state = d_fresh * reset;
    x[0].e[k] = D::down(d_fresh * state * reset * (1.0f - reset));
    x[1].e[k] = D::down(d * (D::up(previous.e[k]) - fresh) * update * (1.0f - update));
    x[2].e[k] = D::down(d_fresh);
    x[3].e[k] = D::down(d_state);
    passed.e[k] = d * update;
  }
  ig_store<kLanes, 0>((float*)p.pass_on + e, passed);
  T* grad = (T*)p.grad_gates + row * 4ll * H + j;
  T* product = (T*)p.grad_product + row * 3ll * H + j;
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_store<kLanes, 0>(grad + g * H, x[g]);
  IG_UNROLL for (int g = 0; g < 3; ++g) ig_store<kLanes, 0>(product + g * H, x[g == 2 ? 3 : g]);
}
)cuda";

const char* const kFirstState = R"cuda(
IG_FN void gru_first_state(const Argument<GruFirstStateParams> p) {
  const unsigned i = blockIdx.x * 128u + threadIdx.x;
  if (i >= (unsigned)p.count) return;
  const float passed = ((const float*)p.passed)[i];
  ig_wait();
  ((float*)p.grad_h)[i] = ((const float*)p.product)[i] + passed;
}
)cuda";

}  // namespace

CudaKernel gru_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                    int lanes) {
  const int64_t threads = rows * width / lanes;
  if (backward)
    return cell_kernel<GruBackwardParams>(
        "gru_back", kBackward, instance("gru_backward", type, lanes), threads, width, row_stride);
  return cell_kernel<GruForwardParams>("gru_cell", kForward, instance("gru_forward", type, lanes),
                                       threads, width, row_stride);
}

CudaKernel gru_first_state(int64_t count) {
  GruFirstStateParams p{};
  p.count = count;
  CudaKernel k = make_kernel(
      "gru_first_state", kFirstState,
      {{"gru_first_state", (count + kCellThreads - 1) / kCellThreads, kCellThreads}}, p);
  k.text.waits = true;
  return k;
}

}  // namespace ingot::cuda
