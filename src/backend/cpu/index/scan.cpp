// Running sums, products, log-sums and extremes along an axis. Floating types accumulate in double.
// Many lines are distributed over the threads; few long ones are cut into blocks of a fixed size,
// whose totals are computed first, so the bits do not depend on the number of threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "backend/cpu/library.h"
#include "backend/cpu/support/threads.h"
#include "backend/cpu/support/typed.h"

namespace ingot::cpu {
namespace {

constexpr int64_t kColumns = 256, kBlock = 32 << 10, kWork = 16 << 10;

template <ScanKind K, class V>
struct Running;

template <class V>
struct Running<ScanKind::Sum, V> {
  V total = 0;
  V take(V x) { return total += x; }
};
template <class V>
struct Running<ScanKind::Prod, V> {
  V total = 1;
  V take(V x) { return total *= x; }
};
template <>
struct Running<ScanKind::LogSum, double> {
  double total = -std::numeric_limits<double>::infinity();
  double take(double x) {
    if (std::isnan(x) || std::isnan(total)) return total = std::numeric_limits<double>::quiet_NaN();
    const double lo = std::min(x, total), hi = std::max(x, total);
    if (std::isinf(hi)) return total = hi;
    return total = hi + std::log1p(std::exp(lo - hi));
  }
};
template <bool kMax, class V>
struct RunningPlace {
  V best{};
  int64_t place = -1;
  /// The position of the extreme of the elements so far and x at `at`.
  int64_t take(V x, int64_t at) {
    const bool first = place < 0, wins = kMax ? x >= best : x <= best;
    if (first || x != x || (best == best && wins)) {
      best = x;
      place = at;
    }
    return place;
  }
};
template <class V>
struct Running<ScanKind::ArgMax, V> : RunningPlace<true, V> {};
template <class V>
struct Running<ScanKind::ArgMin, V> : RunningPlace<false, V> {};

template <ScanKind K>
constexpr bool kPlaces = K == ScanKind::ArgMax || K == ScanKind::ArgMin;

class Scan final : public CpuExecutable {
 public:
  explicit Scan(const LibrarySpec& spec)
      : out_(spec.operands[0]),
        in_(spec.operands[1]),
        axis_(spec.attrs.as<ScanAttrs>().axis),
        kind_(spec.attrs.as<ScanAttrs>().kind),
        columns_(in_columns() ? out_.shape.back() : 1),
        lines_(out_, in_, axis_, out_.shape.size() - (columns_ > 1)),
        length_(out_.shape[axis_]) {
    const int64_t blocks = (length_ + kBlock - 1) / kBlock;
    if (columns_ == 1 && lines_.count() < 8 && blocks > 3 &&
        (kind_ == ScanKind::Sum || kind_ == ScanKind::Prod)) {
      blocks_ = blocks;
      scratch_bytes = static_cast<size_t>(blocks * lines_.count()) * 8;
    }
  }

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    with_type(in_.dtype, [&](auto element) {
      using T = decltype(element);
      using V = decltype(value_of(element));
      switch (kind_) {
        case ScanKind::Sum:
          return all<ScanKind::Sum, T, T, V>(buffers, scratch);
        case ScanKind::Prod:
          return all<ScanKind::Prod, T, T, V>(buffers, scratch);
        case ScanKind::ArgMax:
          return all<ScanKind::ArgMax, T, int64_t, V>(buffers, scratch);
        case ScanKind::ArgMin:
          return all<ScanKind::ArgMin, T, int64_t, V>(buffers, scratch);
        case ScanKind::LogSum:
          if constexpr (std::is_same_v<V, double>)
            return all<ScanKind::LogSum, T, T, V>(buffers, scratch);
      }
    });
  }

 private:
  // Along a dim that is not the last one, rows of the last dim are processed together.
  bool in_columns() const {
    const int last = out_.shape.size() - 1;
    return axis_ != last && out_.shape[last] >= 8 && out_.stride[last] == 1 &&
           in_.stride[last] == 1;
  }

  template <ScanKind K, class T, class O, class V>
  void all(void* const* buffers, void* scratch) const {
    O* out = static_cast<O*>(buffers[0]);
    const T* in = static_cast<const T*>(buffers[1]);
    if constexpr (K == ScanKind::Sum || K == ScanKind::Prod)
      if (blocks_) return in_blocks<K, T, O, V>(out, in, static_cast<V*>(scratch));
    const int64_t panels = (columns_ + kColumns - 1) / kColumns, tasks = lines_.count() * panels;
    const int64_t work = length_ * std::min(columns_, kColumns);
    parallel_for(tasks, std::max<int64_t>(1, kWork / std::max<int64_t>(1, work)),
                 [&](int64_t b, int64_t e) {
                   for (int64_t t = b; t < e; ++t) {
                     int64_t o, i;
                     lines_.place(t / panels, o, i);
                     const int64_t c = t % panels * kColumns;
                     if (columns_ == 1) {
                       Running<K, V> r;
                       line<K>(out + o, in + i, 0, length_, r);
                     } else {
                       panel<K, T, O, V>(out + o + c, in + i + c, std::min(kColumns, columns_ - c));
                     }
                   }
                 });
  }

  template <ScanKind K, class T, class O, class V>
  void line(O* out, const T* in, int64_t from, int64_t to, Running<K, V>& r) const {
    const int64_t so = out_.stride[axis_], si = in_.stride[axis_];
    int64_t k = from;
    if constexpr (K == ScanKind::Sum && std::is_same_v<V, double>) {
      // Four at a time, to hide the latency of the additions.
      for (; k + 4 <= to; k += 4) {
        const V x0 = value_of(in[k * si]), x1 = value_of(in[(k + 1) * si]),
                x2 = value_of(in[(k + 2) * si]), x3 = value_of(in[(k + 3) * si]);
        const V p1 = x0 + x1, p2 = p1 + x2, p3 = p1 + (x2 + x3);
        out[k * so] = element_of<O>(r.total + x0);
        out[(k + 1) * so] = element_of<O>(r.total + p1);
        out[(k + 2) * so] = element_of<O>(r.total + p2);
        out[(k + 3) * so] = element_of<O>(r.total += p3);
      }
    }
    for (; k < to; ++k) {
      if constexpr (kPlaces<K>)
        out[k * so] = r.take(value_of(in[k * si]), k);
      else
        out[k * so] = element_of<O>(r.take(value_of(in[k * si])));
    }
  }

  template <ScanKind K, class T, class O, class V>
  void panel(O* out, const T* in, int64_t n) const {
    Running<K, V> r[kColumns];
    for (int64_t k = 0; k < length_; ++k) {
      O* to = out + k * out_.stride[axis_];
      const T* from = in + k * in_.stride[axis_];
      for (int64_t j = 0; j < n; ++j) {
        if constexpr (kPlaces<K>)
          to[j] = r[j].take(value_of(from[j]), k);
        else
          to[j] = element_of<O>(r[j].take(value_of(from[j])));
      }
    }
  }

  template <ScanKind K, class T, class O, class V>
  void in_blocks(O* out, const T* in, V* totals) const {
    auto each_block = [&](auto f) {
      parallel_for(lines_.count() * blocks_, 1, [&](int64_t b, int64_t e) {
        for (int64_t t = b; t < e; ++t) {
          int64_t o, i;
          lines_.place(t / blocks_, o, i);
          const int64_t from = t % blocks_ * kBlock;
          f(t, out + o, in + i, from, std::min(length_, from + kBlock));
        }
      });
    };
    each_block([&](int64_t t, O*, const T* line, int64_t from, int64_t to) {
      Running<K, V> r[4];
      const int64_t s = in_.stride[axis_];
      int64_t k = from;
      for (; k + 4 <= to; k += 4)
        for (int64_t j = 0; j < 4; ++j) r[j].take(value_of(line[(k + j) * s]));
      for (; k < to; ++k) r[0].take(value_of(line[k * s]));
      r[0].take(r[1].total);
      r[2].take(r[3].total);
      totals[t] = r[0].take(r[2].total);
    });
    for (int64_t l = 0; l < lines_.count(); ++l) {
      Running<K, V> before;
      for (int64_t b = 0; b < blocks_; ++b) {
        V& t = totals[l * blocks_ + b];
        const V own = t;
        t = before.total;
        before.take(own);
      }
    }
    each_block([&](int64_t t, O* to_line, const T* from_line, int64_t from, int64_t to) {
      Running<K, V> r;
      r.total = totals[t];
      line<K>(to_line, from_line, from, to, r);
    });
  }

  OperandSpec out_, in_;
  int axis_;
  ScanKind kind_;
  int64_t columns_;
  Lines lines_;
  int64_t length_, blocks_ = 0;
};

}  // namespace

std::unique_ptr<CpuExecutable> prepare_scan(const LibrarySpec& spec, const char*&) {
  return std::make_unique<Scan>(spec);
}

}  // namespace ingot::cpu
