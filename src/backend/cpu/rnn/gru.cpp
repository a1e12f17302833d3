// The steps of a GRU layer (recurrence.h), and their cells (cells.h).
#include "backend/cpu/rnn/recurrence.h"

#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rnn/gru.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "backend/cpu/rnn/cells-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace {

// in: the input's part of the three gates, the state's part of them, the last one's bias, h before.
// out: h, a second copy of it, the gates, what the reset gate multiplies.
struct GruCellAt {
  template <int U>
  static HWY_INLINE void at(const CellRow& r, int64_t j) {
    const auto N = static_cast<int64_t>(hn::Lanes(F()));
    V reset[U], update[U], state[U], fresh[U];
    auto sum = [&](int gate, int u) INGOT_INLINE {
      return hn::Add(cell_load(r, gate, j + u * N), cell_load(r, gate + 3, j + u * N));
    };
    beside<U>([&](int u) INGOT_INLINE { reset[u] = vsigmoid(sum(0, u)); });
    beside<U>([&](int u) INGOT_INLINE { update[u] = vsigmoid(sum(1, u)); });
    beside<U>([&](int u) INGOT_INLINE {
      state[u] = hn::Add(cell_load(r, 5, j + u * N), cell_load(r, 6, j + u * N));
    });
    beside<U>([&](int u) INGOT_INLINE {
      fresh[u] = vtanh(hn::MulAdd(reset[u], state[u], cell_load(r, 2, j + u * N)));
    });
    beside<U>([&](int u) INGOT_INLINE {
      const V rest = hn::Mul(hn::Sub(splat(1.0f), update[u]), fresh[u]);
      const V h = hn::MulAdd(update[u], cell_load(r, 7, j + u * N), rest);
      cell_store(r, 0, j + u * N, h);
      cell_store(r, 1, j + u * N, h);
      cell_store(r, 2, j + u * N, reset[u]);
      cell_store(r, 3, j + u * N, update[u]);
      cell_store(r, 4, j + u * N, fresh[u]);
      cell_store(r, 5, j + u * N, state[u]);
    });
  }
};

// in: the gradient of h from above, that from the next step's product, that which it passes on, the
// four values kept, h before. out: the gradients in their places, those of the product's three
// gates, what is passed on to the step before.
struct GruBackAt {
  template <int U>
  static HWY_INLINE void at(const CellRow& r, int64_t j) {
    const auto N = static_cast<int64_t>(hn::Lanes(F()));
    beside<U>([&](int u) INGOT_INLINE { vector(r, j + u * N); });
  }
  static HWY_INLINE void vector(const CellRow& r, int64_t j) {
    const V one = splat(1.0f);
    const V dh = hn::Add(hn::Add(cell_load(r, 0, j), cell_load(r, 1, j)), cell_load(r, 2, j));
    const V reset = cell_load(r, 3, j), update = cell_load(r, 4, j), fresh = cell_load(r, 5, j),
            state = cell_load(r, 6, j), before = cell_load(r, 7, j);
    const V rest = hn::Sub(one, update);
    const V d_fresh = hn::Mul(hn::Mul(dh, rest), hn::NegMulAdd(fresh, fresh, one));
    const V d_state = hn::Mul(d_fresh, reset);
    const V d_reset = hn::Mul(hn::Mul(d_state, state), hn::Sub(one, reset));
    const V d_update = hn::Mul(hn::Mul(dh, hn::Sub(before, fresh)), hn::Mul(update, rest));
    cell_store(r, 0, j, d_reset);
    cell_store(r, 1, j, d_update);
    cell_store(r, 2, j, d_fresh);
    cell_store(r, 3, j, d_state);
    cell_store(r, 4, j, d_reset);
    cell_store(r, 5, j, d_update);
    cell_store(r, 6, j, d_state);
    cell_store(r, 7, j, hn::Mul(dh, update));
  }
};

}  // namespace

void GruCell(const CellBlock& b) { along<GruCellAt>(b); }
void GruBack(const CellBlock& b) { along<GruBackAt>(b); }

Cells GruTable() { return {GruCell, GruBack}; }

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {
namespace {

const Cells& cells() {
  static const Cells all = INGOT_DISPATCH(GruTable)();
  return all;
}

/// Operands: h, (gates), z, weight, h0, bias.
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
    alignas(64) float sums[3][kRows * kMostColumns];
    const int64_t t = step(i), from = j * g_.nr, first = t * N_ + row, z_row = stride(first_, 1);
    const float* z = at(buffers, first_) + t * stride(first_, 0) + row * z_row + from;
    ask_for(z, rows, z_row, 3, columns(j));
    const float* before = left(s, i) + row * pitch_;
    for (int64_t g = 0; g < 3; ++g) product(s.weight, g, j, before, rows, sums[g]);
    CellBlock x{rows, columns(j), {}, {}};
    for (int64_t g = 0; g < 3; ++g) {
      x.in[g] = {z + g * H_, z_row};
      x.in[g + 3] = {sums[g], g_.nr};
    }
    x.in[6] = {at(buffers, first_ + 3) + from, 0};
    x.in[7] = {before + from, pitch_};
    x.out[0] = {at(buffers, 0) + first * H_ + from, H_};
    x.out[1] = {left(s, i + 1) + row * pitch_ + from, pitch_};
    for (int64_t g = 0; g < 4 && side1_ > 0; ++g)
      x.out[g + 2] = {at(buffers, side1_) + (first * 4 + g) * H_ + from, 4 * H_};
    cells().cell(x);
  }
};

/// Operands: d gates, (dh0), gates, weight, dh, h, h0.
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
        for (int64_t c = 0; c < columns(j); ++c) {
          const int64_t at_unit = (row + r) * H_ + j * g_.nr + c;
          at(buffers, side1_)[at_unit] = sums[r * g_.nr + c] + s.state[at_unit];
        }
    });
  }

 private:
  void part(void* const* buffers, const Space& s, int64_t i, int64_t row, int64_t rows,
            int64_t j) const {
    alignas(64) float sums[kRows * kMostColumns];
    const int64_t t = step(i), from = j * g_.nr, first = t * N_ + row,
                  above_row = stride(first_ + 2, 1);
    const float* kept = at(buffers, first_) + first * 4 * H_ + from;
    const float* above =
        at(buffers, first_ + 2) + t * stride(first_ + 2, 0) + row * above_row + from;
    const float* before = i > 0 ? at(buffers, first_ + 3) + (step(i - 1) * N_ + row) * H_ + from
                                : at(buffers, first_ + 4) + row * H_ + from;
    ask_for(kept, rows, 4 * H_, 4, columns(j));
    ask_for(above, rows, above_row, 1, columns(j));
    ask_for(before, rows, H_, 1, columns(j));
    float* passed = s.state + row * H_ + from;
    if (i == T_ - 1) {
      std::fill_n(sums, rows * g_.nr, 0.0f);
      for (int64_t r = 0; r < rows; ++r) std::fill_n(passed + r * H_, columns(j), 0.0f);
    } else {
      product(s.weight, 0, j, left(s, i + 1) + row * pitch_, rows, sums);
    }
    CellBlock x{rows, columns(j), {}, {}};
    x.in[0] = {above, above_row};
    x.in[1] = {sums, g_.nr};
    x.in[2] = {passed, H_};
    for (int64_t g = 0; g < 4; ++g) {
      x.in[g + 3] = {kept + g * H_, 4 * H_};
      x.out[g] = {at(buffers, 0) + (first * 4 + g) * H_ + from, 4 * H_};
    }
    x.in[7] = {before, H_};
    for (int64_t g = 0; g < 3; ++g)
      x.out[g + 4] = {left(s, i) + row * pitch_ + g * H_ + from, pitch_};
    x.out[7] = {passed, H_};
    cells().back(x);
  }
};

}  // namespace

std::unique_ptr<CpuExecutable> make_gru(const LibrarySpec& spec) {
  if (spec.op == Op::Gru) return std::make_unique<Forward>(spec);
  return std::make_unique<Backward>(spec);
}

}  // namespace ingot::cpu
#endif
