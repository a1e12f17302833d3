// Products with few rows (or columns), where packing the large operand would cost more than the
// product: it is read once, in place. float32.
#pragma once
#include <cstdint>

namespace ingot::cpu {

inline constexpr int64_t kFewRows = 8;

/// Columns [n0, n1) of sums[m * count + (n - n0)] = sum over k of a[m*a_m + k*a_k] * b[k*b_k +
/// n*b_n], count = n1 - n0, m < M <= kFewRows. One of b_k, b_n must be 1; if it is b_k, a_k must be
/// 1 too. `cached`: b is small enough to stay in a core's caches. Results do not depend on it.
void few_rows(float* sums, int64_t M, int64_t n0, int64_t n1, int64_t K, const float* a,
              int64_t a_m, int64_t a_k, const float* b, int64_t b_k, int64_t b_n, bool cached);

}  // namespace ingot::cpu
