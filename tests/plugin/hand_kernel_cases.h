// The library calls that the hand-written CUDA kernels are tested on, each with the kernel it gets:
// run on the emulator by the tests, compiled by cubin_list.
#pragma once
#include <vector>

#include "backend/cuda/kernels/kernels.h"
#include "plugin/library_cases.h"

namespace ingot::test {

struct KernelCase {
  LibrarySpec spec;
  cuda::CudaKernel kernel;
  unsigned positions = 0;  // a Fold's window positions count up to this
};

/// Matrix products, scatters, scans and sorts.
std::vector<KernelCase> library_kernels();
std::vector<KernelCase> row_attention_kernels();
std::vector<KernelCase> short_attention_kernels();
/// Convolutions, their gradients and Fold.
std::vector<KernelCase> conv_kernels();
/// GELU and its gradient, and a bias's gradient, as passes after a product.
std::vector<KernelCase> product_pass_kernels();
/// The cells of an LSTM in every form: forward, then backward, three dtypes, three widths.
std::vector<cuda::CudaKernel> lstm_cell_kernels();
std::vector<cuda::CudaKernel> other_cell_kernels();

struct ConvSize {
  int64_t n, c, size, out, window, stride, pad, dilation, groups;
};
LibrarySpec conv_spec(Op op, DType t, const ConvSize& s, bool bias, bool channels_last);

}  // namespace ingot::test
