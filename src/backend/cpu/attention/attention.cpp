// Attention of float32 without its matrix of scores: each block of queries visits the blocks of
// keys one after the other, with a running maximum and sum per query, so that memory grows with the
// length and not with its square. Keys, values and other operands that a product reads by columns
// are packed once, into scratch. The order of sums depends on sizes alone: results have the same
// bits whatever the number of threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/cpu/attention/attention_simd.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/library.h"
#include "backend/cpu/support/memory.h"
#include "backend/cpu/support/threads.h"

namespace ingot::cpu {

namespace {

constexpr int64_t kQueries = 96, kKeys = 192;  // of a block, at most
// Scores of one head from which on this is faster than the decomposed form, whose backward pass
// computes them once less; with the causal mask half of them are skipped.
constexpr int64_t kLeastScores = 1024 * 1024, kLeastCausal = 512 * 512;
constexpr int64_t kTasks = 16;  // pieces of a backward pass with few heads

/// [batch, head, row, element] of one operand.
struct Side {
  const OperandSpec* spec;
  void* data = nullptr;

  int64_t stride(int d) const { return spec->shape[d] == 1 ? 0 : spec->stride[d]; }
  float* at(int64_t batch, int64_t head, int64_t row = 0) const {
    return static_cast<float*>(data) + spec->offset + batch * stride(0) + head * stride(1) +
           row * stride(2);
  }
};

/// Space for one thread's blocks.
float* thread_space(int64_t floats) {
  return reinterpret_cast<float*>(thread_memory(static_cast<size_t>(floats) * sizeof(float)));
}

int64_t blocks(int64_t n, int64_t of) { return (n + of - 1) / of; }

/// What forward and backward have in common.
class Attention : public CpuExecutable {
 protected:
  Attention(const LibrarySpec& spec, int q, int k, int v, size_t without_bias)
      : spec_(spec),
        scale_(static_cast<float>(spec.attrs.as<AttentionAttrs>().scale)),
        causal_(spec.attrs.as<AttentionAttrs>().causal()) {
    const Dims &qs = spec_.operands[static_cast<size_t>(q)].shape,
               &ks = spec_.operands[static_cast<size_t>(k)].shape;
    heads_ = qs[1];
    pairs_ = qs[0] * qs[1];
    queries_ = qs[2], keys_ = ks[2], width_ = qs[3];
    value_width_ = spec_.operands[static_cast<size_t>(v)].shape[3];
    biased_ = spec_.operands.size() > without_bias;
  }

  Side side(size_t operand, void* const* buffers) const {
    return {&spec_.operands[operand], buffers[operand]};
  }

  /// Floats of a side packed by columns of the product: rows deep, or (across) elements deep.
  int64_t packed(int64_t depth, int64_t columns) const {
    return depth * blocks(columns, g_.nr) * g_.nr;
  }
  /// One head's rows as the right side of a product that runs over the rows.
  void pack_rows(float* to, const Side& x, int64_t batch, int64_t head) const {
    g_.pack(to, g_.nr, x.at(batch, head), DType::Float32, x.stride(2), x.stride(3),
            x.spec->shape[2], x.spec->shape[3]);
  }
  /// The same of a product that runs over the elements: the rows are its columns.
  void pack_across(float* to, const Side& x, int64_t batch, int64_t head) const {
    g_.pack(to, g_.nr, x.at(batch, head), DType::Float32, x.stride(3), x.stride(2),
            x.spec->shape[3], x.spec->shape[2]);
  }
  /// Rows of a block as the left side of a product: in place, or packed into `space`.
  struct Left {
    const float* at;
    int64_t row, k, panel;  // as GemmBlock's a_row and a_k; between panels
  };
  Left left_side(float* space, const Side& x, int64_t batch, int64_t head, int64_t row,
                 int64_t rows) const {
    const float* at = x.at(batch, head, row);
    if (x.stride(3) == 1 && x.stride(2) != 0) return {at, x.stride(2), 0, g_.mr * x.stride(2)};
    const int64_t depth = x.spec->shape[3];
    g_.pack(space, g_.mr, at, DType::Float32, x.stride(3), x.stride(2), depth, rows);
    return {space, 0, g_.mr, depth * g_.mr};
  }
  int64_t left_size(int64_t rows, int64_t depth) const {
    return blocks(rows, g_.mr) * g_.mr * depth;
  }

  /// c (+)= a b. a_panel: between panels of mr rows of a.
  void product(const GemmBlock& s, int64_t rows, int64_t columns, const float* a, int64_t a_panel,
               const float* b, float* c, bool add) const {
    for (int64_t r = 0; r < rows; r += g_.mr, a += a_panel)
      g_.block(s, std::min<int64_t>(g_.mr, rows - r), columns, a, b, c + r * s.c_row, add);
  }
  /// rows x keys := left . across^T, from key `first`.
  void scores(int64_t rows, int64_t first, int64_t count, const Left& left, const float* across,
              int64_t depth, float* to) const {
    product({depth, left.row, left.k, g_.nr, depth * g_.nr, kKeys}, rows, count, left.at,
            left.panel, across + first / g_.nr * depth * g_.nr, to, false);
  }
  /// The keys from `first` on that query `row` sees.
  int64_t seen(int64_t row, int64_t first, int64_t count) const {
    return causal_ ? std::clamp<int64_t>(row + 1 - first, 0, count) : count;
  }
  ScoreRow row(float* s, int64_t query, int64_t first, int64_t count, const Side& bias,
               int64_t batch, int64_t head) const {
    ScoreRow r{s, seen(query, first, count), count, scale_, nullptr, 0};
    if (biased_)
      r.bias = bias.at(batch, head, query) + first * bias.stride(3), r.bias_stride = bias.stride(3);
    return r;
  }

  LibrarySpec spec_;
  float scale_;
  bool causal_, biased_ = false;
  int64_t heads_, pairs_, queries_, keys_, width_, value_width_;
  const GemmOps& g_ = gemm_f32();
  const AttentionSimd& rows_ = attention_simd();
  const int64_t step_ = kKeys / g_.nr * g_.nr;  // keys of a block: whole panels
};

/// Operands: o, (lse), q, k, v, (bias).
class Forward final : public Attention {
 public:
  explicit Forward(const LibrarySpec& s)
      : Attention(s, s.written, s.written + 1, s.written + 2, static_cast<size_t>(s.written) + 3),
        first_(static_cast<size_t>(s.written)) {
    each_ = packed(width_, keys_) + packed(keys_, value_width_);
    scratch_bytes = static_cast<size_t>(pairs_ * each_) * sizeof(float) + 64;
    require_thread_memory(static_cast<size_t>(local_floats()) * sizeof(float));
  }

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    float* space = reinterpret_cast<float*>(line_aligned(scratch));
    const Side k = side(first_ + 1, buffers), v = side(first_ + 2, buffers);
    parallel_for(pairs_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        float* to = space + p * each_;
        pack_across(to, k, p / heads_, p % heads_);
        pack_rows(to + packed(width_, keys_), v, p / heads_, p % heads_);
      }
    });
    const int64_t per_pair = blocks(queries_, kQueries);
    parallel_for(pairs_ * per_pair, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        block(buffers, space + t / per_pair * each_, t / per_pair, t % per_pair * kQueries);
    });
  }

 private:
  int64_t local_floats() const {
    return left_size(kQueries, width_) + kQueries * (kKeys + value_width_);
  }
  void block(void* const* buffers, const float* keys, int64_t pair, int64_t first) const {
    const int64_t batch = pair / heads_, head = pair % heads_,
                  rows = std::min(kQueries, queries_ - first);
    const float* values = keys + packed(width_, keys_);
    const Side bias = biased_ ? side(first_ + 3, buffers) : Side{};
    float* left = thread_space(local_floats());
    float *s = left + left_size(kQueries, width_), *sum = s + kQueries * kKeys;
    const Left queries = left_side(left, side(first_, buffers), batch, head, first, rows);
    float largest[kQueries], total[kQueries] = {};
    std::fill_n(largest, kQueries, -std::numeric_limits<float>::infinity());
    std::fill_n(sum, rows * value_width_, 0.0f);
    const int64_t last = causal_ ? std::min(keys_, first + rows) : keys_;
    for (int64_t j = 0; j < last; j += step_) {
      const int64_t count = std::min(step_, last - j);
      scores(rows, j, count, queries, keys, width_, s);
      for (int64_t i = 0; i < rows; ++i) {
        const float keep = rows_.weights_so_far(
            row(s + i * kKeys, first + i, j, count, bias, batch, head), largest[i], total[i]);
        if (keep != 1) rows_.multiply(sum + i * value_width_, value_width_, keep);
      }
      product({count, kKeys, 0, g_.nr, keys_ * g_.nr, value_width_}, rows, value_width_, s,
              g_.mr * kKeys, values + j * g_.nr, sum, true);
    }
    const Side o = side(0, buffers);
    for (int64_t i = 0; i < rows; ++i) {
      float* to = o.at(batch, head, first + i);
      for (int64_t e = 0; e < value_width_; ++e)
        to[e * o.stride(3)] = sum[i * value_width_ + e] / total[i];
      if (spec_.written > 1)
        *lse(buffers, batch, head, first + i) = largest[i] + std::log(total[i]);
    }
  }
  float* lse(void* const* buffers, int64_t batch, int64_t head, int64_t query) const {
    return side(1, buffers).at(batch, head, query);
  }

  size_t first_;  // q among the operands
  int64_t each_;  // floats packed for one head
};

/// Operands: dq, dk, dv, q, k, v, o, do, lse, (bias).
class Backward final : public Attention {
 public:
  explicit Backward(const LibrarySpec& s) : Attention(s, 3, 4, 5, 9) {
    groups_ = std::min(blocks(keys_, step_), blocks(kTasks, pairs_));
    across_v_ = packed(width_, keys_);
    rows_k_ = across_v_ + packed(value_width_, keys_);
    rows_q_ = rows_k_ + packed(keys_, width_);
    rows_do_ = rows_q_ + packed(queries_, width_);
    delta_ = rows_do_ + packed(queries_, value_width_);
    sums_ = delta_ + queries_;
    each_ = sums_ + groups_ * queries_ * width_;
    scratch_bytes = static_cast<size_t>(pairs_ * each_) * sizeof(float) + 64;
    require_thread_memory(static_cast<size_t>(local_floats()) * sizeof(float));
  }

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    float* space = reinterpret_cast<float*>(line_aligned(scratch));
    parallel_for(pairs_, 1, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) pack(buffers, space + p * each_, p / heads_, p % heads_);
    });
    parallel_for(pairs_ * groups_, 1, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t)
        group(buffers, space + t / groups_ * each_, t / groups_, t % groups_);
    });
    parallel_for(pairs_, 1, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) add_up(buffers, space + p * each_, p / heads_, p % heads_);
    });
  }

 private:
  int64_t left_floats() const { return left_size(kQueries, std::max(width_, value_width_)); }
  int64_t local_floats() const {
    return left_floats() + 2 * kQueries * kKeys + kKeys * (width_ + value_width_);
  }
  void pack(void* const* buffers, float* to, int64_t batch, int64_t head) const {
    const Side q = side(3, buffers), k = side(4, buffers), v = side(5, buffers),
               o = side(6, buffers), grad = side(7, buffers);
    pack_across(to, k, batch, head);
    pack_across(to + across_v_, v, batch, head);
    pack_rows(to + rows_k_, k, batch, head);
    pack_rows(to + rows_q_, q, batch, head);
    pack_rows(to + rows_do_, grad, batch, head);
    for (int64_t i = 0; i < queries_; ++i) {
      const float *a = o.at(batch, head, i), *b = grad.at(batch, head, i);
      double sum[4] = {};
      for (int64_t e = 0; e < value_width_; ++e)
        sum[e % 4] += static_cast<double>(a[e * o.stride(3)]) * b[e * grad.stride(3)];
      to[delta_ + i] = static_cast<float>(sum[0] + sum[1] + (sum[2] + sum[3]));
    }
    std::fill_n(to + sums_, groups_ * queries_ * width_, 0.0f);
  }

  /// The blocks of keys number, number + groups_, ...: their dk and dv, and their share of dq.
  void group(void* const* buffers, float* x, int64_t pair, int64_t number) const {
    const int64_t batch = pair / heads_, head = pair % heads_;
    const int64_t left = left_floats();
    float* p = thread_space(local_floats());
    float *d = p + kQueries * kKeys, *lefts = d + kQueries * kKeys, *dk = lefts + left,
          *dv = dk + kKeys * width_;
    for (int64_t j = number * step_; j < keys_; j += groups_ * step_) {
      const int64_t count = std::min(step_, keys_ - j);
      std::fill_n(dk, count * width_, 0.0f);
      std::fill_n(dv, count * value_width_, 0.0f);
      for (int64_t i = causal_ ? j / kQueries * kQueries : 0; i < queries_; i += kQueries)
        block(buffers, x, x + sums_ + number * queries_ * width_, batch, head, i, j, count,
              {p, d, lefts, dk, dv});
      put(side(1, buffers), batch, head, j, count, dk, width_);
      put(side(2, buffers), batch, head, j, count, dv, value_width_);
    }
  }

  struct Blocks {
    float *p, *d, *left, *dk, *dv;
  };
  void block(void* const* buffers, const float* x, float* dq, int64_t batch, int64_t head,
             int64_t i, int64_t j, int64_t count, const Blocks& b) const {
    const int64_t rows = std::min(kQueries, queries_ - i);
    const Side bias = biased_ ? side(9, buffers) : Side{}, lse = side(8, buffers);
    scores(rows, j, count, left_side(b.left, side(3, buffers), batch, head, i, rows), x, width_,
           b.p);
    for (int64_t r = 0; r < rows; ++r)
      rows_.weights(row(b.p + r * kKeys, i + r, j, count, bias, batch, head),
                    *lse.at(batch, head, i + r));
    product({rows, 0, kKeys, g_.nr, queries_ * g_.nr, value_width_}, count, value_width_, b.p,
            g_.mr, x + rows_do_ + i * g_.nr, b.dv, true);
    scores(rows, j, count, left_side(b.left, side(7, buffers), batch, head, i, rows), x + across_v_,
           value_width_, b.d);
    for (int64_t r = 0; r < rows; ++r)
      rows_.gradient(b.d + r * kKeys, b.p + r * kKeys, count, x[delta_ + i + r], scale_);
    product({count, kKeys, 0, g_.nr, keys_ * g_.nr, width_}, rows, width_, b.d, g_.mr * kKeys,
            x + rows_k_ + j * g_.nr, dq + i * width_, true);
    product({rows, 0, kKeys, g_.nr, queries_ * g_.nr, width_}, count, width_, b.d, g_.mr,
            x + rows_q_ + i * g_.nr, b.dk, true);
  }

  static void put(const Side& to, int64_t batch, int64_t head, int64_t first, int64_t rows,
                  const float* from, int64_t width) {
    for (int64_t r = 0; r < rows; ++r) {
      float* out = to.at(batch, head, first + r);
      for (int64_t e = 0; e < width; ++e) out[e * to.stride(3)] = from[r * width + e];
    }
  }
  void add_up(void* const* buffers, float* x, int64_t batch, int64_t head) const {
    float* all = x + sums_;
    for (int64_t n = 1; n < groups_; ++n)
      for (int64_t e = 0; e < queries_ * width_; ++e) all[e] += all[n * queries_ * width_ + e];
    put(side(0, buffers), batch, head, 0, queries_, all, width_);
  }

  int64_t groups_, each_;  // floats of one head's scratch; then where in it: keys across come first
  int64_t across_v_, rows_k_, rows_q_, rows_do_, delta_, sums_;
};

}  // namespace

const char* attention_refuses(const LibrarySpec& s) {
  const AttentionAttrs& attrs = s.attrs.as<AttentionAttrs>();
  const size_t first = static_cast<size_t>(s.written);
  if (attrs.newest()) return "it is no attention to the newest position of a cache";
  for (const OperandSpec& o : s.operands)
    if (o.dtype != DType::Float32) return "it computes in float32 only";
  const Dims &q = s.operands[first].shape, &k = s.operands[first + 1].shape;
  if (q[2] * k[2] < (attrs.causal() ? kLeastCausal : kLeastScores))
    return "the sequences are so short that products and a softmax are faster";
  return nullptr;
}

std::unique_ptr<CpuExecutable> prepare_attention(const LibrarySpec& spec, const char*&) {
  if (spec.op == Op::Attention) return std::make_unique<Forward>(spec);
  return std::make_unique<Backward>(spec);
}

}  // namespace ingot::cpu
