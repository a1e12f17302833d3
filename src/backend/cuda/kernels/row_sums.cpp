// The sums of the rows of a product's first operand: a bias's gradient, where the product is that
// of the weight's gradient (its first operand is dY^T). float32 sums of any float dtype.
//
// Launch: 32 rows a block of 256 threads. Neighbouring threads have neighbouring rows, which are
// adjacent in dY^T; eight threads share a row, and their sums are added in shared memory. Bound by
// memory bandwidth.
#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {
namespace {

INGOT_KERNEL_PARAMS(RowSumsParams, {
  Address out;
  Address in;
  long long out_offset;
  long long in_offset;
  long long rows;
  long long columns;
  long long row_stride;  // of in
  long long column_stride;
});

const char* const kText = R"cuda(
template <class D> IG_FN void row_sums(const Argument<RowSumsParams> p) {
  typedef typename D::Memory T;
  __shared__ float part[8][32];
  T* out = (T*)ig_pointer(p.out) + p.out_offset;
  const T* in = (const T*)ig_pointer(p.in) + p.in_offset;
  const int x = threadIdx.x & 31, y = threadIdx.x >> 5;
  const long long row = blockIdx.x * 32ll + x;
  float sum = 0.0f;
  if (row < p.rows)
    for (long long k = y; k < p.columns; k += 8) sum += D::up(in[row * p.row_stride + k * p.column_stride]);
  part[y][x] = sum;
  __syncthreads();
  if (y != 0 || row >= p.rows) return;
  for (int i = 1; i < 8; ++i) sum += part[i][x];
  out[row] = D::down(sum);
}
)cuda";

}  // namespace

CudaKernel row_sums(const LibrarySpec& spec) {
  const OperandSpec &out = spec.operands[1], &in = spec.operands[2];
  const RowSumsParams p{0,           0,           out.offset,   in.offset,
                        in.shape[0], in.shape[1], in.stride[0], in.stride[1]};
  return make_kernel("row_sums", kText,
                     {{instance("row_sums", out.dtype), (p.rows + 31) / 32, 256, true}}, p);
}

}  // namespace ingot::cuda
