// The cells of an LSTM (cells.h).
#include "backend/cpu/rnn/cells.h"

#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rnn/lstm_cells.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "backend/cpu/rnn/cells-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace {

struct CellAt {
  template <int U>
  static HWY_INLINE void at(const CellRow& r, int64_t j) {
    const auto N = static_cast<int64_t>(hn::Lanes(F()));
    V in[U], forget[U], fresh[U], out[U], c[U];
    auto sum = [&](int gate, int u) INGOT_INLINE {
      return hn::Add(cell_load(r, gate, j + u * N), cell_load(r, gate + 4, j + u * N));
    };
    beside<U>([&](int u) INGOT_INLINE { in[u] = vsigmoid(sum(0, u)); });
    beside<U>([&](int u) INGOT_INLINE { forget[u] = vsigmoid(sum(1, u)); });
    beside<U>([&](int u) INGOT_INLINE { fresh[u] = vtanh(sum(2, u)); });
    beside<U>([&](int u) INGOT_INLINE { out[u] = vsigmoid(sum(3, u)); });
    beside<U>([&](int u) INGOT_INLINE {
      c[u] = hn::MulAdd(forget[u], cell_load(r, 8, j + u * N), hn::Mul(in[u], fresh[u]));
      cell_store(r, 2, j + u * N, c[u]);
      cell_store(r, 3, j + u * N, in[u]);
      cell_store(r, 4, j + u * N, forget[u]);
      cell_store(r, 5, j + u * N, fresh[u]);
      cell_store(r, 6, j + u * N, out[u]);
    });
    beside<U>([&](int u) INGOT_INLINE {
      const V h = hn::Mul(out[u], vtanh(c[u]));
      cell_store(r, 0, j + u * N, h);
      cell_store(r, 1, j + u * N, h);
    });
  }
};

struct BackAt {
  template <int U>
  static HWY_INLINE void at(const CellRow& r, int64_t j) {
    const auto N = static_cast<int64_t>(hn::Lanes(F()));
    beside<U>([&](int u) INGOT_INLINE { vector(r, j + u * N); });
  }
  static HWY_INLINE void vector(const CellRow& r, int64_t j) {
    const V one = splat(1.0f);
    const V in = cell_load(r, 2, j), forget = cell_load(r, 3, j), fresh = cell_load(r, 4, j),
            out = cell_load(r, 5, j);
    const V t = vtanh(cell_load(r, 6, j)), dh = hn::Add(cell_load(r, 0, j), cell_load(r, 1, j));
    const V dc = hn::MulAdd(hn::Mul(dh, out), hn::NegMulAdd(t, t, one), cell_load(r, 8, j));
    const V d[4] = {hn::Mul(hn::Mul(dc, fresh), hn::Mul(in, hn::Sub(one, in))),
                    hn::Mul(hn::Mul(dc, cell_load(r, 7, j)), hn::Mul(forget, hn::Sub(one, forget))),
                    hn::Mul(hn::Mul(dc, in), hn::NegMulAdd(fresh, fresh, one)),
                    hn::Mul(hn::Mul(dh, t), hn::Mul(out, hn::Sub(one, out)))};
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) {
      cell_store(r, g, j, d[g]);
      cell_store(r, g + 4, j, d[g]);
    }
    cell_store(r, 8, j, hn::Mul(dc, forget));
  }
};

}  // namespace

void LstmCell(const CellBlock& b) { along<CellAt>(b); }
void LstmBack(const CellBlock& b) { along<BackAt>(b); }

Cells LstmTable() { return {LstmCell, LstmBack}; }

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {
const Cells& lstm_cells() {
  static const Cells cells = INGOT_DISPATCH(LstmTable)();
  return cells;
}
}  // namespace ingot::cpu
#endif
