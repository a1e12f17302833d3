// The cells of an LSTM's step, along rows; one table per instruction set.
#pragma once
#include <cstdint>

namespace ingot::cpu {

/// `rows` rows of n elements each, with what lies between two of them. Results that nobody wants
/// are null.
struct LstmBlock {
  static constexpr int kIn = 9, kOut = 9;
  struct Read {
    const float* at;
    int64_t stride;
  };
  struct Written {
    float* at;
    int64_t stride;
  };
  int64_t rows, n;
  Read in[kIn];
  Written out[kOut];
};

struct LstmRows {
  /// in: the input's part of the four gates, the state's part of them, c before. out: h, h once
  /// more, c, the four gates.
  void (*cell)(const LstmBlock& block);
  /// in: the gradient of h from above, that from the step behind, the four gates, c, c before, the
  /// gradient of c. out: the gradients of the four gates' sums, the same once more, the gradient of
  /// c before.
  void (*back)(const LstmBlock& block);
};
const LstmRows& lstm_rows();

}  // namespace ingot::cpu
