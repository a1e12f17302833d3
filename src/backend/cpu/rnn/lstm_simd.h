// The cells of an LSTM's step, along rows; one table per instruction set.
#pragma once
#include <cstdint>

namespace ingot::cpu {

/// `rows` rows of n elements each, and their strides. Results that are not needed are null.
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

struct LstmSimd {
  /// in: the input's part of the four gates, the state's part of them, the previous c. out: h, a
  /// second copy of h, c, the four gates.
  void (*cell)(const LstmBlock& block);
  /// in: the gradient of h from above, that from the next step, the four gates, c, the previous c,
  /// the gradient of c. out: the gradients of the four gates' sums, a second copy of them, the
  /// gradient of the previous c.
  void (*back)(const LstmBlock& block);
};
const LstmSimd& lstm_simd();

}  // namespace ingot::cpu
