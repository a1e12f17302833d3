// The two kernels for products of few rows: float32 (row_matmul.cpp) and 16 bits on the tensor
// cores (row_matmul_mma.cpp).
#pragma once
#include "backend/cuda/kernels/matmul_call.h"

namespace ingot::cuda {

/// Are there few enough rows, and is the inner dim short enough to be in flight at once?
bool fits_row_matmul_f32(const LibrarySpec& spec);
bool fits_row_matmul_mma(const LibrarySpec& spec);
CudaKernel row_matmul_f32(const LibrarySpec& spec);
CudaKernel row_matmul_mma(const LibrarySpec& spec);
/// matmul_traits(), kBUnwritten (nobody writes the weights in this run) and kLetsNextStart.
CallTraits row_matmul_traits(const LibrarySpec& spec);

}  // namespace ingot::cuda
