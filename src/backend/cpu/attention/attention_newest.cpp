// Attention of one query per head over a cache and one more key (ops/cached_attention.h), in
// float32: positions of the cache that the mask hides are neither read nor computed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "backend/cpu/gemm/matvec.h"
#include "backend/cpu/kernel/tile_types.h"
#include "backend/cpu/library.h"
#include "backend/cpu/support/memory.h"
#include "backend/cpu/support/threads.h"

namespace ingot::cpu {
namespace {

constexpr int kOut = 0, kQ = 1, kKeys = 2, kValues = 3, kBias = 4, kKey = 5, kValue = 6,
              kOperands = 7;

class Newest final : public CpuExecutable {
 public:
  explicit Newest(const LibrarySpec& s)
      : spec_(s),
        heads_(shape(kQ)[1]),
        pairs_(shape(kQ)[0] * heads_),
        width_(shape(kQ)[3]),
        places_(shape(kKeys)[2]),
        value_width_(shape(kValues)[3]) {
    require_thread_memory(thread_bytes());
  }

  void run(void* const* buffers, void*, const RunArgs&) override {
    const int64_t work = pairs_ * places_ * (width_ + value_width_);
    parallel_for(pairs_, work < (64 << 10) ? pairs_ : 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) head(buffers, p / heads_, p % heads_);
    });
  }

 private:
  size_t thread_bytes() const {
    return static_cast<size_t>(width_ + places_ + 1 + 2 * value_width_) * sizeof(float);
  }
  const Dims& shape(int operand) const {
    return spec_.operands[static_cast<size_t>(operand)].shape;
  }
  int64_t stride(int operand, int dim) const {
    const OperandSpec& o = spec_.operands[static_cast<size_t>(operand)];
    return o.shape[dim] == 1 ? 0 : o.stride.empty() ? row_major(o.shape)[dim] : o.stride[dim];
  }
  float* at(void* const* buffers, int operand, int64_t b, int64_t h) const {
    return static_cast<float*>(buffers[operand]) +
           spec_.operands[static_cast<size_t>(operand)].offset + b * stride(operand, 0) +
           h * stride(operand, 1);
  }

  void head(void* const* buffers, int64_t b, int64_t h) const {
    auto* q = reinterpret_cast<float*>(thread_memory(thread_bytes()));
    float *p = q + width_, *sum = p + places_ + 1, *part = sum + value_width_;
    const float *from = at(buffers, kQ, b, h), *keys = at(buffers, kKeys, b, h),
                *values = at(buffers, kValues, b, h), *bias = at(buffers, kBias, b, h);
    for (int64_t d = 0; d < width_; ++d) q[d] = from[d * stride(kQ, 3)];

    // Scores of the visible keys, one after the other, and of the new key.
    const auto scale = static_cast<float>(spec_.attrs.as<AttentionAttrs>().scale);
    int64_t n = 0;
    each_run(bias, [&](int64_t s, int64_t count) {
      dots(p + n, q, keys + s * stride(kKeys, 2), stride(kKeys, 2), stride(kKeys, 3), count);
      for (int64_t i = 0; i < count; ++i)
        p[n + i] = p[n + i] * scale + bias[(s + i) * stride(kBias, 3)];
      n += count;
    });
    dots(p + n, q, at(buffers, kKey, b, h), 0, stride(kKey, 3), 1);
    p[n++] *= scale;

    float top = p[0], total = 0;
    for (int64_t i = 1; i < n; ++i) top = p[i] > top || p[i] != p[i] ? p[i] : top;
    for (int64_t i = 0; i < n; ++i) p[i] -= top;
    find_op(Op::Exp, TileType::F32, 0)(p, p, nullptr, nullptr, n);
    for (int64_t i = 0; i < n; ++i) total += p[i];

    std::fill_n(sum, value_width_, 0.0f);
    int64_t first = 0;
    each_run(bias, [&](int64_t s, int64_t count) {
      sums(part, p + first, values + s * stride(kValues, 2), stride(kValues, 2), stride(kValues, 3),
           count);
      for (int64_t d = 0; d < value_width_; ++d) sum[d] += part[d];
      first += count;
    });
    const float* value = at(buffers, kValue, b, h);
    float* out = at(buffers, kOut, b, h);
    for (int64_t d = 0; d < value_width_; ++d)
      out[d * stride(kOut, 3)] = (sum[d] + p[first] * value[d * stride(kValue, 3)]) / total;
  }

  /// fn(first, count) for every run of positions that the mask shows.
  template <class Fn>
  void each_run(const float* bias, Fn&& fn) const {
    const int64_t step = stride(kBias, 3);
    auto hidden = [&](int64_t s) {
      return bias[s * step] == -std::numeric_limits<float>::infinity();
    };
    for (int64_t s = 0, end = 0; s < places_; s = end) {
      while (s < places_ && hidden(s)) ++s;
      for (end = s; end < places_ && !hidden(end);) ++end;
      if (end > s) fn(s, end - s);
    }
  }

  /// to[i] := q . row i
  void dots(float* to, const float* q, const float* rows, int64_t row, int64_t step,
            int64_t count) const {
    if (step == 1 || width_ == 1)
      return few_rows(to, 1, 0, count, width_, q, 0, 1, rows, 1, row, true);
    for (int64_t i = 0; i < count; ++i) {
      to[i] = 0;
      for (int64_t d = 0; d < width_; ++d) to[i] += q[d] * rows[i * row + d * step];
    }
  }
  /// to := sum over i of p[i] * row i
  void sums(float* to, const float* p, const float* rows, int64_t row, int64_t step,
            int64_t count) const {
    if (step == 1 || value_width_ == 1)
      return few_rows(to, 1, 0, value_width_, count, p, 0, 1, rows, row, 1, true);
    for (int64_t d = 0; d < value_width_; ++d) {
      to[d] = 0;
      for (int64_t i = 0; i < count; ++i) to[d] += p[i] * rows[i * row + d * step];
    }
  }

  LibrarySpec spec_;
  int64_t heads_, pairs_, width_, places_, value_width_;
};

}  // namespace

const char* newest_refuses(const LibrarySpec& s) {
  if (!s.attrs.as<AttentionAttrs>().newest()) return "it is for the newest position of a cache";
  if (s.written != 1) return "it writes no log-sum-exp";
  for (const OperandSpec& o : s.operands)
    if (o.dtype != DType::Float32) return "it computes in float32 only";
  return nullptr;
}

std::unique_ptr<CpuExecutable> prepare_newest(const LibrarySpec& spec, const char*&) {
  return std::make_unique<Newest>(spec);
}

}  // namespace ingot::cpu
