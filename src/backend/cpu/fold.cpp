// Fold: windows added up where they overlap. Each plane (one point of the leading dims) belongs to one thread
// and is summed in the order of its windows.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "backend/cpu/element.h"
#include "backend/cpu/library.h"
#include "backend/cpu/threads.h"

namespace ingot::cpu {

namespace {

template <class A>
class Fold final : public CpuExecutable {
 public:
  explicit Fold(const LibrarySpec& s) : spec_(s), n_(s.d1.size()), lead_(s.operands[0].shape.size() - n_) {
    for (int d = 0; d < lead_; ++d) planes_ *= s.operands[0].shape[d];
    for (int d = 0; d < 3; ++d) {
      const int from = d - (3 - n_);
      const bool there = from >= 0;
      const OperandSpec &out = s.operands[0], &v = s.operands[1];
      L_[d] = there ? out.shape[lead_ + from] : 1;
      O_[d] = there ? v.shape[lead_ + from] : 1;
      K_[d] = there ? s.d1[from] : 1;
      stride_[d] = there ? s.d0[from] : 1;
      dilation_[d] = there ? s.d0[n_ + from] : 1;
      out_[d] = there ? out.stride[lead_ + from] : 0;
      value_[d] = there ? v.stride[lead_ + from] : 0;
      window_[d] = there && !picks() ? v.stride[lead_ + n_ + from] : 0;
      place_[d] = there && picks() ? s.operands[2].stride[lead_ + from] : 0;
    }
  }

  void run(void* const* buffers, void*, const RunArgs&) override {
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
          if (k < step.size()) sum[to + step[k]] += v[base + a * value_[0] + b * value_[1] + c * value_[2]];
        });
        return;
      }
    each_window([&](int64_t a, int64_t b, int64_t c, int64_t to) {
      const auto k = static_cast<size_t>(
          read<int64_t>(buffers[2], pt, place + a * place_[0] + b * place_[1] + c * place_[2]));
      if (k < step.size())
        sum[to + step[k]] += read<A>(buffers[1], t, base + a * value_[0] + b * value_[1] + c * value_[2]);
    });
  }
  void store(void* const* buffers, int64_t plane, const A* sum) const {
    const int64_t base = begin_of(0, plane);
    const DType t = spec_.operands[0].dtype;
    for (int64_t a = 0; a < L_[0]; ++a)
      for (int64_t b = 0; b < L_[1]; ++b)
        if (t == compute_type() && out_[2] == 1)
          std::copy_n(sum + (a * L_[1] + b) * L_[2], L_[2],
                      static_cast<A*>(buffers[0]) + base + a * out_[0] + b * out_[1]);
        else
          for (int64_t c = 0; c < L_[2]; ++c)
            write<A>(buffers[0], t, base + a * out_[0] + b * out_[1] + c * out_[2],
                     sum[(a * L_[1] + b) * L_[2] + c]);
  }

  LibrarySpec spec_;
  int n_, lead_;
  int64_t planes_ = 1;
  int64_t L_[3], O_[3], K_[3], stride_[3], dilation_[3], out_[3], value_[3], window_[3], place_[3];
};

}  // namespace

std::unique_ptr<CpuExecutable> prepare_fold(const LibrarySpec& spec) {
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
