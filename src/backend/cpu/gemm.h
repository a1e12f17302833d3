// C = A B on packed blocks, for float32 and float64. Operands of any stride are packed (and converted) first, so that
// the inner kernel sees one form only: A in panels of MR rows, B in panels of NR columns, both k by k.
#pragma once
#include <cstdint>

#include "codegen/kernel_spec.h"

namespace ingot::cpu {

struct GemmOps {
  int mr, nr;
  int64_t kc;  // depth of a block
  /// dst: panels of nr (or mr) columns, kc deep, from a source with strides in elements. cols may be any number; the
  /// last panel is padded with zeros.
  void (*pack)(void* dst, int width, const void* src, DType type, int64_t k_stride, int64_t col_stride, int64_t k,
               int64_t cols);
  /// rows x cols of C (+)= one panel of A by panels of B, k deep. C has unit column stride, b_step: elements between
  /// panels of B.
  void (*block)(int64_t k, int64_t rows, int64_t cols, const void* a, const void* b, int64_t b_step, void* c,
                int64_t c_stride, bool add);
};
const GemmOps& gemm_f32();
const GemmOps& gemm_f64();

}  // namespace ingot::cpu
