// From strides to the library's column-major problem. No device needed: tests call this on any
// machine.
#include <algorithm>

#include "backend/cuda/cublaslt/matmul.h"

namespace ingot::cuda {
namespace {

struct Batch {
  int64_t size, o, a, b;
};

std::vector<Batch> merged_batch(const LibrarySpec& spec) {
  const OperandSpec *o = &spec.operands[0], *in = &spec.operands[static_cast<size_t>(spec.written)];
  std::vector<Batch> dims;
  for (int d = 0; d < o->shape.size() - 2; ++d) {
    Batch x{o->shape[d], o->stride[d], in[0].stride[d], in[1].stride[d]};
    if (x.size == 1) continue;
    if (!dims.empty()) {
      Batch& l = dims.back();
      if (l.o == x.o * x.size && l.a == x.a * x.size && l.b == x.b * x.size) {
        l = {l.size * x.size, x.o, x.a, x.b};
        continue;
      }
    }
    dims.push_back(x);
  }
  return dims;
}

/// A row-major matrix [rows, cols] with these strides, as the library stores it: transposed, or not
/// if the rows run along memory.
bool layout(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, bool& rows_run,
            int64_t& ld) {
  if (col_stride == 1 || cols == 1) {
    rows_run = false;
    ld = rows == 1 ? std::max(row_stride, cols) : row_stride;
    if (ld >= cols) return true;
  }
  if (row_stride == 1 || rows == 1) {
    rows_run = true;
    ld = cols == 1 ? std::max(col_stride, rows) : col_stride;
    return ld >= rows;
  }
  return false;
}

bool types_fit(const LibrarySpec& spec) {
  const OperandSpec* in = &spec.operands[static_cast<size_t>(spec.written)];
  DType a = in[0].dtype, b = in[1].dtype, o = spec.operands[0].dtype;
  if (lt::data_type(a) < 0 || a != b) return false;
  return o == a || (is_half(a) && o == DType::Float32);
}

}  // namespace

int64_t LtProblem::calls() const {
  int64_t c = 1;
  for (const Loop& l : loops) c *= l.count;
  return c;
}

bool describe_matmul(const LibrarySpec& spec, LtProblem& p) {
  if (!types_fit(spec)) return false;
  const OperandSpec &o = spec.operands[0], *in = &spec.operands[static_cast<size_t>(spec.written)];
  int r = o.shape.size();
  int64_t M = o.shape[r - 2], N = o.shape[r - 1], K = in[0].shape[r - 1];
  int64_t om = o.stride[r - 2], on = o.stride[r - 1], am = in[0].stride[r - 2],
          ak = in[0].stride[r - 1];
  int64_t bk = in[1].stride[r - 2], bn = in[1].stride[r - 1];
  if (K == 0 || M == 0 || N == 0) return false;
  std::vector<Batch> dims = merged_batch(spec);
  // The same b for a whole batch dim whose rows follow one another: one taller matrix.
  while (!dims.empty() && dims.back().b == 0 && dims.back().a == M * am &&
         dims.back().o == M * om && M > 1) {
    M *= dims.back().size;
    dims.pop_back();
  }
  // Written by columns: the transposed product, with the operands in each other's place. A bias
  // would then lie along the library's columns, which it does not take.
  bool by_columns = on != 1 && N != 1;
  if (by_columns) {
    if ((om != 1 && M != 1) || spec.has(Epilogue::Bias) || has_aux(spec)) return false;
    std::swap(M, N);
    std::swap(om, on);
    std::swap(am, bn);
    std::swap(ak, bk);
    for (Batch& d : dims) std::swap(d.a, d.b);
  }
  bool o_rows = false, a_rows = false, b_rows = false;
  p = LtProblem{};
  if (!layout(M, N, om, on, o_rows, p.ldd) || o_rows) return false;
  if (!layout(K, N, bk, bn, b_rows, p.lda) || !layout(M, K, am, ak, a_rows, p.ldb)) return false;
  p.m = N, p.n = M, p.k = K;
  p.trans_a = b_rows;
  p.trans_b = a_rows;
  p.operand_a = spec.written + (by_columns ? 0 : 1);
  p.operand_b = spec.written + (by_columns ? 1 : 0);
  // The library takes one batch dim: the largest. An output that repeats cannot be.
  auto largest = std::max_element(dims.begin(), dims.end(),
                                  [](const Batch& x, const Batch& y) { return x.size < y.size; });
  for (auto d = dims.begin(); d != dims.end(); ++d) {
    if (d->o == 0 || d->a < 0 || d->b < 0 || d->o < 0) return false;
    if (d == largest)
      p.batch = d->size, p.stride_a = d->b, p.stride_b = d->a, p.stride_d = d->o;
    else
      p.loops.push_back({d->size, d->b, d->a, d->o});
  }
  if (has_aux(spec) && (!dims.empty() || p.ldd != N)) return false;
  if (spec.has(Epilogue::BiasGrad) && (p.batch != 1 || !p.loops.empty())) return false;
  return p.calls() <= 4096;
}

}  // namespace ingot::cuda
