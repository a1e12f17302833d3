// Matrix products through cuBLASLt: descriptors made once, the algorithm measured at the first run
// and kept in the tuning file.
#pragma once
#include <memory>
#include <vector>

#include "backend/cuda/cublaslt/blaslt.h"
#include "backend/cuda/runtime/executable.h"

namespace ingot::cuda {

/// Most workspace an algorithm may use: the plan gives that much arena memory to the call.
inline constexpr size_t kMatmulWorkspace = 32 << 20;

/// A product as the library sees it: column-major D (m x n) = op(A) op(B). Row-major operands come
/// swapped.
struct LtProblem {
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldd = 0;
  bool trans_a = false, trans_b = false;
  int operand_a = 2, operand_b = 1;  // which of the spec's operands they are
  int64_t batch = 1, stride_a = 0, stride_b = 0, stride_d = 0;
  struct Loop {
    int64_t count, a, b, d;  // strides in elements
  };
  std::vector<Loop> loops;  // batch dims beyond the one the library knows
  int64_t calls() const;
};

/// Does the call read or write, beside its operands, what GELU is applied to?
inline bool has_aux(const LibrarySpec& spec) {
  return spec.has(Epilogue::GeluTanhGrad) || (spec.has(Epilogue::GeluTanh) && spec.written == 2);
}

/// May what comes after the product need a pass of its own, where the library cannot do it for
/// these shapes?
inline bool has_pass(const LibrarySpec& spec) {
  return has_aux(spec) || spec.has(Epilogue::BiasGrad);
}

/// False when the library cannot take these strides or types.
bool describe_matmul(const LibrarySpec& spec, LtProblem& p);

/// A call of the library.
const char* lt_matmul_refuses(const LibrarySpec& spec);
std::unique_ptr<Executable> prepare_lt_matmul(Gpu& gpu, const LibrarySpec& spec, const char*& why);
/// The product without its epilogue, and a kernel that computes that.
std::unique_ptr<Executable> prepare_matmul_and_pass(Gpu& gpu, const LibrarySpec& spec,
                                                    const char*& why);

}  // namespace ingot::cuda
