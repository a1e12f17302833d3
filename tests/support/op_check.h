// Checks one function of tensors against the oracle: forward, gradient graph, and (with finite
// differences of the oracle's own forward) the gradient rules. Shared by the op, autograd and
// random-program tests.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <ingot/ingot.h>

#include "support/oracle.h"

namespace ingot::check {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Deterministic numbers for inputs, from a seed; independent of the library's generators.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567) {}
  uint64_t bits();
  double between(double lo, double hi);
  int64_t integer(int64_t lo, int64_t hi);  ///< lo <= n < hi
 private:
  uint64_t state_;
};

/// A tensor that reads as `shape`, with values from lo to hi (rounded down for integer types, then
/// lo <= n < hi).
Tensor random_tensor(const Dims& shape, DType dtype, double lo, double hi, Numbers& numbers,
                     const Device& device);

/// The pending value by the oracle.
oracle::Value expected(const Tensor& t, oracle::Precision p = oracle::Precision::Rounded);
/// The value the library computes (runs it).
oracle::Value computed(const Tensor& t);

struct Tolerance {
  double rel, abs;
};
Tolerance tolerance(DType t);

/// "" when they agree, else what is wrong: type, shape or the worst element.
std::string difference(const oracle::Value& got, const oracle::Value& want, Tolerance tol);

/// Weights the outputs' elements differently and adds them up: 0-d float64.
Tensor weighted_sum(const std::vector<Tensor>& outputs);

/// Compares analytic gradients (evaluated by the oracle in float64) of sum at leaves with central
/// differences, also by the oracle. `grads` are pending gradient tensors; "" when all agree.
std::string check_differences(const Tensor& sum, const std::vector<Tensor>& leaves,
                              const std::vector<Tensor>& grads, double eps = 1e-6,
                              double rtol = 1e-4, double atol = 1e-6);

}  // namespace ingot::check
