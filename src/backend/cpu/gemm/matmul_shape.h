// The shape of a Matmul call, reduced to what its loops need.
#pragma once
#include <vector>

#include "codegen/kernel_spec.h"

namespace ingot::cpu {

struct Batch {
  int64_t size, a, b, c;
};

/// The shape of the call with batch axes merged where memory allows: a batch of A's against one B
/// is one larger A.
struct Shape {
  int64_t M, N, K;
  int64_t a_m, a_k, b_k, b_n, c_m, c_n;
  std::vector<Batch> batch;
  int64_t batches = 1;

  explicit Shape(const LibrarySpec& s) {
    const OperandSpec &c = s.operands[0], &a = s.operands[1], &b = s.operands[2];
    const int r = c.shape.size();
    M = c.shape[r - 2];
    N = c.shape[r - 1];
    K = a.shape[r - 1];
    a_m = a.stride[r - 2];
    a_k = a.stride[r - 1];
    b_k = b.stride[r - 2];
    b_n = b.stride[r - 1];
    c_m = c.stride[r - 2];
    c_n = c.stride[r - 1];
    for (int k = r - 3; k >= 0; --k) {
      if (c.shape[k] == 1) continue;
      const Batch x{c.shape[k], a.stride[k], b.stride[k], c.stride[k]};
      if (batch.empty() && x.b == 0 && (M == 1 || (x.a == M * a_m && x.c == M * c_m))) {
        if (M == 1) {
          a_m = x.a;
          c_m = x.c;
        }
        M *= x.size;
      } else {
        batch.insert(batch.begin(), x);
        batches *= x.size;
      }
    }
  }
  void offsets(int64_t n, int64_t& a, int64_t& b, int64_t& c) const {
    for (size_t k = batch.size(); k-- > 0;) {
      const int64_t i = n % batch[k].size;
      n /= batch[k].size;
      a += i * batch[k].a;
      b += i * batch[k].b;
      c += i * batch[k].c;
    }
  }
};

}  // namespace ingot::cpu
