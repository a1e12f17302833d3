// Elements as C++ types, for library calls that work on any element type; and the lines of an
// operand along one axis.
#pragma once
#include <vector>

#include "backend/cpu/support/half.h"
#include "codegen/kernel_spec.h"

namespace ingot::cpu {

struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

/// The value of an element: floating types as double, the others as int64.
inline double value_of(double x) { return x; }
inline double value_of(float x) { return static_cast<double>(x); }
inline double value_of(Half x) { return static_cast<double>(f32_from_f16(x.bits)); }
inline double value_of(Brain x) { return static_cast<double>(f32_from_bf16(x.bits)); }
template <class T>
requires std::is_integral_v<T> int64_t value_of(T x) { return static_cast<int64_t>(x); }

template <class T, class V>
T element_of(V v) {
  if constexpr (std::is_same_v<T, Half>)
    return {f16_from_f32(static_cast<float>(v))};
  else if constexpr (std::is_same_v<T, Brain>)
    return {bf16_from_f32(static_cast<float>(v))};
  else
    return static_cast<T>(v);
}

/// Calls f with a value of the element's C++ type; bool is uint8_t.
template <class F>
decltype(auto) with_type(DType t, F&& f) {
  switch (t) {
    case DType::Float64:
      return f(double{});
    case DType::Float32:
      return f(float{});
    case DType::Float16:
      return f(Half{});
    case DType::BFloat16:
      return f(Brain{});
    case DType::Int64:
      return f(int64_t{});
    case DType::Int32:
      return f(int32_t{});
    case DType::Int16:
      return f(int16_t{});
    case DType::Int8:
      return f(int8_t{});
    default:
      return f(uint8_t{});
  }
}

/// Every position of the dims other than `axis` (and those not counted in), as offsets into two
/// operands.
class Lines {
 public:
  Lines(const OperandSpec& a, const OperandSpec& b, int axis, int end)
      : a0_(a.offset), b0_(b.offset) {
    for (int d = 0; d < end; ++d) {
      if (d == axis || a.shape[d] == 1) continue;
      dims_.push_back({a.shape[d], a.stride[d], b.stride[d]});
      count_ *= a.shape[d];
    }
  }
  int64_t count() const { return count_; }
  void place(int64_t line, int64_t& a, int64_t& b) const {
    a = a0_;
    b = b0_;
    for (size_t d = dims_.size(); d-- > 0;) {
      const int64_t at = line % dims_[d].size;
      line /= dims_[d].size;
      a += at * dims_[d].a;
      b += at * dims_[d].b;
    }
  }

 private:
  struct Dim {
    int64_t size, a, b;
  };
  std::vector<Dim> dims_;
  int64_t a0_, b0_, count_ = 1;
};

}  // namespace ingot::cpu
