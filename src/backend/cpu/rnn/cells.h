// The cells of a recurrent step, along rows.
#pragma once
#include <cstdint>

namespace ingot::cpu {

/// `rows` rows of n elements each, and their strides. Results that are not needed are null.
struct CellBlock {
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

struct Cells {
  void (*cell)(const CellBlock& block);
  void (*back)(const CellBlock& block);
};

/// cell: in: the input's part of the four gates, the state's part of them, the previous c. out: h,
/// a second copy of h, c, the four gates. back: in: the gradient of h from above, that from the
/// next step, the four gates, c, the previous c, the gradient of c. out: the gradients of the four
/// gates' sums, a second copy of them, the gradient of the previous c.
const Cells& lstm_cells();

}  // namespace ingot::cpu
