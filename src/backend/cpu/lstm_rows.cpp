// See lstm_rows.h.
#include "backend/cpu/lstm_rows.h"

#include <cstring>

#include "backend/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/lstm_rows.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "backend/cpu/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One row: the block's pointers, moved.
struct LstmRow {
  int64_t n;
  const float* in[LstmBlock::kIn];
  float* out[LstmBlock::kOut];
};

HWY_INLINE V lstm_load(const LstmRow& r, int k, int64_t j) { return hn::LoadU(F(), r.in[k] + j); }
HWY_INLINE void lstm_store(const LstmRow& r, int k, int64_t j, V v) {
  if (r.out[k]) hn::StoreU(v, F(), r.out[k] + j);
}

struct CellAt {
  static HWY_INLINE void at(const LstmRow& r, int64_t j) {
    const V in = vsigmoid(hn::Add(lstm_load(r, 0, j), lstm_load(r, 4, j)));
    const V forget = vsigmoid(hn::Add(lstm_load(r, 1, j), lstm_load(r, 5, j)));
    const V fresh = vtanh(hn::Add(lstm_load(r, 2, j), lstm_load(r, 6, j)));
    const V out = vsigmoid(hn::Add(lstm_load(r, 3, j), lstm_load(r, 7, j)));
    const V c = hn::MulAdd(forget, lstm_load(r, 8, j), hn::Mul(in, fresh));
    const V h = hn::Mul(out, vtanh(c));
    lstm_store(r, 0, j, h);
    lstm_store(r, 1, j, h);
    lstm_store(r, 2, j, c);
    lstm_store(r, 3, j, in);
    lstm_store(r, 4, j, forget);
    lstm_store(r, 5, j, fresh);
    lstm_store(r, 6, j, out);
  }
};

struct BackAt {
  static HWY_INLINE void at(const LstmRow& r, int64_t j) {
    const V one = splat(1.0f);
    const V in = lstm_load(r, 2, j), forget = lstm_load(r, 3, j), fresh = lstm_load(r, 4, j),
            out = lstm_load(r, 5, j);
    const V t = vtanh(lstm_load(r, 6, j)), dh = hn::Add(lstm_load(r, 0, j), lstm_load(r, 1, j));
    const V dc = hn::MulAdd(hn::Mul(dh, out), hn::NegMulAdd(t, t, one), lstm_load(r, 8, j));
    const V d[4] = {hn::Mul(hn::Mul(dc, fresh), hn::Mul(in, hn::Sub(one, in))),
                    hn::Mul(hn::Mul(dc, lstm_load(r, 7, j)), hn::Mul(forget, hn::Sub(one, forget))),
                    hn::Mul(hn::Mul(dc, in), hn::NegMulAdd(fresh, fresh, one)),
                    hn::Mul(hn::Mul(dh, t), hn::Mul(out, hn::Sub(one, out)))};
    for (int g = 0; g < 4; ++g) {
      lstm_store(r, g, j, d[g]);
      lstm_store(r, g + 4, j, d[g]);
    }
    lstm_store(r, 8, j, hn::Mul(dc, forget));
  }
};

/// Whole vectors, then the rest as one vector of its own.
template <class Op>
HWY_INLINE void along_row(const LstmRow& r) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  int64_t j = 0;
  for (; j + lanes <= r.n; j += lanes) Op::at(r, j);
  if (j == r.n) return;
  HWY_ALIGN float in[LstmBlock::kIn][64] = {};
  HWY_ALIGN float out[LstmBlock::kOut][64];
  const auto bytes = static_cast<size_t>(r.n - j) * sizeof(float);
  LstmRow rest{lanes, {}, {}};
  for (int k = 0; k < LstmBlock::kIn; ++k) {
    if (r.in[k]) std::memcpy(in[k], r.in[k] + j, bytes);
    rest.in[k] = in[k];
  }
  for (int k = 0; k < LstmBlock::kOut; ++k) rest.out[k] = r.out[k] ? out[k] : nullptr;
  Op::at(rest, 0);
  for (int k = 0; k < LstmBlock::kOut; ++k)
    if (r.out[k]) std::memcpy(r.out[k] + j, out[k], bytes);
}

template <class Op>
HWY_INLINE void along(const LstmBlock& b) {
  LstmRow r{b.n, {}, {}};
  for (int64_t i = 0; i < b.rows; ++i) {
    for (int k = 0; k < LstmBlock::kIn; ++k) r.in[k] = b.in[k].at + i * b.in[k].stride;
    for (int k = 0; k < LstmBlock::kOut; ++k)
      r.out[k] = b.out[k].at ? b.out[k].at + i * b.out[k].stride : nullptr;
    along_row<Op>(r);
  }
}

void LstmCell(const LstmBlock& b) { along<CellAt>(b); }
void LstmBack(const LstmBlock& b) { along<BackAt>(b); }

LstmRows LstmTable() { return {LstmCell, LstmBack}; }

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/dispatch.h"

namespace ingot::cpu {
const LstmRows& lstm_rows() {
  static const LstmRows rows = INGOT_DISPATCH(LstmTable)();
  return rows;
}
}  // namespace ingot::cpu
#endif
