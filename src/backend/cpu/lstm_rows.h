// The cells of an LSTM's step, along rows; one table per instruction set.
#pragma once
#include <cstdint>

namespace ingot::cpu {

/// Rows of n elements each. Results that nobody wants are null.
struct LstmRow {
  static constexpr int kIn = 9, kOut = 9;
  int64_t n;
  const float* in[kIn];
  float* out[kOut];
};

struct LstmRows {
  /// in: the input's part of the four gates, the state's part of them, c before. out: h, h once more, c, the
  /// four gates.
  void (*cell)(const LstmRow& row);
  /// in: the gradient of h from above, that from the step behind, the four gates, c, c before, the gradient
  /// of c. out: the gradients of the four gates' sums, the same once more, the gradient of c before.
  void (*back)(const LstmRow& row);
};
const LstmRows& lstm_rows();

}  // namespace ingot::cpu
