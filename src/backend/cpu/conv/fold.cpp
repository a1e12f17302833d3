// Fold: windows added up where they overlap. Each plane (one point of the leading dims) belongs to
// one thread and is summed in the order of its windows.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "backend/cpu/conv/pool_simd.h"
#include "backend/cpu/library.h"
#include "backend/cpu/support/element.h"
#include "backend/cpu/support/move.h"
#include "backend/cpu/support/threads.h"

namespace ingot::cpu {

namespace {

template <class A>
class Fold final : public CpuExecutable {
 public:
  explicit Fold(const LibrarySpec& s)
      : spec_(s),
        n_(s.attrs.as<FoldAttrs>().window.size()),
        lead_(s.operands[0].shape.size() - n_) {
    for (int d = 0; d < lead_; ++d) planes_ *= s.operands[0].shape[d];
    const FoldAttrs& a = s.attrs.as<FoldAttrs>();
    for (int d = 0; d < 3; ++d) {
      const int from = d - (3 - n_);
      const bool there = from >= 0;
      const OperandSpec &out = s.operands[0], &v = s.operands[1];
      size_[d] = there ? out.shape[lead_ + from] : 1;
      O_[d] = there ? v.shape[lead_ + from] : 1;
      K_[d] = there ? a.window[from] : 1;
      stride_[d] = there ? a.stride[from] : 1;
      dilation_[d] = there ? a.dilation[from] : 1;
      front_[d] = there ? a.front[from] : 0;
      // Sums are kept of everything the windows reach.
      L_[d] =
          std::max(front_[d] + size_[d], (O_[d] - 1) * stride_[d] + (K_[d] - 1) * dilation_[d] + 1);
      out_[d] = there ? out.stride[lead_ + from] : 0;
      value_[d] = there ? v.stride[lead_ + from] : 0;
      window_[d] = there && !picks() ? v.stride[lead_ + n_ + from] : 0;
      place_[d] = there && picks() ? s.operands[2].stride[lead_ + from] : 0;
    }
  }

  void run(void* const* buffers, void*, const RunArgs&) override {
    if (by_rows()) {
      parallel_for(planes_,
                   std::max<int64_t>(1, (16 << 10) / std::max<int64_t>(1, size_[1] * size_[2])),
                   [&](int64_t b, int64_t e) {
                     Rows rows(*this);
                     for (int64_t p = b; p < e; ++p) add_rows(buffers, p, rows);
                     if (streams()) finish_stream();
                   });
      return;
    }
    const int64_t size = L_[0] * L_[1] * L_[2];
    parallel_for(planes_, std::max<int64_t>(1, (8 << 10) / std::max<int64_t>(1, size)),
                 [&](int64_t b, int64_t e) {
                   std::vector<A> sum(static_cast<size_t>(size));
                   for (int64_t p = b; p < e; ++p) {
                     std::fill(sum.begin(), sum.end(), A(0));
                     if (picks())
                       add_picked(buffers, p, sum.data());
                     else
                       add_windows(buffers, p, sum.data());
                     store(buffers, p, sum.data());
                   }
                 });
  }

 private:
  static constexpr DType compute_type() {
    return std::is_same_v<A, double>  ? DType::Float64
           : std::is_same_v<A, float> ? DType::Float32
                                      : DType::Int64;
  }
  bool picks() const { return spec_.operands.size() == 3; }
  int64_t begin_of(int operand, int64_t plane) const {
    const OperandSpec& o = spec_.operands[static_cast<size_t>(operand)];
    int64_t at = o.offset;
    for (int d = lead_ - 1; d >= 0; --d) {
      at += plane % o.shape[d] * o.stride[d];
      plane /= o.shape[d];
    }
    return at;
  }
  /// Max pooling of float32 in dense rows.
  bool by_rows() const {
    return std::is_same_v<A, float> && picks() && spec_.operands[0].dtype == DType::Float32 &&
           spec_.operands[2].dtype == DType::UInt8 && size_[0] == 1 && O_[0] == 1 && K_[0] == 1 &&
           front_[0] == 0 && dilation_[2] == 1 && (stride_[2] == 1 || stride_[2] == 2) &&
           K_[1] * K_[2] <= 256 && out_[2] == 1 && (value_[2] == 1 || O_[2] == 1) &&
           (place_[2] == 1 || O_[2] == 1);
  }
  /// Bypasses the caches when the result would not stay in them.
  bool streams() const { return planes_ * size_[1] * size_[2] >= (8 << 20); }
  /// Rows of windows with zeros around them, each kept where the next rows of the result find it.
  struct Rows {
    explicit Rows(const Fold& f)
        : front(lines(f.K_[2])),
          pitch(front + lines(f.L_[2] + kPickBehind)),
          count((f.K_[1] - 1) * f.dilation_[1] / f.stride_[1] + 3),
          memory(static_cast<size_t>(2 * pitch * count + 16), 0.0f) {
      void* begin = memory.data();
      size_t room = memory.size() * sizeof(float);
      value = static_cast<float*>(std::align(64, 64, begin, room));
      at = reinterpret_cast<int32_t*>(value + pitch * count);
    }
    Rows(const Rows&) = delete;
    Rows& operator=(const Rows&) = delete;
    static int64_t lines(int64_t n) { return (n + 15) / 16 * 16; }
    int64_t front, pitch, count;  // before a row; from row to row; rows
    std::vector<float> memory;
    float* value;  // rows begin cache lines
    int32_t* at;
  };
  /// Row by row of the result: the rows of windows that reach it, in order.
  void add_rows(void* const* buffers, int64_t plane, Rows& rows) const {
    const auto* v = static_cast<const float*>(buffers[1]) + begin_of(1, plane);
    const auto* at = static_cast<const uint8_t*>(buffers[2]) + begin_of(2, plane);
    auto* out = static_cast<float*>(buffers[0]) + begin_of(0, plane);
    const bool stream = streams();
    int64_t there = 0;  // the rows of windows before this one were copied
    std::vector<const float*> values(static_cast<size_t>(rows.count));
    std::vector<const int32_t*> places(static_cast<size_t>(rows.count));
    std::vector<int32_t> number(static_cast<size_t>(rows.count));
    for (int64_t y = 0; y < size_[1]; ++y) {
      const int64_t row = y + front_[1], reach = (K_[1] - 1) * dilation_[1];
      const int64_t from = row > reach ? (row - reach + stride_[1] - 1) / stride_[1] : 0;
      size_t count = 0;
      for (int64_t w = from; w < O_[1] && w * stride_[1] <= row; ++w) {
        const int64_t i = row - w * stride_[1], begin = w % rows.count * rows.pitch + rows.front;
        if (i % dilation_[1]) continue;
        // One row ahead, so that what is stored here has arrived when it is read.
        for (; there < std::min(w + 2, O_[1]); ++there) {
          const int64_t to = there % rows.count * rows.pitch + rows.front;
          std::copy_n(v + there * value_[1], O_[2], rows.value + to);
          pool_simd().widen(at + there * place_[1], O_[2], rows.at + to);
        }
        values[count] = rows.value + begin;
        places[count] = rows.at + begin;
        number[count++] = static_cast<int32_t>(i / dilation_[1] * K_[2]);
      }
      const WindowPicks picks{values.data(),           places.data(), number.data(),
                              static_cast<int>(count), K_[2],         stride_[2]};
      pool_simd().pick(picks, front_[2], size_[2], stream, out + y * out_[1]);
    }
  }
  template <class Fn>
  void each_window(Fn fn) const {
    for (int64_t a = 0; a < O_[0]; ++a)
      for (int64_t b = 0; b < O_[1]; ++b)
        for (int64_t c = 0; c < O_[2]; ++c)
          fn(a, b, c, ((a * stride_[0]) * L_[1] + b * stride_[1]) * L_[2] + c * stride_[2]);
  }

  void add_windows(void* const* buffers, int64_t plane, A* sum) const {
    const int64_t base = begin_of(1, plane);
    const DType t = spec_.operands[1].dtype;
    each_window([&](int64_t a, int64_t b, int64_t c, int64_t to) {
      const int64_t from = base + a * value_[0] + b * value_[1] + c * value_[2];
      for (int64_t i = 0; i < K_[0]; ++i)
        for (int64_t j = 0; j < K_[1]; ++j)
          for (int64_t k = 0; k < K_[2]; ++k)
            sum[to + (i * dilation_[0] * L_[1] + j * dilation_[1]) * L_[2] + k * dilation_[2]] +=
                read<A>(buffers[1], t, from + i * window_[0] + j * window_[1] + k * window_[2]);
    });
  }
  void add_picked(void* const* buffers, int64_t plane, A* sum) const {
    const int64_t base = begin_of(1, plane), place = begin_of(2, plane);
    const DType t = spec_.operands[1].dtype, pt = spec_.operands[2].dtype;
    std::vector<int64_t> step;  // from a window's first element to each of its others
    for (int64_t i = 0; i < K_[0]; ++i)
      for (int64_t j = 0; j < K_[1]; ++j)
        for (int64_t k = 0; k < K_[2]; ++k)
          step.push_back((i * dilation_[0] * L_[1] + j * dilation_[1]) * L_[2] + k * dilation_[2]);
    if constexpr (std::is_same_v<A, float>)
      if (t == DType::Float32 && pt == DType::UInt8) {  // max pooling of float32
        const auto* v = static_cast<const float*>(buffers[1]);
        const auto* at = static_cast<const uint8_t*>(buffers[2]);
        each_window([&](int64_t a, int64_t b, int64_t c, int64_t to) {
          const uint8_t k = at[place + a * place_[0] + b * place_[1] + c * place_[2]];
          if (k < step.size())
            sum[to + step[k]] += v[base + a * value_[0] + b * value_[1] + c * value_[2]];
        });
        return;
      }
    each_window([&](int64_t a, int64_t b, int64_t c, int64_t to) {
      const auto k = static_cast<size_t>(
          read<int64_t>(buffers[2], pt, place + a * place_[0] + b * place_[1] + c * place_[2]));
      if (k < step.size())
        sum[to + step[k]] +=
            read<A>(buffers[1], t, base + a * value_[0] + b * value_[1] + c * value_[2]);
    });
  }
  void store(void* const* buffers, int64_t plane, const A* sum) const {
    const int64_t base = begin_of(0, plane);
    const DType t = spec_.operands[0].dtype;
    for (int64_t a = 0; a < size_[0]; ++a)
      for (int64_t b = 0; b < size_[1]; ++b) {
        const A* row = sum + ((a + front_[0]) * L_[1] + b + front_[1]) * L_[2] + front_[2];
        const int64_t to = base + a * out_[0] + b * out_[1];
        if (t == compute_type() && out_[2] == 1)
          std::copy_n(row, size_[2], static_cast<A*>(buffers[0]) + to);
        else
          for (int64_t c = 0; c < size_[2]; ++c) write<A>(buffers[0], t, to + c * out_[2], row[c]);
      }
  }

  LibrarySpec spec_;
  int n_, lead_;
  int64_t planes_ = 1;
  int64_t size_[3], front_[3], L_[3], O_[3], K_[3], stride_[3], dilation_[3], out_[3], value_[3],
      window_[3], place_[3];
};

}  // namespace

std::unique_ptr<CpuExecutable> prepare_fold(const LibrarySpec& spec, const char*&) {
  switch (spec.operands[0].dtype) {
    case DType::Float64:
      return std::make_unique<Fold<double>>(spec);
    case DType::Float32:
    case DType::Float16:
    case DType::BFloat16:
      return std::make_unique<Fold<float>>(spec);
    default:
      return std::make_unique<Fold<int64_t>>(spec);
  }
}

}  // namespace ingot::cpu
