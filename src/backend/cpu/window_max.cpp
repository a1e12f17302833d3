// Max pooling of float32 in dense rows, with the elementwise ops in front of it (batch normalisation, ReLU):
// the window's rows are computed once and reduced to one, then its columns. Places outside count as -inf.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "backend/cpu/element.h"
#include "backend/cpu/library.h"
#include "backend/cpu/threads.h"
#include "backend/cpu/tile_types.h"
#include "backend/cpu/window_rows.h"

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
    return find_bounds() && (list_rows(), true);
  }

  void run(void* const* buffers, void*, const RunArgs&) override {
    int64_t lines = 1;
    for (size_t a = 0; a < last_; ++a) lines *= spec_.extent[a];
    parallel_for(lines, std::max<int64_t>(1, (64 << 10) / (span_ * static_cast<int64_t>(rows_.size()))),
                 [&](int64_t b, int64_t e) {
                   Local l(*this);
                   for (int64_t line = b; line < e; ++line) reduce(line, buffers, l);
                 });
  }

 private:
  struct Result {
    bool index;
    int32_t buffer;
    DType dtype;
    Affine map;
  };
  struct Step {  // one instruction of the value: of a whole row, or of one number for the line
    int instr;
    bool row;
    TileFn fn = nullptr;
    int in[3] = {-1, -1, -1};  // steps
  };
  struct Row {
    int64_t offset;
    std::vector<int64_t> bound;
  };
  struct Local {
    explicit Local(const WindowMax& w)
        : values(w.rows_.size() * static_cast<size_t>(w.span_)),
          steps(w.steps_.size() * static_cast<size_t>(w.span_)),
          numbers(w.steps_.size()),
          top(static_cast<size_t>(w.span_), kNever),
          best(static_cast<size_t>(w.n_)),
          from(static_cast<size_t>(w.span_), 0),
          at(static_cast<size_t>(w.n_)) {}
    std::vector<float> values, steps, numbers, top, best;
    std::vector<int32_t> from, at;
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
    return i.kind == InstrKind::Const && std::isinf(i.imm_f) && i.imm_f < 0;
  }

  // What lies outside is -inf: the load says so, or a where around the value.
  bool find_value() {
    const Instr& v = instr(value_);
    if (v.dtype != DType::Float32) return false;
    if (v.kind == InstrKind::Load) {
      bounds_ = v.bounds;
      return bounds_.empty() || (std::isinf(v.imm_f) && v.imm_f < 0);
    }
    if (v.kind == InstrKind::Compute && v.op == Op::Where && instr(v.arg[0]).kind == InstrKind::InBounds &&
        never(instr(v.arg[2]))) {
      bounds_ = instr(v.arg[0]).bounds;
      value_ = v.arg[1];
    }
    return true;
  }

  // The steps that lead to instruction i, in order. One load moves along the row; all others are numbers.
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

  // At most one bound speaks of columns, in the load's own steps; the others of rows.
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
        for (size_t b = 0; b < row.bound.size(); ++b) row.bound[b] += at * row_bounds_[b].at.stride[a];
      }
      rows_.push_back(std::move(row));
    }
  }

  int64_t at(const Affine& m, int64_t line) const {
    int64_t p = m.offset;
    for (size_t a = last_; a-- > 0;) {
      p += line % spec_.extent[a] * m.stride[a];
      line /= spec_.extent[a];
    }
    return p;
  }

  // Numbers of the line: loads that do not move, constants and what is made of them.
  void set_numbers(int64_t line, void* const* buffers, Local& l) const {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      const Instr& x = instr(s.instr);
      if (s.row) continue;
      if (x.kind == InstrKind::Const)
        l.numbers[i] = static_cast<float>(x.imm_f);
      else if (x.kind == InstrKind::Load)
        l.numbers[i] = static_cast<const float*>(buffers[x.buffer])[at(x.map, line)];
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

  void reduce(int64_t line, void* const* buffers, Local& l) const {
    const Instr& load = instr(main_);
    const float* x = static_cast<const float*>(buffers[load.buffer]) + at(load.map, line) + lo_;
    int64_t first[8] = {};
    for (size_t b = 0; b < row_bounds_.size(); ++b) first[b] = at(row_bounds_[b].at, line);
    const float* p[kMaxRows];
    int32_t number[kMaxRows];
    int count = 0;
    for (size_t r = 0; r < rows_.size(); ++r) {
      bool in = true;
      for (size_t b = 0; b < row_bounds_.size(); ++b) {
        const int64_t v = first[b] + rows_[r].bound[b];
        in = in && v >= 0 && v < row_bounds_[b].extent;
      }
      if (!in) continue;
      if (count == 0 && steps_.size() > 1) set_numbers(line, buffers, l);
      p[count] = row_values(x + rows_[r].offset, l, l.values.data() + count * span_);
      number[count++] = static_cast<int32_t>(static_cast<int64_t>(r) * kw_);
    }
    int32_t *from = wants_index_ ? l.from.data() : nullptr, *where = wants_index_ ? l.at.data() : nullptr;
    if (count)
      window_rows().best(p, count, 1, hi_ - lo_, false, l.top.data() + lo_, from ? from + lo_ : nullptr,
                         number);
    else
      std::fill(l.top.begin(), l.top.end(), kNever);
    window_rows().across(l.top.data(), from, s_, dilation_, kw_, n_, l.best.data(), where);
    for (const Result& r : results_) store(r, buffers[r.buffer], at(r.map, line), l);
  }

  void store(const Result& r, void* out, int64_t to, Local& l) const {
    const int64_t step = r.map.stride[last_];
    if (!r.index) {
      float* y = static_cast<float*>(out) + to;
      if (step == 1)
        std::copy_n(l.best.data(), n_, y);
      else
        for (int64_t i = 0; i < n_; ++i) y[i * step] = l.best[static_cast<size_t>(i)];
      return;
    }
    // Where nothing is larger than -inf the window's first place counts, inside or not.
    const int32_t* at = l.at.data();
    const float* best = l.best.data();
    if (r.dtype == DType::UInt8 && step == 1) {
      auto* y = static_cast<uint8_t*>(out) + to;
      for (int64_t i = 0; i < n_; ++i) y[i] = static_cast<uint8_t>(best[i] == kNever ? 0 : at[i]);
      return;
    }
    for (int64_t i = 0; i < n_; ++i)
      write<int64_t>(out, r.dtype, to + i * step, best[i] == kNever ? 0 : at[i]);
  }

  KernelSpec spec_;
  size_t last_ = 0, col_ = 0;
  int value_ = -1, main_ = -1;
  int64_t n_ = 0, kw_ = 0, s_ = 1, dilation_ = 1, span_ = 0, lo_ = 0, hi_ = 0;
  bool wants_index_ = false;
  std::vector<Result> results_;
  std::vector<Bound> bounds_, row_bounds_;
  std::vector<Step> steps_;
  std::vector<Row> rows_;
};

}  // namespace

std::unique_ptr<CpuExecutable> prepare_window_max(const KernelSpec& spec) {
  auto w = std::make_unique<WindowMax>();
  return w->init(spec) ? std::move(w) : nullptr;
}

}  // namespace ingot::cpu
