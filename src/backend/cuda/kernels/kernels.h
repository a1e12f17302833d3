// The hand-written CUDA kernels: which calls each one takes, and the kernel for a call. A file per
// kernel in this folder holds its parameters, its device text and the host function that fills them
// in; kernel_source.h says how they are written.
//
// They are text like the generated ones: compiled by NVRTC behind the same prelude, launched with
// the same argument (backend/cuda/emit/text.h), run by the same emulator in tests.
#pragma once
#include "backend/cuda/emit/text.h"
#include "codegen/kernel_spec.h"

namespace ingot::cuda {

/// A kernel made for one call: one or more stages, and how they are launched.
struct CudaKernel {
  CudaText text;
  CudaLaunch launch;
};

/// Two stages around a run (see runner.h): the prologue, launched before it, and the epilogue,
/// launched after it, each on its own with RunParams (run_params.h).
CudaText run_kernels();

/// Matrix product of any dtypes and strides, one output element per thread, 16 x 16 tiles; bias,
/// epilogue, accumulation.
CudaKernel simple_matmul(const LibrarySpec& spec);
/// A product of float32 that is too small for the library to be quick at; with BiasGrad and
/// ReluGrad, if they are asked for.
bool is_small_product(int64_t m, int64_t n, int64_t k, int64_t batch);
bool is_small_matmul(const LibrarySpec& spec);
CudaKernel small_matmul(const LibrarySpec& spec);
/// GELU of what was stored before (out = gelu(in)), or out times its derivative at in; whole,
/// row-major.
CudaKernel gelu_pass(const LibrarySpec& spec);
/// The sums of the rows of a product's first operand, the second of the call's two results.
CudaKernel row_sums(const LibrarySpec& spec);
/// A product of few rows (four; eight in 16 bits) by weights that are contiguous along the inner
/// dim (decoding).
bool is_row_matmul(const LibrarySpec& spec);
CudaKernel row_matmul(const LibrarySpec& spec);
/// Attention of one query per head without a gradient of its own: float32 and 16 bits, any mask
/// that is added. With `clusters` (sm_90 on) several blocks share a head's keys.
bool is_row_attention(const LibrarySpec& spec);
CudaKernel row_attention(const LibrarySpec& spec, bool clusters);
/// The gradient of attention for heads of 64 in 16 bits and up to 256 queries and as many keys,
/// causal or not.
bool is_short_attention_grad(const LibrarySpec& spec);
CudaKernel short_attention_grad(const LibrarySpec& spec);
/// ScatterAdd and Scatter, the same bits every time (scatter.h).
CudaKernel scatter(const LibrarySpec& spec, int multiprocessors);
/// Running values along an axis (scan.h).
CudaKernel scan(const LibrarySpec& spec, int multiprocessors);
const char* scan_refuses(const LibrarySpec& spec);  // why not, or null
/// Places in sorted order (sort.h).
CudaKernel sort(const LibrarySpec& spec);
const char* sort_refuses(const LibrarySpec& spec);  // why not, or null

/// Conv and its gradients: any one type, any strides, one output element per thread; bias and ReLU.
CudaKernel simple_conv(const LibrarySpec& spec);
/// Windows added up where they overlap, one output element per thread.
CudaKernel fold(const LibrarySpec& spec);
/// The cell of an LSTM's step (or its gradient) for `rows` rows of `width` elements, `lanes` of
/// them per thread; row_stride: between rows of z (or of the gradient of h). Its buffers: see
/// kernels/lstm_cell.cpp.
CudaKernel lstm_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                     int lanes);
/// The same of a GRU, and the gradient of its first state once all steps are done.
CudaKernel gru_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                    int lanes);
CudaKernel gru_first_state(int64_t count);
/// The same of a plain RNN.
CudaKernel tanh_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                     int lanes);
CudaKernel relu_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                     int lanes);

}  // namespace ingot::cuda
