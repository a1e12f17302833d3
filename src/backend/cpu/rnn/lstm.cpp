// The steps of an LSTM layer in float32. The weight is packed once for all steps. A step is cut
// into tasks of some rows by one panel of hidden units: a task does the products of its units and
// then their cells. Threads own rows, or share the tasks of a step where rows are few. Which thread
// runs a task does not change its bits.
#include <algorithm>
#include <array>
#include <memory>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/library.h"
#include "backend/cpu/rnn/lstm_simd.h"
#include "backend/cpu/support/memory.h"
#include "backend/cpu/support/threads.h"

namespace ingot::cpu {
namespace {

constexpr int64_t kRows = 32, kMostColumns = 32;  // of a task
constexpr int64_t kApart = 16;                    // so that rows do not conflict in the cache
constexpr double kSerial = 4e5;  // operations of a step that are not worth a second thread

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Lstm : public CpuExecutable {
 protected:
  Lstm(const LibrarySpec& s, int64_t parts) : spec_(s), first_(s.written), parts_(parts) {
    const Dims& w = s.operands[static_cast<size_t>(first_) + 3].shape;
    T_ = s.operands[0].shape[0], N_ = s.operands[0].shape[1], H_ = w[1];
    K_ = 4 * H_ / parts_;
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
  int64_t parts_, T_, N_, H_, K_, panels_, pitch_;
  std::array<int64_t, 3> floats_{};
  const GemmOps& g_ = gemm_f32();
  const LstmSimd& rows_ = lstm_simd();

 private:
  int64_t depth(int64_t k) const { return std::min(g_.kc, K_ - k); }
  int64_t packed(int64_t part, int64_t k, int64_t j) const {
    return (part * K_ * panels_ + k * panels_ + j * depth(k)) * g_.nr;
  }
};

/// Operands: h, (gates), (c), z, h0, c0, weight.
class Forward final : public Lstm {
 public:
  explicit Forward(const LibrarySpec& s) : Lstm(s, 4) {}

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    const Space s = space(scratch);
    pack(at(buffers, first_ + 3), H_ * H_, 1, H_, s.weight);
    const float* h0 = at(buffers, first_ + 1);
    for (int64_t n = 0; n < N_; ++n) std::copy_n(h0 + n * H_, H_, left(s, 0) + n * pitch_);
    steps(true, [&](int64_t i, int64_t row, int64_t rows, int64_t panel) {
      part(buffers, s, i, row, rows, panel);
    });
  }

 private:
  void part(void* const* buffers, const Space& s, int64_t i, int64_t row, int64_t rows,
            int64_t j) const {
    alignas(64) float sums[4][kRows * kMostColumns];
    const int64_t t = step(i), from = j * g_.nr;
    ask_for(at(buffers, first_) + t * stride(first_, 0) + row * stride(first_, 1) + from, rows,
            stride(first_, 1), 4, columns(j));
    for (int64_t g = 0; g < 4; ++g)
      product(s.weight, g, j, left(s, i) + row * pitch_, rows, sums[g]);
    const float* before = i == 0       ? at(buffers, first_ + 2)
                          : side2_ > 0 ? at(buffers, side2_) + step(i - 1) * N_ * H_
                                       : s.state;
    float* now = side2_ > 0 ? at(buffers, side2_) + t * N_ * H_ : s.state;
    const int64_t place = row * H_ + from, first = t * N_ + row;
    const float* z = at(buffers, first_) + t * stride(first_, 0) + row * stride(first_, 1) + from;
    LstmBlock x{rows, columns(j), {}, {}};
    for (int64_t g = 0; g < 4; ++g) {
      x.in[g] = {z + g * H_, stride(first_, 1)};
      x.in[g + 4] = {sums[g], g_.nr};
      if (side1_ > 0) x.out[g + 3] = {at(buffers, side1_) + (first * 4 + g) * H_ + from, 4 * H_};
    }
    x.in[8] = {before + place, H_};
    x.out[0] = {at(buffers, 0) + first * H_ + from, H_};
    x.out[1] = {left(s, i + 1) + row * pitch_ + from, pitch_};
    x.out[2] = {now + place, H_};
    rows_.cell(x);
  }
};

/// Operands: dz, (dh0), (dc0), gates, c, c0, weight, dh, dc of the last step.
class Backward final : public Lstm {
 public:
  explicit Backward(const LibrarySpec& s) : Lstm(s, 1) {}

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    const Space s = space(scratch);
    pack(at(buffers, first_ + 3), 0, H_, 1, s.weight);
    steps(false, [&](int64_t i, int64_t row, int64_t rows, int64_t panel) {
      part(buffers, s, i, row, rows, panel);
    });
    if (side1_ < 0) return;
    tasks([&](int64_t row, int64_t rows, int64_t j) {
      alignas(64) float sums[kRows * kMostColumns];
      product(s.weight, 0, j, left(s, 0) + row * pitch_, rows, sums);
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(sums + r * g_.nr, columns(j), at(buffers, side1_) + (row + r) * H_ + j * g_.nr);
    });
  }

 private:
  void part(void* const* buffers, const Space& s, int64_t i, int64_t row, int64_t rows,
            int64_t j) const {
    alignas(64) float sums[kRows * kMostColumns];
    const int64_t t = step(i), from = j * g_.nr;
    const int64_t first = t * N_ + row;
    ask_for(at(buffers, first_) + first * 4 * H_ + from, rows, 4 * H_, 4, columns(j));
    const float *c = at(buffers, first_ + 1),
                *before = i > 0 ? c + step(i - 1) * N_ * H_ : at(buffers, first_ + 2),
                *above = at(buffers, first_ + 4) + t * stride(first_ + 4, 0) +
                         row * stride(first_ + 4, 1) + from;
    const int64_t place = row * H_ + from;
    ask_for(before + place, rows, H_, 1, columns(j));
    ask_for(above, rows, stride(first_ + 4, 1), 1, columns(j));
    if (i == T_ - 1)
      std::fill_n(sums, rows * g_.nr, 0.0f);
    else
      product(s.weight, 0, j, left(s, i + 1) + row * pitch_, rows, sums);
    const float* dc = i == T_ - 1 ? at(buffers, first_ + 5) : s.state;
    float* dc_before = i == 0 && side2_ > 0 ? at(buffers, side2_) : s.state;
    LstmBlock x{rows, columns(j), {}, {}};
    x.in[0] = {above, stride(first_ + 4, 1)};
    x.in[1] = {sums, g_.nr};
    for (int64_t g = 0; g < 4; ++g) {
      const int64_t gate = (first * 4 + g) * H_ + from;
      x.in[g + 2] = {at(buffers, first_) + gate, 4 * H_};
      x.out[g] = {at(buffers, 0) + gate, 4 * H_};
      x.out[g + 4] = {left(s, i) + row * pitch_ + g * H_ + from, pitch_};
    }
    x.in[6] = {c + first * H_ + from, H_};
    x.in[7] = {before + place, H_};
    x.in[8] = {dc + place, H_};
    x.out[8] = {dc_before + place, H_};
    rows_.back(x);
  }
};

}  // namespace

const char* lstm_refuses(const LibrarySpec& s) {
  // Operand 0 is h [T, N, H] forward, the gradient of z [T, N, 4 H] backward.
  const Dims& steps = s.operands[0].shape;
  if (s.operands[0].dtype != DType::Float32) return "it computes in float32 only";
  if (gemm_f32().nr > kMostColumns) return "the processor's vectors are too wide for its cells";
  if (steps[0] < 4 || steps[0] * steps[1] < 32) return "too few steps to pack the weight for";
  return nullptr;
}

// A cell reads its element of z and then writes the gates there; in the backward pass it
// reads the gates and writes dz.
bool lstm_in_place(const LibrarySpec& s, size_t operand, size_t result) {
  const bool forward = s.op == Op::Lstm;
  if (operand != static_cast<size_t>(s.written) || result != (forward ? 1 : 0)) return false;
  if (forward && !s.gives(1)) return false;  // the second result is c
  auto whole = [](const OperandSpec& o) {
    return o.offset == 0 && (o.stride.empty() || o.stride == row_major(o.shape));
  };
  return whole(s.operands[operand]) && whole(s.operands[result]);
}

std::unique_ptr<CpuExecutable> prepare_lstm(const LibrarySpec& spec, const char*&) {
  if (spec.op == Op::Lstm) return std::make_unique<Forward>(spec);
  return std::make_unique<Backward>(spec);
}

}  // namespace ingot::cpu
