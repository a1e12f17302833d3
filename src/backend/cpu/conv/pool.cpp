// Reductions over small windows of float32 (pooling): the result's innermost axis is the vector,
// and every window element is one pass over it. Anything else is left to the general kernels.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "backend/cpu/conv/pool_simd.h"
#include "backend/cpu/library.h"
#include "backend/cpu/support/element.h"
#include "backend/cpu/support/threads.h"

namespace ingot::cpu {

namespace {

constexpr int kMaxPlaces = 32, kMaxBounds = 4;

class WindowReduce final : public CpuExecutable {
 public:
  /// False when the kernel is of another form.
  bool init(const KernelSpec& k) {
    if (k.n_inner() < 1 || k.n_outer < 1 || k.inner_size() > kMaxPlaces ||
        k.extent[static_cast<size_t>(k.n_outer) - 1] < 4)
      return false;
    last_ = k.n_outer - 1;
    if (!find_load(k)) return false;
    for (const Store& s : k.stores)
      if (!add_result(k, s)) return false;
    for (const Result& r : results_)  // one pass makes them all
      if (r.op == Op::Sum ? results_.size() > 1 : r.relu != results_[0].relu) return false;
    extent_.assign(k.extent.begin(), k.extent.begin() + k.n_outer);
    // A window that does not move along the vector axis is a plain reduction of rows or columns.
    if (load_.map.stride[static_cast<size_t>(last_)] == 0) return false;
    list_window_positions(k);
    lines_ = 1;
    for (int a = 0; a < last_; ++a) lines_ *= extent_[static_cast<size_t>(a)];
    n_ = extent_[static_cast<size_t>(last_)];
    return true;
  }

  void run(void* const* buffers, void*, const RunArgs&) override {
    const auto work = n_ * static_cast<int64_t>(places_.size());
    parallel_for(lines_, std::max<int64_t>(1, (32 << 10) / work), [&](int64_t b, int64_t e) {
      std::vector<float> acc(static_cast<size_t>(n_));
      std::vector<int32_t> at(static_cast<size_t>(n_));
      for (int64_t line = b; line < e; ++line) reduce(line, buffers, acc.data(), at.data());
    });
  }

 private:
  struct Result {
    Op op;
    int32_t buffer;
    DType dtype;
    Affine map;
    float scale;
    bool relu = false;  // of each element; no bounds then
  };
  struct Place {  // of the window: from the window's first element, and from each bound's first
                  // value
    int64_t offset;
    std::vector<int64_t> bound;
    int64_t lo = 0, hi = 0;  // of the vector axis, by the bounds that are the same for every line
  };

  bool find_load(const KernelSpec& k) {
    int loads = 0;
    for (const Instr& i : k.instrs)
      if (i.kind == InstrKind::Load) load_ = i, ++loads;
    if (loads != 1 || load_.dtype != DType::Float32 || load_.indirect >= 0 ||
        load_.level != Level::Elem || load_.bounds.size() > kMaxBounds)
      return false;
    for (const Bound& b : load_.bounds)
      if (b.at.stride[static_cast<size_t>(last_)] < 0) return false;
    return true;
  }

  // A store of a reduction of the load; of its position, converted; or of a sum times a constant.
  bool add_result(const KernelSpec& k, const Store& s) {
    if (s.predicated) return false;
    Result r{Op::Max, s.buffer, k.buffers[static_cast<size_t>(s.buffer)].dtype, s.map, 1};
    const Instr* v = &k.instrs[static_cast<size_t>(s.value)];
    if (v->kind == InstrKind::Compute && v->op == Op::Cast) {
      v = &k.instrs[static_cast<size_t>(v->arg[0])];
      if (v->op != Op::ArgMax) return false;
    } else if (v->kind == InstrKind::Compute && v->op == Op::Mul) {
      const Instr *a = &k.instrs[static_cast<size_t>(v->arg[0])],
                  *b = &k.instrs[static_cast<size_t>(v->arg[1])];
      if (a->kind == InstrKind::Const) std::swap(a, b);
      if (b->kind != InstrKind::Const || a->op != Op::Sum) return false;
      r.scale = static_cast<float>(b->fvalue);
      v = a;
    }
    if (v->kind != InstrKind::Reduce) return false;
    r.op = v->op;
    const Instr* from = &k.instrs[static_cast<size_t>(v->arg[0])];
    if (from->kind == InstrKind::Compute && from->op == Op::Relu && load_.bounds.empty() &&
        r.op != Op::Sum) {
      r.relu = true;
      from = &k.instrs[static_cast<size_t>(from->arg[0])];
    }
    if (from->kind != InstrKind::Load) return false;
    const double fill = load_.bounds.empty() ? 0 : load_.fvalue;
    if (r.op == Op::Sum) {
      if (!load_.bounds.empty() && fill != 0) return false;
    } else if (r.op == Op::Max || r.op == Op::ArgMax) {
      if (!load_.bounds.empty() && !(std::isinf(fill) && fill < 0)) return false;
    } else {
      return false;
    }
    if (r.op != Op::ArgMax && r.dtype != DType::Float32) return false;
    wants_index_ = wants_index_ || r.op == Op::ArgMax;
    results_.push_back(r);
    return true;
  }

  void list_window_positions(const KernelSpec& k) {
    const int64_t count = k.inner_size();
    for (int64_t p = 0; p < count; ++p) {
      Place place{0, std::vector<int64_t>(load_.bounds.size(), 0)};
      int64_t rest = p;
      for (int a = k.n_axes() - 1; a >= k.n_outer; --a) {
        const auto i = static_cast<size_t>(a);
        const int64_t at = rest % k.extent[i];
        rest /= k.extent[i];
        place.offset += at * load_.map.stride[i];
        for (size_t b = 0; b < place.bound.size(); ++b)
          place.bound[b] += at * load_.bounds[b].at.stride[i];
      }
      place.hi = k.extent[static_cast<size_t>(last_)];
      for (size_t b = 0; b < load_.bounds.size(); ++b)
        if (!varies(load_.bounds[b]))
          inside(load_.bounds[b], load_.bounds[b].at.offset + place.bound[b], place.lo, place.hi);
      places_.push_back(std::move(place));
    }
    for (size_t b = 0; b < load_.bounds.size(); ++b)
      if (varies(load_.bounds[b])) varying_.push_back(b);
  }

  bool varies(const Bound& b) const {
    for (int a = 0; a < last_; ++a)
      if (b.at.stride[static_cast<size_t>(a)]) return true;
    return false;
  }

  int64_t at(const Affine& m, int64_t line) const {
    int64_t p = m.offset;
    for (int a = last_ - 1; a >= 0; --a) {
      const auto i = static_cast<size_t>(a);
      p += line % extent_[i] * m.stride[i];
      line /= extent_[i];
    }
    return p;
  }

  void reduce(int64_t line, void* const* buffers, float* acc, int32_t* index) const {
    const auto last = static_cast<size_t>(last_);
    const int64_t step = load_.map.stride[last];
    const float* x = static_cast<const float*>(buffers[load_.buffer]) + at(load_.map, line);
    int64_t first[kMaxBounds] = {};
    for (size_t b : varying_) first[b] = at(load_.bounds[b].at, line);
    const float* p[kMaxPlaces];
    int32_t number[kMaxPlaces];
    int64_t lo[kMaxPlaces], hi[kMaxPlaces], from = 0, to = n_;
    int count = 0;
    for (size_t k = 0; k < places_.size(); ++k) {
      int64_t l = places_[k].lo, h = places_[k].hi;
      for (size_t b : varying_) inside(load_.bounds[b], first[b] + places_[k].bound[b], l, h);
      if (l >= h) continue;
      p[count] = x + places_[k].offset;
      number[count] = static_cast<int32_t>(k);
      lo[count] = l;
      hi[count++] = h;
      from = std::max(from, l);
      to = std::min(to, h);
    }
    if (count == 0 || from >= to) from = to = 0;
    const bool sum = results_[0].op == Op::Sum, relu = results_[0].relu;
    int32_t* where = wants_index_ ? index : nullptr;
    if (to > from) {
      for (int k = 0; k < count; ++k) p[k] += from * step;
      if (sum)
        pool_simd().sum(p, count, step, to - from, acc + from);
      else
        pool_simd().best(p, count, step, to - from, relu, acc + from,
                         where ? where + from : nullptr, number);
      for (int k = 0; k < count; ++k) p[k] -= from * step;
    }
    for (int64_t i = 0; i < n_; ++i) {  // the edges, where some window elements are outside
      if (i == from && to > from) i = to;
      if (i >= n_) break;
      const float* q[kMaxPlaces];
      int32_t numbers[kMaxPlaces];
      int some = 0;
      for (int k = 0; k < count; ++k)
        if (i >= lo[k] && i < hi[k]) q[some] = p[k] + i * step, numbers[some++] = number[k];
      acc[i] = sum ? 0.0f : -std::numeric_limits<float>::infinity();
      index[i] = 0;
      if (some && sum)
        pool_simd().sum(q, some, step, 1, acc + i);
      else if (some)
        pool_simd().best(q, some, step, 1, relu, acc + i, where ? where + i : nullptr, numbers);
      // An outside element comes first in the order, so an element that is no larger does not
      // count.
      if (some && where && acc[i] == -std::numeric_limits<float>::infinity()) index[i] = 0;
    }
    for (const Result& r : results_) store(r, buffers[r.buffer], at(r.map, line), acc, index);
  }
  void store(const Result& r, void* out, int64_t to, const float* acc, const int32_t* index) const {
    const int64_t step = r.map.stride[static_cast<size_t>(last_)];
    if (r.op == Op::ArgMax) return store_index(out, r.dtype, to, step, index);
    float* y = static_cast<float*>(out) + to;
    if (step == 1 && r.scale == 1)
      std::copy_n(acc, n_, y);
    else
      for (int64_t i = 0; i < n_; ++i) y[i * step] = acc[i] * r.scale;
  }
  void store_index(void* out, DType t, int64_t to, int64_t step, const int32_t* index) const {
    if (t == DType::UInt8 && step == 1) {
      for (int64_t i = 0; i < n_; ++i)
        static_cast<uint8_t*>(out)[to + i] = static_cast<uint8_t>(index[i]);
      return;
    }
    for (int64_t i = 0; i < n_; ++i) write<int64_t>(out, t, to + i * step, index[i]);
  }
  /// Narrows [lo, hi) to where 0 <= v + i * step < extent.
  void inside(const Bound& b, int64_t v, int64_t& lo, int64_t& hi) const {
    const int64_t step = b.at.stride[static_cast<size_t>(last_)];
    if (step == 0) {
      if (v < 0 || v >= b.extent) hi = lo;
      return;
    }
    if (v < 0) lo = std::max(lo, (-v + step - 1) / step);
    hi = std::min(hi, v >= b.extent ? 0 : (b.extent - 1 - v) / step + 1);
  }

  Instr load_;
  std::vector<Result> results_;
  std::vector<Place> places_;
  std::vector<int64_t> extent_;
  std::vector<size_t> varying_;
  bool wants_index_ = false;
  int last_ = 0;
  int64_t lines_ = 0, n_ = 0;
};

}  // namespace

std::unique_ptr<CpuExecutable> prepare_pool(std::span<const KernelSpec> parts) {
  if (parts.size() != 1 || !parts[0].has_reduce() || parts[0].is_row()) return nullptr;
  if (auto largest = prepare_max_pool(parts[0])) return largest;
  auto w = std::make_unique<WindowReduce>();
  return w->init(parts[0]) ? std::move(w) : nullptr;
}

}  // namespace ingot::cpu
