// The cell of a plain RNN's step, forward and backward: h = tanh(z + h W) or relu(z + h W), and the
// gradient of z from that of h.
//
// Launch: a thread for kLanes neighbouring elements of a row, 128 threads a block, no shared
// memory. Bound by memory bandwidth at large batches and by launch latency at small ones, so what
// comes from outside is loaded before ig_wait(). Computed in float32 whatever the dtype.
#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {
namespace {

// All rows of one step. H = width.
INGOT_KERNEL_PARAMS(RnnForwardParams, {
  Address z;        // [rows, H], row_stride apart: what the input gives
  Address product;  // float32 [rows, H]: what the previous h gives
  long long unused;
  Address h;  // [rows, H]
  long long unused_too[4];
  long long threads;  // that have work
  long long width;
  long long row_stride;
});

INGOT_KERNEL_PARAMS(RnnBackwardParams, {
  Address grad_h;   // [rows, H], row_stride apart: from above
  Address product;  // float32 [rows, H]: the gradient of h from the next step, or null
  Address h;        // [rows, H]
  long long unused[3];
  Address grad_z;  // [rows, H]
  long long unused_too;
  long long threads;
  long long width;
  long long row_stride;
});

const char* const kForward = R"cuda(
template <class D, int kLanes, bool kRelu> IG_FN void rnn_forward(const Argument<RnnForwardParams> p) {
  typedef typename D::Memory T;
  const unsigned i = blockIdx.x * 128u + threadIdx.x, H = (unsigned)p.width;
  if (i >= (unsigned)p.threads) return;
  const unsigned e = i * kLanes, row = e / H, j = e - row * H;
  IgVec<T, kLanes> x;
  IgVec<float, kLanes> y;
  ig_load<kLanes, 0>(x, (const T*)p.z + row * p.row_stride + j);
  ig_wait();
  ig_load<kLanes, 0>(y, (const float*)p.product + e);
  IG_UNROLL for (int k = 0; k < kLanes; ++k) {
    const float sum = D::up(x.e[k]) + y.e[k];
    x.e[k] = D::down(kRelu ? (sum < 0.0f ? 0.0f : sum) : ig_tanh(sum));
  }
  ig_store<kLanes, 0>((T*)p.h + e, x);
}
)cuda";

const char* const kBackward = R"cuda(
template <class D, int kLanes, bool kRelu> IG_FN void rnn_backward(const Argument<RnnBackwardParams> p) {
  typedef typename D::Memory T;
  const unsigned i = blockIdx.x * 128u + threadIdx.x, H = (unsigned)p.width;
  if (i >= (unsigned)p.threads) return;
  const unsigned e = i * kLanes, row = e / H, j = e - row * H;
  IgVec<T, kLanes> h, top;
  IgVec<float, kLanes> dh;
  ig_load<kLanes, 0>(h, (const T*)p.h + e);
  ig_load<kLanes, 0>(top, (const T*)p.grad_h + row * p.row_stride + j);
  ig_wait();
  if (p.product) ig_load<kLanes, 0>(dh, (const float*)p.product + e);
  IG_UNROLL for (int k = 0; k < kLanes; ++k) {
    const float y = D::up(h.e[k]), d = D::up(top.e[k]) + (p.product ? dh.e[k] : 0.0f);
    h.e[k] = D::down(kRelu ? (y > 0.0f ? d : 0.0f) : d * (1.0f - y * y));
  }
  ig_store<kLanes, 0>((T*)p.grad_z + e, h);
}
)cuda";

CudaKernel rnn_cell(bool relu, bool backward, DType type, int64_t rows, int64_t width,
                    int64_t row_stride, int lanes) {
  const int64_t threads = rows * width / lanes;
  if (backward)
    return cell_kernel<RnnBackwardParams>(relu ? "relu_rnn_back" : "tanh_rnn_back", kBackward,
                                          instance("rnn_backward", type, lanes, relu), threads,
                                          width, row_stride);
  return cell_kernel<RnnForwardParams>(relu ? "relu_rnn_cell" : "tanh_rnn_cell", kForward,
                                       instance("rnn_forward", type, lanes, relu), threads, width,
                                       row_stride);
}

}  // namespace

CudaKernel tanh_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                     int lanes) {
  return rnn_cell(false, backward, type, rows, width, row_stride, lanes);
}

CudaKernel relu_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                     int lanes) {
  return rnn_cell(true, backward, type, rows, width, row_stride, lanes);
}

}  // namespace ingot::cuda
