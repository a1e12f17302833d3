// What the makers of random library calls share: operands with any strides, and their elements.
#pragma once
#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "codegen/kernel_spec.h"
#include "support/spec_interpreter.h"

namespace ingot::test {

inline int64_t pick(std::mt19937& gen, int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(gen() % static_cast<uint64_t>(hi - lo + 1));
}

/// Strides of a tensor whose axes are in this order in memory, the last fastest, with gaps.
inline Dims strides_in_order(const Dims& shape, const std::vector<int>& order, std::mt19937& gen) {
  Dims s = Dims::filled(shape.size(), 0);
  int64_t step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    s[order[k]] = step;
    step = step * shape[order[k]] + (gen() % 4 == 0 ? pick(gen, 1, 5) : 0);
  }
  return s;
}

inline OperandSpec operand(DType t, const Dims& shape, std::mt19937& gen, bool shuffle) {
  OperandSpec o;
  o.dtype = t;
  o.shape = shape;
  std::vector<int> order(static_cast<size_t>(shape.size()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  if (shuffle) std::shuffle(order.begin(), order.end(), gen);
  o.stride = strides_in_order(shape, order, gen);
  o.offset = gen() % 3 == 0 ? pick(gen, 0, 9) : 0;
  return o;
}

inline int64_t span(const OperandSpec& o) {
  int64_t last = o.offset;
  for (int d = 0; d < o.shape.size(); ++d) last += (o.shape[d] - 1) * o.stride[d];
  return last + 1;
}

inline void for_each(const Dims& shape, const std::function<void(const Dims&)>& f) {
  Dims at = Dims::filled(shape.size(), 0);
  for (int64_t n = shape.numel(); n > 0; --n) {
    f(at);
    for (int d = shape.size() - 1; d >= 0; --d) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

inline int64_t place(const OperandSpec& o, const Dims& at) {
  int64_t p = o.offset;
  for (int d = 0; d < at.size(); ++d) p += at[d] * o.stride[d];
  return p;
}

inline double value(const OperandSpec& o, void* p, int64_t i) {
  Element e = read_element(o.dtype, p, i);
  return is_float(o.dtype) ? e.f : static_cast<double>(e.i);
}

}  // namespace ingot::test
