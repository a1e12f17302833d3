// The steps of an LSTM layer (recurrence.h).
#include <memory>

#include "backend/cpu/rnn/recurrence.h"

namespace ingot::cpu {
namespace {

/// Operands: h, (gates), (c), z, weight, h0, c0.
class Forward final : public Recurrence {
 public:
  explicit Forward(const LibrarySpec& s) : Recurrence(s) {}

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    const Space s = space(scratch);
    pack(at(buffers, first_ + 1), H_ * H_, 1, H_, s.weight);
    const float* h0 = at(buffers, first_ + 2);
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
    const float* before = i == 0       ? at(buffers, first_ + 3)
                          : side2_ > 0 ? at(buffers, side2_) + step(i - 1) * N_ * H_
                                       : s.state;
    float* now = side2_ > 0 ? at(buffers, side2_) + t * N_ * H_ : s.state;
    const int64_t place = row * H_ + from, first = t * N_ + row;
    const float* z = at(buffers, first_) + t * stride(first_, 0) + row * stride(first_, 1) + from;
    CellBlock x{rows, columns(j), {}, {}};
    for (int64_t g = 0; g < 4; ++g) {
      x.in[g] = {z + g * H_, stride(first_, 1)};
      x.in[g + 4] = {sums[g], g_.nr};
      if (side1_ > 0) x.out[g + 3] = {at(buffers, side1_) + (first * 4 + g) * H_ + from, 4 * H_};
    }
    x.in[8] = {before + place, H_};
    x.out[0] = {at(buffers, 0) + first * H_ + from, H_};
    x.out[1] = {left(s, i + 1) + row * pitch_ + from, pitch_};
    x.out[2] = {now + place, H_};
    lstm_cells().cell(x);
  }
};

/// Operands: dz, (dh0), (dc0), gates, weight, dh, dc of the last step, c, c0.
class Backward final : public Recurrence {
 public:
  explicit Backward(const LibrarySpec& s) : Recurrence(s) {}

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    const Space s = space(scratch);
    pack(at(buffers, first_ + 1), 0, H_, 1, s.weight);
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
    const float *c = at(buffers, first_ + 4),
                *before = i > 0 ? c + step(i - 1) * N_ * H_ : at(buffers, first_ + 5),
                *above = at(buffers, first_ + 2) + t * stride(first_ + 2, 0) +
                         row * stride(first_ + 2, 1) + from;
    const int64_t place = row * H_ + from;
    ask_for(before + place, rows, H_, 1, columns(j));
    ask_for(above, rows, stride(first_ + 2, 1), 1, columns(j));
    if (i == T_ - 1)
      std::fill_n(sums, rows * g_.nr, 0.0f);
    else
      product(s.weight, 0, j, left(s, i + 1) + row * pitch_, rows, sums);
    const float* dc = i == T_ - 1 ? at(buffers, first_ + 3) : s.state;
    float* dc_before = i == 0 && side2_ > 0 ? at(buffers, side2_) : s.state;
    CellBlock x{rows, columns(j), {}, {}};
    x.in[0] = {above, stride(first_ + 2, 1)};
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
    lstm_cells().back(x);
  }
};

}  // namespace

std::unique_ptr<CpuExecutable> make_lstm(const LibrarySpec& spec) {
  if (spec.op == Op::Lstm) return std::make_unique<Forward>(spec);
  return std::make_unique<Backward>(spec);
}

}  // namespace ingot::cpu
