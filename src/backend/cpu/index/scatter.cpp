// ScatterAdd, Scatter and Copy. A scatter visits the positions of its index in order; threads own
// disjoint parts of the output (rows along the axis, by index value), so every element is summed in
// the same order whatever the number of threads.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/cpu/library.h"
#include "backend/cpu/support/element.h"
#include "backend/cpu/support/memory.h"
#include "backend/cpu/support/move.h"
#include "backend/cpu/support/threads.h"
#include "backend/cpu/support/typed.h"

namespace ingot::cpu {

namespace {

enum class Combine : uint8_t { Add, Set, Prod, Max, Min };

template <Combine C, class A>
A combined(A old, A v) {
  if constexpr (C == Combine::Add) return static_cast<A>(old + v);
  if constexpr (C == Combine::Prod) return static_cast<A>(old * v);
  if constexpr (C == Combine::Max) return old > v || old != old ? old : v;
  if constexpr (C == Combine::Min) return old < v || old != old ? old : v;
  return v;
}

class Scatter final : public CpuExecutable {
 public:
  explicit Scatter(const LibrarySpec& spec)
      : spec_(spec),
        based_(spec.op == Op::Scatter),
        out_(spec.operands[0]),
        base_(spec.operands[based_ ? 1 : 0]),
        index_(spec.operands[based_ ? 2 : 1]),
        value_(spec.operands[based_ ? 3 : 2]),
        axis_(axis_of(spec)),
        rank_(index_.shape.size()),
        how_(based_ ? static_cast<Combine>(static_cast<int>(spec.attrs.as<ScatterAttrs>().mode) + 1)
                    : Combine::Add) {
    // Trailing axes along which the index does not vary and memory is dense: complete rows are
    // added at once.
    for (int k = rank_ - 1; k > axis_; --k) {
      const bool flat =
          index_.shape[k] == 1 || (index_.stride[k] == 0 && value_.stride[k] == run_ &&
                                   out_.stride[k] == run_ && out_.shape[k] == index_.shape[k]);
      if (!flat) break;
      run_ *= index_.shape[k];
      ++run_axes_;
    }
    half_ = is_half(out_.dtype);
    if (half_) scratch_bytes = static_cast<size_t>(out_.shape.numel()) * 4 + 64;
  }

  void run(void* const* buffers, void* scratch, const RunArgs& args) override {
    if (half_) scratch = line_aligned(scratch);
    const int64_t extent = out_.shape[axis_], total = index_.shape.numel();
    const int64_t pieces =
        total * 2 < (16 << 10) ? 1 : std::min<int64_t>(extent, get_num_threads());
    parallel_for(pieces, 1, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t)
        piece(buffers, scratch, args, extent * t / pieces, extent * (t + 1) / pieces);
    });
  }

 private:
  void piece(void* const* buffers, void* scratch, const RunArgs& args, int64_t lo,
             int64_t hi) const {
    OperandSpec part = rows(out_, lo, hi);  // the rows [lo, hi) of the output
    void* out = buffers[0];
    if (half_) {
      out = scratch;
      OperandSpec wide = rows({DType::Float32, out_.shape, half_stride(), 0}, lo, hi);
      based_ ? widen(scratch, wide, buffers[1], rows(base_, lo, hi)) : zero(scratch, wide);
    } else {
      based_ ? copy(out, part, buffers[1], rows(base_, lo, hi)) : zero(out, part);
    }
    switch (how_) {
      case Combine::Add:
        visit<Combine::Add>(buffers, out, args, lo, hi);
        break;
      case Combine::Set:
        visit<Combine::Set>(buffers, out, args, lo, hi);
        break;
      case Combine::Prod:
        visit<Combine::Prod>(buffers, out, args, lo, hi);
        break;
      case Combine::Max:
        visit<Combine::Max>(buffers, out, args, lo, hi);
        break;
      case Combine::Min:
        visit<Combine::Min>(buffers, out, args, lo, hi);
        break;
    }
    if (half_) finish_half(buffers[0], scratch, part, lo);
  }
  OperandSpec rows(OperandSpec o, int64_t lo, int64_t hi) const {
    o.shape[axis_] = hi - lo;
    o.offset += lo * o.stride[axis_];
    return o;
  }

  static void copy(void* out, const OperandSpec& o, const void* in, const OperandSpec& i) {
    const int es = static_cast<int>(size_of(o.dtype));
    copy_box(static_cast<char*>(out) + o.offset * es, o.stride.begin(),
             static_cast<const char*>(in) + i.offset * es, i.stride.begin(), o.shape.begin(),
             o.shape.size(), es);
  }
  static void zero(void* out, const OperandSpec& o) {
    const int64_t z = 0;
    copy(out, o, &z, {o.dtype, o.shape, Dims::filled(o.shape.size(), 0), 0});
  }
  static void widen(void* out, const OperandSpec& o, const void* in, const OperandSpec& i) {
    each(o.shape, [&](const Dims& at_) {
      static_cast<float*>(out)[o.offset + at(o.stride, at_)] =
          read<float>(in, i.dtype, i.offset + at(i.stride, at_));
    });
  }
  Dims half_stride() const { return row_major(out_.shape); }
  template <class F>
  static void each(const Dims& shape, F f) {
    Dims i = Dims::filled(shape.size(), 0);
    for (;;) {
      f(i);
      int k = shape.size() - 1;
      for (; k >= 0; --k) {
        if (++i[k] < shape[k]) break;
        i[k] = 0;
      }
      if (k < 0) return;
    }
  }
  static int64_t at(const Dims& stride, const Dims& i) {
    int64_t p = 0;
    for (int k = 0; k < i.size(); ++k) p += stride[k] * i[k];
    return p;
  }
  void finish_half(void* out, const void* scratch, const OperandSpec& part, int64_t lo) const {
    const Dims hs = half_stride();
    each(part.shape, [&](const Dims& i) {
      write<float>(out, out_.dtype, part.offset + at(part.stride, i),
                   static_cast<const float*>(scratch)[lo * hs[axis_] + at(hs, i)]);
    });
  }

  int64_t row_of(int64_t v, const RunArgs& args) const {
    const int64_t extent = out_.shape[axis_];
    if (v >= 0 && v < extent) return v;
    int32_t ok = RunStatus::Ok;
    if (args.status && std::atomic_ref<int32_t>(args.status->code)
                           .compare_exchange_strong(ok, RunStatus::IndexError)) {
      args.status->site = spec_.site;
      args.status->value = v;
      args.status->extent = extent;
    }
    return -1;
  }

  template <Combine C>
  void visit(void* const* buffers, void* out, const RunArgs& args, int64_t lo, int64_t hi) const {
    with_type(value_.dtype, [&](auto element) {
      using T = decltype(element);
      using A = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, Brain>, float, T>;
      const auto* value = static_cast<const T*>(buffers[based_ ? 3 : 2]);
      const void* index = buffers[based_ ? 2 : 1];
      if (index_.dtype == DType::Int64)
        visit<C>(static_cast<const int64_t*>(index), value, static_cast<A*>(out), args, lo, hi);
      else
        visit<C>(static_cast<const int32_t*>(index), value, static_cast<A*>(out), args, lo, hi);
    });
  }

  template <Combine C, class I, class T, class A>
  void visit(const I* index, const T* value, A* out, const RunArgs& args, int64_t lo,
             int64_t hi) const {
    Dims outer = index_.shape;
    outer.resize(rank_ - run_axes_);
    const Dims os = half_ ? half_stride() : out_.stride;
    // The last of the outer dims in a separate loop.
    const int last = outer.size() - 1;
    const int64_t n = last < 0 ? 1 : outer[last], is = last < 0 ? 0 : index_.stride[last],
                  vs = last < 0 ? 0 : value_.stride[last];
    const int64_t step = last < 0 || last == axis_ ? 0 : os[last], across = os[axis_];
    outer.resize(std::max(last, 0));
    each(outer, [&](const Dims& i) {
      A* o = out + (half_ ? 0 : out_.offset);
      for (int k = 0; k < i.size(); ++k)
        if (k != axis_) o += i[k] * os[k];
      const I* ix = index + index_.offset + at(index_.stride, i);
      const T* v = value + value_.offset + at(value_.stride, i);
      for (int64_t j = 0; j < n; ++j) {
        const int64_t w = row_of(static_cast<int64_t>(ix[j * is]), args);
        if (w < lo || w >= hi) continue;
        A* d = o + j * step + w * across;
        for (int64_t r = 0; r < run_; ++r)
          d[r] = combined<C, A>(d[r], static_cast<A>(value_of(v[j * vs + r])));
      }
    });
  }

  LibrarySpec spec_;
  bool based_;
  OperandSpec out_, base_, index_, value_;
  int axis_, rank_, run_axes_ = 0;
  int64_t run_ = 1;
  Combine how_;
  bool half_ = false;
};

class Copy final : public CpuExecutable {
 public:
  explicit Copy(const LibrarySpec& spec) : spec_(spec) {}
  void run(void* const* buffers, void*, const RunArgs&) override {
    const OperandSpec &o = spec_.operands[0], &i = spec_.operands[1];
    const int es = static_cast<int>(size_of(o.dtype));
    char* dst = static_cast<char*>(buffers[0]) + o.offset * es;
    const char* src = static_cast<const char*>(buffers[1]) + i.offset * es;
    if (o.shape.empty()) {
      std::memcpy(dst, src, static_cast<size_t>(es));
      return;
    }
    const int64_t rows = o.shape[0],
                  per_row = std::max<int64_t>(1, o.shape.numel() / std::max<int64_t>(1, rows));
    parallel_for(rows, std::max<int64_t>(1, (128 << 10) / per_row), [&](int64_t b, int64_t e) {
      Dims shape = o.shape;
      shape[0] = e - b;
      copy_box(dst + b * o.stride[0] * es, o.stride.begin(), src + b * i.stride[0] * es,
               i.stride.begin(), shape.begin(), shape.size(), es);
    });
  }

 private:
  LibrarySpec spec_;
};

}  // namespace

std::unique_ptr<CpuExecutable> prepare_scatter(const LibrarySpec& spec, const char*&) {
  return std::make_unique<Scatter>(spec);
}
std::unique_ptr<CpuExecutable> prepare_copy(const LibrarySpec& spec, const char*&) {
  return std::make_unique<Copy>(spec);
}

}  // namespace ingot::cpu
