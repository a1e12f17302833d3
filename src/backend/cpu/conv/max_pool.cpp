// Max pooling of float32 in dense rows, with the preceding elementwise ops (batch
// normalisation, ReLU). Without positions and ops a window's rows are reduced to one, then its
// columns. Otherwise the columns of each row come first, once for all windows that share the
// row, and the rows last: so the first of equal elements is found without comparing positions.
// Elements outside count as -inf.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "backend/cpu/conv/pool_simd.h"
#include "backend/cpu/kernel/tile_types.h"
#include "backend/cpu/library.h"
#include "backend/cpu/support/element.h"
#include "backend/cpu/support/threads.h"

namespace ingot::cpu {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr int64_t kMaxRows = 32, kMaxSpan = 4096;
constexpr int kMaxSteps = 24;

class WindowMax final : public CpuExecutable {
 public:
  /// False when the kernel is of another form.
  bool init(const KernelSpec& k) {
    if (k.n_outer < 1 || k.n_inner() < 1 || k.n_inner() > 3) return false;
    spec_ = k;
    last_ = static_cast<size_t>(k.n_outer) - 1;
    col_ = static_cast<size_t>(k.n_axes()) - 1;
    n_ = k.extent[last_];
    kw_ = k.extent[col_];
    for (const Store& s : k.stores)
      if (!add_result(s)) return false;
    if (results_.empty() || !find_value() || !find_program(value_) || main_ < 0) return false;
    const Instr& load = k.instrs[static_cast<size_t>(main_)];
    s_ = load.map.stride[last_];
    dilation_ = load.map.stride[col_];
    if (s_ < 1 || dilation_ < 1 || n_ < 4) return false;
    span_ = s_ * (n_ - 1) + dilation_ * (kw_ - 1) + 1;
    if (span_ > kMaxSpan || k.inner_size() / kw_ > kMaxRows) return false;
    at_once_ =
        !wants_index_ && steps_.size() == 1 && s_ == 2 && dilation_ == 1 && (kw_ == 2 || kw_ == 3);
    return find_bounds() && (list_rows(), true);
  }

  void run(void* const* buffers, void*, const RunArgs&) override {
    int64_t lines = 1;
    for (size_t a = 0; a < last_; ++a) lines *= spec_.extent[a];
    parallel_for(lines,
                 std::max<int64_t>(1, (64 << 10) / (span_ * static_cast<int64_t>(rows_.size()))),
                 [&](int64_t b, int64_t e) {
                   Local l(*this);
                   int64_t rest = b;
                   for (size_t a = last_; a-- > 0;) {
                     l.at_axis[a] = rest % spec_.extent[a];
                     rest /= spec_.extent[a];
                   }
                   for (int64_t line = b; line < e; ++line) {
                     reduce(buffers, l);
                     for (size_t a = last_; a-- > 0 && ++l.at_axis[a] == spec_.extent[a];)
                       l.at_axis[a] = 0;
                   }
                 });
  }

 private:
  struct Result {
    bool index;
    int32_t buffer;
    DType dtype;
    Affine map;
  };
  struct Step {  // one instruction of the value: for a row, or one value for the line
    int instr;
    bool row;
    TileFn fn = nullptr;
    int in[3] = {-1, -1, -1};  // steps
  };
  struct Row {
    int64_t offset;
    std::vector<int64_t> bound;
    int before = -1;  // the row of the previous line that is this one
  };
  struct Slot {  // one row with its windows' columns reduced
    float* best;
    int32_t* at;
  };
  struct Local {
    explicit Local(const WindowMax& w)
        : values(static_cast<size_t>(w.span_)),
          steps(w.steps_.size() * static_cast<size_t>(w.span_)),
          numbers(w.steps_.size()),
          last(w.steps_.size()),
          best(static_cast<size_t>(w.n_)),
          at(static_cast<size_t>(w.n_)),
          lines(pitch(w.n_) * (2 * w.rows_.size() + 1)) {
      // Full cache lines: a stored vector is read again without waiting.
      void* begin = lines.data();
      size_t room = lines.size() * sizeof(float);
      auto* next = static_cast<float*>(std::align(64, 64, begin, room));
      for (size_t i = 0; i < w.rows_.size(); ++i, next += 2 * pitch(w.n_))
        slots.push_back({next, reinterpret_cast<int32_t*>(next + pitch(w.n_))});
    }
    static size_t pitch(int64_t n) { return (static_cast<size_t>(n) + 15) / 16 * 16; }
    std::vector<float> values, steps, numbers, last, best;
    std::vector<int32_t> at;
    std::vector<float> lines;
    std::vector<Slot> slots;
    int64_t at_axis[kMaxAxes] = {};  // of the line
    const float* before = nullptr;   // where the previous line began
    int slot_of[kMaxRows];           // of each of its rows, or -1
  };

  const Instr& instr(int i) const { return spec_.instrs[static_cast<size_t>(i)]; }

  // A store of the maximum, or of its position, converted or not.
  bool add_result(const Store& s) {
    if (s.predicated || s.map.stride[last_] < 1) return false;
    const DType t = spec_.buffers[static_cast<size_t>(s.buffer)].dtype;
    int v = s.value;
    const bool cast = instr(v).kind == InstrKind::Compute && instr(v).op == Op::Cast;
    if (cast) v = instr(v).arg[0];
    const Instr& r = instr(v);
    if (r.kind != InstrKind::Reduce || (r.op != Op::Max && r.op != Op::ArgMax)) return false;
    if (r.op == Op::Max && (cast || t != DType::Float32)) return false;
    if (value_ >= 0 && value_ != r.arg[0]) return false;
    value_ = r.arg[0];
    wants_index_ = wants_index_ || r.op == Op::ArgMax;
    results_.push_back({r.op == Op::ArgMax, s.buffer, t, s.map});
    return true;
  }

  static bool never(const Instr& i) {
    return i.kind == InstrKind::Const && std::isinf(i.fvalue) && i.fvalue < 0;
  }

  // Outside elements are -inf: by the load's fill, or by a where around the value.
  bool find_value() {
    const Instr& v = instr(value_);
    if (v.dtype != DType::Float32) return false;
    if (v.kind == InstrKind::Load) {
      bounds_ = v.bounds;
      return bounds_.empty() || (std::isinf(v.fvalue) && v.fvalue < 0);
    }
    if (v.kind == InstrKind::Compute && v.op == Op::Where &&
        instr(v.arg[0]).kind == InstrKind::InBounds && never(instr(v.arg[2]))) {
      bounds_ = instr(v.arg[0]).bounds;
      value_ = v.arg[1];
    }
    return true;
  }

  // The steps that lead to instruction i, in order. One load moves along the row; all others are
  // scalars.
  bool find_program(int i) {
    for (const Step& s : steps_)
      if (s.instr == i) return true;
    const Instr& x = instr(i);
    Step s{i, false};
    if (x.dtype != DType::Float32 || steps_.size() >= kMaxSteps) return false;
    if (x.kind == InstrKind::Load) {
      if (x.indirect >= 0 || !(x.bounds.empty() || x.bounds == bounds_)) return false;
      for (size_t a = last_; a <= col_; ++a) s.row = s.row || x.map.stride[a] != 0;
      if (s.row && (main_ >= 0 || x.bounds != bounds_)) return false;
      if (s.row) main_ = i;
    } else if (x.kind == InstrKind::Compute && x.op != Op::Cast) {
      int scalars = 0;
      for (int k = 0; k < 3; ++k) {
        if (x.arg[k] < 0) continue;
        if (!find_program(x.arg[k])) return false;
        s.in[k] = number_of(x.arg[k]);
        s.row = s.row || steps_[static_cast<size_t>(s.in[k])].row;
      }
      for (int k = 0; k < 3; ++k)
        if (s.in[k] >= 0 && s.row && !steps_[static_cast<size_t>(s.in[k])].row) scalars |= 1 << k;
      s.fn = find_op(x.op, TileType::F32, scalars);
      if (!s.fn) return false;
    } else if (x.kind != InstrKind::Const) {
      return false;
    }
    steps_.push_back(s);
    return true;
  }
  int number_of(int i) const {
    for (size_t s = 0; s < steps_.size(); ++s)
      if (steps_[s].instr == i) return static_cast<int>(s);
    return -1;
  }

  // At most one bound concerns columns, in the load's own steps; the others concern rows.
  bool find_bounds() {
    lo_ = 0, hi_ = span_;
    for (const Bound& b : bounds_) {
      if (b.at.stride[last_] == 0 && b.at.stride[col_] == 0) {
        row_bounds_.push_back(b);
        continue;
      }
      for (size_t a = 0; a <= col_; ++a) {
        const int64_t want = a == last_ ? s_ : a == col_ ? dilation_ : 0;
        if (b.at.stride[a] != want && spec_.extent[a] > 1) return false;
      }
      lo_ = std::max(lo_, -b.at.offset);
      hi_ = std::min(hi_, b.extent - b.at.offset);
    }
    const int64_t reach = dilation_ * (kw_ - 1);
    from_ = std::min(n_, (lo_ + s_ - 1) / s_);
    to_ = std::max(from_, hi_ > reach ? std::min(n_, (hi_ - 1 - reach) / s_ + 1) : 0);
    return lo_ < hi_ && row_bounds_.size() <= 8;
  }

  void list_rows() {
    const int64_t count = spec_.inner_size() / kw_;
    for (int64_t p = 0; p < count; ++p) {
      Row row{0, std::vector<int64_t>(row_bounds_.size(), 0)};
      int64_t rest = p;
      for (size_t a = col_; a-- > static_cast<size_t>(spec_.n_outer);) {
        const int64_t at = rest % spec_.extent[a];
        rest /= spec_.extent[a];
        row.offset += at * instr(main_).map.stride[a];
        for (size_t b = 0; b < row.bound.size(); ++b)
          row.bound[b] += at * row_bounds_[b].at.stride[a];
      }
      rows_.push_back(std::move(row));
    }
    for (Row& r : rows_)
      for (size_t k = 0; last_ > 0 && k < rows_.size(); ++k)
        if (rows_[k].offset == r.offset + instr(main_).map.stride[last_ - 1])
          r.before = static_cast<int>(k);
  }

  int64_t at(const Affine& m, const Local& l) const {
    int64_t p = m.offset;
    for (size_t a = 0; a < last_; ++a) p += l.at_axis[a] * m.stride[a];
    return p;
  }

  // Scalars of the line: loads that do not move, constants and what is computed from them.
  void set_numbers(void* const* buffers, Local& l) const {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      const Instr& x = instr(s.instr);
      if (s.row) continue;
      if (x.kind == InstrKind::Const)
        l.numbers[i] = static_cast<float>(x.fvalue);
      else if (x.kind == InstrKind::Load)
        l.numbers[i] = static_cast<const float*>(buffers[x.buffer])[at(x.map, l)];
      else
        s.fn(&l.numbers[i], number(l, s.in[0]), number(l, s.in[1]), number(l, s.in[2]), 1);
    }
  }
  static const float* number(const Local& l, int i) {
    return i < 0 ? nullptr : &l.numbers[static_cast<size_t>(i)];
  }

  // The value along one row, from lo_ to hi_; `out` holds it where it is not the memory itself.
  const float* row_values(const float* x, Local& l, float* out) const {
    const int64_t n = hi_ - lo_;
    if (steps_.size() == 1) return x;
    auto operand = [&](int i) -> const void* {
      if (i < 0) return nullptr;
      const Step& s = steps_[static_cast<size_t>(i)];
      if (!s.row) return &l.numbers[static_cast<size_t>(i)];
      return s.instr == main_ ? x : l.steps.data() + static_cast<int64_t>(i) * span_;
    };
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      if (!s.row || s.instr == main_) continue;
      float* to = i + 1 == steps_.size() ? out : l.steps.data() + static_cast<int64_t>(i) * span_;
      s.fn(to, operand(s.in[0]), operand(s.in[1]), operand(s.in[2]), n);
    }
    return out;
  }

  bool inside(const Row& row, const int64_t* first) const {
    for (size_t b = 0; b < row_bounds_.size(); ++b) {
      const int64_t v = first[b] + row.bound[b];
      if (v < 0 || v >= row_bounds_[b].extent) return false;
    }
    return true;
  }

  void reduce(void* const* buffers, Local& l) const {
    const Instr& load = instr(main_);
    const float* x = static_cast<const float*>(buffers[load.buffer]) + at(load.map, l) + lo_;
    int64_t first[8] = {};
    for (size_t b = 0; b < row_bounds_.size(); ++b) first[b] = at(row_bounds_[b].at, l);
    if (steps_.size() > 1) set_numbers(buffers, l);
    float* best = l.best.data();
    for (const Result& r : results_)
      if (!r.index && r.map.stride[last_] == 1)
        best = static_cast<float*>(buffers[r.buffer]) + at(r.map, l);
    if (!(at_once_ ? reduce_at_once(x, first, best) : reduce_windows(x, first, best, l)))
      std::fill_n(best, n_, kNever);
    for (const Result& r : results_) store(r, buffers[r.buffer], at(r.map, l), best, l);
  }

  // The columns of one row's windows, v being element lo_: all of those inside at once, the edges
  // one by one.
  void reduce_columns(const float* v, const Slot& slot) const {
    if (to_ > from_)
      pool_simd().across(v + from_ * s_ - lo_, s_, dilation_, kw_, to_ - from_, slot.best + from_,
                         wants_index_ ? slot.at + from_ : nullptr);
    for (int64_t i = 0; i < from_; ++i) reduce_edge(v, i, slot);
    for (int64_t i = to_; i < n_; ++i) reduce_edge(v, i, slot);
  }
  void reduce_edge(const float* v, int64_t i, const Slot& slot) const {
    float top = kNever;
    uint32_t bits = std::bit_cast<uint32_t>(top), where = 0;
    for (int64_t j = 0; j < kw_; ++j) {
      const int64_t column = i * s_ + j * dilation_;
      if (column < lo_ || column >= hi_) continue;
      // Selected without a branch: which element is larger is unpredictable.
      const float x = v[column - lo_];
      const uint32_t take = 0u - static_cast<uint32_t>(!(x <= top) & (top == top));
      bits = (bits & ~take) | (std::bit_cast<uint32_t>(x) & take);
      where = (where & ~take) | (static_cast<uint32_t>(j) & take);
      top = std::bit_cast<float>(bits);
    }
    slot.best[i] = top;
    slot.at[i] = static_cast<int32_t>(where);
  }

  // The windows of one line where positions are not needed. False when all of the window is
  // outside.
  bool reduce_at_once(const float* x, const int64_t* first, float* best) const {
    const float* p[kMaxRows];
    int count = 0;
    for (const Row& r : rows_)
      if (inside(r, first)) p[count++] = x + r.offset;
    if (count == 0) return false;
    const float* inner[kMaxRows];
    for (int r = 0; r < count; ++r) inner[r] = p[r] + from_ * s_ - lo_;
    if (to_ > from_) pool_simd().windows(inner, count, kw_, to_ - from_, best + from_);
    for (int64_t i = 0; i < n_; ++i) {
      if (i == from_) i = to_;
      if (i >= n_) break;
      float top = kNever;
      for (int r = 0; r < count; ++r)
        for (int64_t c = std::max(lo_, i * s_), end = std::min(hi_, i * s_ + kw_); c < end; ++c)
          if (const float v = p[r][c - lo_]; !(v <= top) && top == top) top = v;
      best[i] = top;
    }
    return true;
  }

  // False when all of the window is outside.
  bool reduce_windows(const float* x, const int64_t* first, float* best, Local& l) const {
    // Rows of the previous line stay valid if this one is the next, with the same scalars.
    bool next = last_ > 0 && l.before && x - l.before == instr(main_).map.stride[last_ - 1];
    if (steps_.size() > 1) {
      next =
          next && std::memcmp(l.numbers.data(), l.last.data(), l.last.size() * sizeof(float)) == 0;
      l.last = l.numbers;
    }
    l.before = x;
    int slot_of[kMaxRows];
    uint32_t used = 0;
    for (size_t r = 0; r < rows_.size(); ++r) {
      const bool in = inside(rows_[r], first);
      slot_of[r] =
          in && next && rows_[r].before >= 0 ? std::max(-1, l.slot_of[rows_[r].before]) : -1;
      if (slot_of[r] >= 0) used |= 1u << slot_of[r];
      if (!in) slot_of[r] = -2;
    }
    const float* p[kMaxRows];
    const int32_t* from[kMaxRows];
    int32_t number[kMaxRows];
    int count = 0;
    for (size_t r = 0; r < rows_.size(); ++r) {
      if (slot_of[r] == -2) continue;
      if (slot_of[r] < 0) {
        slot_of[r] = std::countr_one(used);
        used |= 1u << slot_of[r];
        const Slot& slot = l.slots[static_cast<size_t>(slot_of[r])];
        reduce_columns(row_values(x + rows_[r].offset, l, l.values.data()), slot);
      }
      const Slot& slot = l.slots[static_cast<size_t>(slot_of[r])];
      p[count] = slot.best;
      from[count] = slot.at;
      number[count++] = static_cast<int32_t>(static_cast<int64_t>(r) * kw_);
    }
    std::copy_n(slot_of, rows_.size(), l.slot_of);
    if (count)
      pool_simd().stack(p, from, number, count, n_, best, wants_index_ ? l.at.data() : nullptr);
    return count > 0;
  }

  void store(const Result& r, void* out, int64_t to, const float* best, const Local& l) const {
    const int64_t step = r.map.stride[last_];
    const int32_t* at = l.at.data();
    if (!r.index) {
      float* y = static_cast<float*>(out) + to;
      for (int64_t i = 0; y != best && i < n_; ++i) y[i * step] = best[i];
      return;
    }
    if (r.dtype == DType::UInt8 && step == 1)
      return pool_simd().bytes(best, at, n_, static_cast<uint8_t*>(out) + to);
    for (int64_t i = 0; i < n_; ++i)
      write<int64_t>(out, r.dtype, to + i * step, best[i] == kNever ? 0 : at[i]);
  }

  KernelSpec spec_;
  size_t last_ = 0, col_ = 0;
  int value_ = -1, main_ = -1;
  int64_t n_ = 0, kw_ = 0, s_ = 1, dilation_ = 1, span_ = 0, lo_ = 0, hi_ = 0;
  int64_t from_ = 0, to_ = 0;  // the windows whose columns are all inside
  bool wants_index_ = false, at_once_ = false;
  std::vector<Result> results_;
  std::vector<Bound> bounds_, row_bounds_;
  std::vector<Step> steps_;
  std::vector<Row> rows_;
};

}  // namespace

std::unique_ptr<CpuExecutable> prepare_max_pool(const KernelSpec& spec) {
  auto w = std::make_unique<WindowMax>();
  return w->init(spec) ? std::move(w) : nullptr;
}

}  // namespace ingot::cpu
