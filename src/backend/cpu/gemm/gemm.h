// C = A B on blocks, for float32 and float64. Operands of any stride are packed (and converted)
// first, so that the inner kernel sees one form only: A in panels of MR rows, B in panels of NR
// columns, both k by k. Where the memory layout already suits, the kernel reads it in place.
#pragma once
#include <cstdint>

#include "codegen/kernel_spec.h"

namespace ingot::cpu {

/// The layout of a block's operands, in elements. A's values are read one by one, so a panel of
/// complete rows can be read in place; B's are read by vectors along a row of B.
struct GemmBlock {
  int64_t k;      // depth
  int64_t a_row;  // between rows of A, whose values along k are neighbours; 0: neighbours along the
                  // rows
  int64_t a_k;    // then, between steps along k
  int64_t b_row;  // between rows of B (along k)
  int64_t b_panel;  // between panels of B
  int64_t c_row;
  const int64_t* a_at = nullptr;  // or, instead of a_k: where A's steps along k begin
  const void* bias = nullptr;     // a row that is added to the sums of every row, last
};

struct GemmOps {
  int mr, nr;
  int64_t kc;  // depth of a block
  /// dst: panels of nr (or mr) columns, kc deep, from a source with strides in elements. cols may
  /// be any number; the last panel is padded with zeros.
  void (*pack)(void* dst, int width, const void* src, DType type, int64_t k_stride,
               int64_t col_stride, int64_t k, int64_t cols);
  /// rows x cols of C (+)= one panel of A by panels of B, k deep. C has unit column stride.
  void (*block)(const GemmBlock& g, int64_t rows, int64_t cols, const void* a, const void* b,
                void* c, bool add);
};
const GemmOps& gemm_f32();
const GemmOps& gemm_f64();

}  // namespace ingot::cpu
