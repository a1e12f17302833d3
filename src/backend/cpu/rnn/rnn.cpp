// The steps of a plain RNN layer (recurrence.h), and their cells (cells.h).
#include "backend/cpu/rnn/recurrence.h"

#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rnn/rnn.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "backend/cpu/rnn/cells-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace {

// in: the input's part, the state's part. out: h, a second copy of it.
template <bool kRelu>
struct RnnCellAt {
  template <int U>
  static HWY_INLINE void at(const CellRow& r, int64_t j) {
    const auto N = static_cast<int64_t>(hn::Lanes(F()));
    beside<U>([&](int u) INGOT_INLINE {
      const V sum = hn::Add(cell_load(r, 0, j + u * N), cell_load(r, 1, j + u * N));
      V h;
      if constexpr (kRelu)  // NaN stays
        h = hn::IfThenElse(hn::Lt(sum, splat(0.0f)), splat(0.0f), sum);
      else
        h = vtanh(sum);
      cell_store(r, 0, j + u * N, h);
      cell_store(r, 1, j + u * N, h);
    });
  }
};

// in: the gradient of h from above, that from the next step, h. out: the gradient of the sum, a
// second copy of it.
template <bool kRelu>
struct RnnBackAt {
  template <int U>
  static HWY_INLINE void at(const CellRow& r, int64_t j) {
    const auto N = static_cast<int64_t>(hn::Lanes(F()));
    beside<U>([&](int u) INGOT_INLINE {
      const V dh = hn::Add(cell_load(r, 0, j + u * N), cell_load(r, 1, j + u * N)),
              h = cell_load(r, 2, j + u * N);
      V d;
      if constexpr (kRelu)
        d = hn::IfThenElseZero(hn::Gt(h, splat(0.0f)), dh);
      else
        d = hn::Mul(dh, hn::NegMulAdd(h, h, splat(1.0f)));
      cell_store(r, 0, j + u * N, d);
      cell_store(r, 1, j + u * N, d);
    });
  }
};

}  // namespace

void TanhCell(const CellBlock& b) { along<RnnCellAt<false>>(b); }
void TanhBack(const CellBlock& b) { along<RnnBackAt<false>>(b); }
void ReluCell(const CellBlock& b) { along<RnnCellAt<true>>(b); }
void ReluBack(const CellBlock& b) { along<RnnBackAt<true>>(b); }

Cells TanhTable() { return {TanhCell, TanhBack}; }
Cells ReluTable() { return {ReluCell, ReluBack}; }

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {
namespace {

const Cells& cells(bool relu) {
  static const Cells all[2] = {INGOT_DISPATCH(TanhTable)(), INGOT_DISPATCH(ReluTable)()};
  return all[relu];
}

/// Operands: h, z, weight, h0; or dz, (dh0), h, weight, dh.
class Rnn final : public Recurrence {
 public:
  explicit Rnn(const LibrarySpec& s)
      : Recurrence(s),
        backward_(is_recurrent_grad(s.op)),
        cells_(cells(s.attrs.as<RecurrentAttrs>().relu)) {}

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    const Space s = space(scratch);
    pack(at(buffers, first_ + 1), 0, backward_ ? H_ : 1, backward_ ? 1 : H_, s.weight);
    if (!backward_) {
      const float* h0 = at(buffers, first_ + 2);
      for (int64_t n = 0; n < N_; ++n) std::copy_n(h0 + n * H_, H_, left(s, 0) + n * pitch_);
    }
    steps(!backward_, [&](int64_t i, int64_t row, int64_t rows, int64_t panel) {
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
  /// What comes from outside: z, or the gradient of h.
  int given() const { return backward_ ? first_ + 2 : first_; }

  void part(void* const* buffers, const Space& s, int64_t i, int64_t row, int64_t rows,
            int64_t j) const {
    alignas(64) float sums[kRows * kMostColumns];
    const int64_t t = step(i), from = j * g_.nr, unit = (t * N_ + row) * H_ + from,
                  given_row = stride(given(), 1);
    const float* in = at(buffers, given()) + t * stride(given(), 0) + row * given_row + from;
    ask_for(in, rows, given_row, 1, columns(j));
    const int64_t reads = backward_ ? i + 1 : i, writes = backward_ ? i : i + 1;
    if (backward_ && i == T_ - 1)
      std::fill_n(sums, rows * g_.nr, 0.0f);
    else
      product(s.weight, 0, j, left(s, reads) + row * pitch_, rows, sums);
    CellBlock x{rows, columns(j), {}, {}};
    x.in[0] = {in, given_row};
    x.in[1] = {sums, g_.nr};
    if (backward_) x.in[2] = {at(buffers, first_) + unit, H_};
    x.out[0] = {at(buffers, 0) + unit, H_};
    x.out[1] = {left(s, writes) + row * pitch_ + from, pitch_};
    (backward_ ? cells_.back : cells_.cell)(x);
  }

  bool backward_;
  const Cells& cells_;
};

}  // namespace

std::unique_ptr<CpuExecutable> make_rnn(const LibrarySpec& spec) {
  return std::make_unique<Rnn>(spec);
}

}  // namespace ingot::cpu
#endif
