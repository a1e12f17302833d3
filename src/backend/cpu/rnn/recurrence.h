// What the steps of all recurrent layers share, in float32. The weight is packed once for all
// steps. A step is cut into tasks of some rows by one panel of hidden units: a task does the
// products of its units and then their cells. Threads own rows, or share the tasks of a step where
// rows are few. Which thread runs a task does not change its bits.
#pragma once
#include <algorithm>
#include <array>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/library.h"
#include "backend/cpu/rnn/cells.h"
#include "backend/cpu/support/memory.h"
#include "backend/cpu/support/threads.h"

namespace ingot::cpu {

constexpr int64_t kRows = 32, kMostColumns = 32;  // of a task
constexpr int64_t kApart = 16;                    // so that rows do not conflict in the cache
constexpr double kSerial = 4e5;  // operations of a step that are not worth a second thread

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Operands: results, then z or what was kept, the weight, and the rest.
class Recurrence : public CpuExecutable {
 protected:
  explicit Recurrence(const LibrarySpec& s) : spec_(s), first_(s.written) {
    const Dims& w = s.operands[static_cast<size_t>(first_) + 1].shape;
    T_ = s.operands[0].shape[0], N_ = s.operands[0].shape[1], H_ = w[1];
    gates_ = w[0] / H_;
    parts_ = is_recurrent_grad(s.op) ? 1 : gates_;
    K_ = gates_ * H_ / parts_;
    panels_ = ceil_div(H_, g_.nr);
    pitch_ = K_ + kApart;
    int next = 1;
    if (s.gives(1)) side1_ = next++;
    if (s.gives(2)) side2_ = next++;
    // The weight, the left side of two steps, the cell state.
    floats_ = {parts_ * K_ * panels_ * g_.nr, 2 * N_ * pitch_, N_ * H_};
    scratch_bytes = static_cast<size_t>(floats_[0] + floats_[1] + floats_[2]) * sizeof(float) + 64;
  }

  float* at(void* const* buffers, int operand) const {
    return static_cast<float*>(buffers[operand]) +
           spec_.operands[static_cast<size_t>(operand)].offset;
  }
  /// Between steps, and between rows, of an operand [T, N, ..].
  int64_t stride(int operand, int dim) const {
    const OperandSpec& o = spec_.operands[static_cast<size_t>(operand)];
    return o.shape[dim] == 1 ? 0 : o.stride[dim];
  }
  /// The i-th step in order.
  int64_t step(int64_t i) const {
    return spec_.attrs.as<RecurrentAttrs>().reverse ? T_ - 1 - i : i;
  }

  struct Space {
    float *weight, *left, *state;
  };
  Space space(void* scratch) const {
    float* s = reinterpret_cast<float*>(line_aligned(static_cast<char*>(scratch)));
    return {s, s + floats_[0], s + floats_[0] + floats_[1]};
  }
  float* left(const Space& s, int64_t i) const { return s.left + (i & 1) * N_ * pitch_; }

  /// Part p of the weight is [K, H] with these strides.
  void pack(const float* weight, int64_t part_stride, int64_t k_stride, int64_t col_stride,
            float* to) const {
    const int64_t each = ceil_div(K_, g_.kc) * panels_;
    parallel_for(parts_ * each, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t p = t / each, k = t % each / panels_ * g_.kc, j = t % panels_;
        g_.pack(to + packed(p, k, j), g_.nr,
                weight + p * part_stride + k * k_stride + j * g_.nr * col_stride, DType::Float32,
                k_stride, col_stride, depth(k), std::min<int64_t>(g_.nr, H_ - j * g_.nr));
      }
    });
  }

  /// [rows, nr] := rows of the left side by panel j of a part.
  void product(const float* weight, int64_t part, int64_t j, const float* left, int64_t rows,
               float* to) const {
    for (int64_t k = 0; k < K_; k += g_.kc) {
      const GemmBlock b{depth(k), pitch_, 0, g_.nr, depth(k) * g_.nr, g_.nr};
      for (int64_t i = 0; i < rows; i += g_.mr)
        g_.block(b, std::min<int64_t>(g_.mr, rows - i), g_.nr, left + i * pitch_ + k,
                 weight + packed(part, k, j), to + i * g_.nr, k > 0);
    }
  }

  /// fn(i, first row, rows, panel) for all of the steps [0, T), or from the last to the
  /// first. Where there are enough rows each thread runs all steps of its own rows,
  /// without waiting for others.
  template <class Fn>
  void steps(bool forward, Fn&& fn) const {
    auto nth = [&](int64_t k) { return forward ? k : T_ - 1 - k; };
    const int64_t threads = get_num_threads(),
                  each = ceil_div(ceil_div(N_, threads), g_.mr) * g_.mr;
    if (N_ >= threads * g_.mr) {
      parallel_for(ceil_div(N_, each), 1, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin * each, e = std::min(end * each, N_), k = 0; k < T_; ++k)
          for (int64_t j = 0; j < panels_; ++j)
            for (int64_t r = b; r < e; r += kRows) fn(nth(k), r, std::min(kRows, e - r), j);
      });
      return;
    }
    for (int64_t k = 0; k < T_; ++k)
      tasks([&](int64_t row, int64_t rows, int64_t panel) { fn(nth(k), row, rows, panel); });
  }
  /// fn(first row, rows, panel) for all of a step.
  template <class Fn>
  void tasks(Fn&& fn) const {
    const int64_t blocks = ceil_div(N_, kRows), count = blocks * panels_;
    const double work =
        8.0 * static_cast<double>(N_) * static_cast<double>(H_) * static_cast<double>(H_);
    parallel_for(count, work < kSerial ? count : 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t row = t % blocks * kRows;
        fn(row, std::min(kRows, N_ - row), t / blocks);
      }
    });
  }
  /// Prefetches what the cells will read while the products are computed: rows of `count` pieces, H
  /// apart. (As a separate call GCC treats it as one without effect.)
  [[gnu::always_inline]] void ask_for(const float* at, int64_t rows, int64_t row_stride,
                                      int64_t count, int64_t columns) const {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t g = 0; g < count; ++g)
        for (int64_t c = 0; c < columns; c += 16)
          __builtin_prefetch(at + r * row_stride + g * H_ + c, 0, 2);
  }
  int64_t columns(int64_t j) const { return std::min<int64_t>(g_.nr, H_ - j * g_.nr); }

  LibrarySpec spec_;
  int first_, side1_ = -1, side2_ = -1;  // the first operand that is read; further results
  int64_t gates_, parts_, T_, N_, H_, K_, panels_, pitch_;
  std::array<int64_t, 3> floats_{};
  const GemmOps& g_ = gemm_f32();

 private:
  int64_t depth(int64_t k) const { return std::min(g_.kc, K_ - k); }
  int64_t packed(int64_t part, int64_t k, int64_t j) const {
    return (part * K_ * panels_ + k * panels_ + j * depth(k)) * g_.nr;
  }
};

}  // namespace ingot::cpu
