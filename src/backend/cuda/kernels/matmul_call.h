// What the hand-written matrix products share: their parameters, the traits of a call, and the
// epilogues before the store.
#pragma once
#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {

INGOT_KERNEL_PARAMS(MatmulParams, {
  Address operands[4];  // out, a, b, what an epilogue reads; with BiasGrad: out, sums, a, b
  long long M;
  long long N;
  long long K;
  long long tiles_m;
  long long tiles_n;
  long long batch_dims;
  long long out_offset;
  long long a_offset;
  long long b_offset;
  // Strides: `inner` is the dim that is summed over.
  long long out_row;
  long long out_col;
  long long a_row;
  long long a_inner;
  long long b_inner;
  long long b_col;
  // Of the bias, of the sums of a's rows (BiasGrad) or of what ReLU gave (ReluGrad).
  long long extra_offset;
  long long extra_stride;
  struct {
    long long size;
    long long out;
    long long a;
    long long b;
  } batch[8];
  long long unused;  // keeps the offsets in the machine code as they were measured
  long long relu_row;
  long long relu_col;
});

/// The product's two operands.
const OperandSpec* factors(const LibrarySpec& spec);
/// Everything but tiles_m and tiles_n.
MatmulParams matmul_params(const LibrarySpec& spec);
/// Out, A, B, Bias (dtypes), Acc (the type of the sums) and the epilogues: kAccumulate, kBias,
/// kReluGrad, kRelu, kGelu. A kernel adds its own.
CallTraits matmul_traits(const LibrarySpec& spec);
/// Device text: finish<Call>(), the epilogues of a sum.
extern const char* const kMatmulEpilogues;

}  // namespace ingot::cuda
