// Matmul with few rows, or few columns (then as its transpose): decoding one token, heads with one
// output.
#include <algorithm>
#include <cmath>
#include <memory>

#include "backend/cpu/gemm/matmul_shape.h"
#include "backend/cpu/gemm/matvec.h"
#include "backend/cpu/library.h"
#include "backend/cpu/support/threads.h"

namespace ingot::cpu {

namespace {

class FewRows final : public CpuExecutable {
 public:
  FewRows(const LibrarySpec& spec, const Shape& shape, bool transposed)
      : spec_(spec), sh_(shape), transposed_(transposed) {
    chunks_ = (sh_.N + kChunk - 1) / kChunk;
    // Short rows are read several at a time wherever they are stored.
    cached_ = sh_.batches * sh_.N * sh_.K * 4 < (1 << 20) || sh_.K < 256;
  }

  void run(void* const* buffers, void*, const RunArgs&) override {
    const bool serial = sh_.batches * sh_.M * sh_.N * sh_.K < (64 << 10);
    auto work = [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) chunk(buffers, t / chunks_, t % chunks_);
    };
    if (serial) return work(0, sh_.batches * chunks_);
    const int64_t per_chunk = std::min(kChunk, sh_.N) * sh_.K;
    parallel_for(sh_.batches * chunks_,
                 std::max<int64_t>(1, (32 << 10) / std::max<int64_t>(1, per_chunk)), work);
  }

 private:
  static constexpr int64_t kChunk = 128;

  const float* operand(void* const* buffers, size_t k) const {
    return static_cast<const float*>(buffers[k]) + spec_.operands[k].offset;
  }
  void chunk(void* const* buffers, int64_t batch, int64_t c) const {
    int64_t a = 0, b = 0, o = 0;
    sh_.offsets(batch, a, b, o);
    const int64_t n0 = c * kChunk, n1 = std::min(n0 + kChunk, sh_.N), count = n1 - n0;
    float sums[kFewRows * kChunk];
    // A and B are swapped in the transpose.
    const float* left = operand(buffers, transposed_ ? 2 : 1) + a;
    const float* right = operand(buffers, transposed_ ? 1 : 2) + b;
    few_rows(sums, sh_.M, n0, n1, sh_.K, left, sh_.a_m, sh_.a_k, right, sh_.b_k, sh_.b_n, cached_);
    float* out = static_cast<float*>(buffers[0]) + spec_.operands[0].offset + o;
    const float* bias = spec_.has(Epilogue::Bias) ? operand(buffers, 3) : nullptr;
    for (int64_t m = 0; m < sh_.M; ++m)
      for (int64_t n = 0; n < count; ++n) {
        float v = sums[m * count + n];
        if (bias) v += bias[(transposed_ ? m : n0 + n) * spec_.operands[3].stride.back()];
        float& to = out[m * sh_.c_m + (n0 + n) * sh_.c_n];
        v = activate(v);
        to = spec_.accumulate ? to + v : v;
      }
  }
  float activate(float v) const { return spec_.has(Epilogue::Relu) && v <= 0 ? 0 : v; }

  LibrarySpec spec_;
  Shape sh_;
  bool transposed_, cached_;
  int64_t chunks_;
};

bool fits(const Shape& s) { return s.M <= kFewRows && (s.b_n == 1 || (s.b_k == 1 && s.a_k == 1)); }

Shape few_shape(const LibrarySpec& spec) {
  Shape s(spec);
  if (s.K == 1) s.a_k = 1;  // strides of single steps are of no consequence
  return s;
}

Shape transposed(const LibrarySpec& spec) {
  const Shape s = few_shape(spec);
  Shape t = s;
  std::swap(t.M, t.N);
  std::swap(t.c_m, t.c_n);
  t.a_m = s.b_n;
  t.a_k = s.b_k;
  t.b_k = s.a_k;
  t.b_n = s.a_m;
  for (Batch& b : t.batch) std::swap(b.a, b.b);
  return t;
}

}  // namespace

const char* few_rows_refuses(const LibrarySpec& spec) {
  for (const OperandSpec& o : spec.operands)
    if (o.dtype != DType::Float32) return "it computes in float32 only";
  if (fits(few_shape(spec)) || fits(transposed(spec))) return nullptr;
  return "there are too many rows and columns, or they are not dense";
}

std::unique_ptr<CpuExecutable> prepare_few_rows(const LibrarySpec& spec, const char*&) {
  if (const Shape s = few_shape(spec); fits(s)) return std::make_unique<FewRows>(spec, s, false);
  return std::make_unique<FewRows>(spec, transposed(spec), true);
}

}  // namespace ingot::cpu
