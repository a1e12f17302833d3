// The in-place forms of one tensor as functions: exp_(x) is x.exp_(). The handle that comes back is
// x's. tensor.h says what in-place means and what throws.
#pragma once
#include "ingot/tensor.h"

namespace ingot {

#define INGOT_UNARY_(name)                     \
  inline Tensor name##_(Tensor x, INGOT_LOC) { \
    x.name##_(loc);                            \
    return x;                                  \
  }
#include "ingot/methods.def"

/// From now on x, in every handle, has value's elements, type, shape and device; no gradient flows
/// to value. A leaf stays the leaf it was, with its hooks and its grad(), so optimisers continue
/// with it. What x was a view of, and views taken from it whose sizes, type or device no longer
/// fit, keep the old elements. Throws Error(Autograd) when x is the result of an operation that
/// requires gradients, Error(DType) when x requires gradients and value is not floating.
void set_data(const Tensor& x, const Tensor& value, INGOT_LOC);

inline Tensor fill_(Tensor x, const Scalar& value, INGOT_LOC) { return x.fill_(value, loc); }
inline Tensor zero_(Tensor x, INGOT_LOC) { return x.zero_(loc); }
inline Tensor clamp_(Tensor x, const Scalar& lo, const Scalar& hi, INGOT_LOC) {
  return x.clamp_(lo, hi, loc);
}
inline Tensor leaky_relu_(Tensor x, double negative_slope = 0.01, INGOT_LOC) {
  return x.leaky_relu_(negative_slope, loc);
}
inline Tensor elu_(Tensor x, double alpha = 1, INGOT_LOC) { return x.elu_(alpha, loc); }
inline Tensor hardtanh_(Tensor x, double min_val = -1, double max_val = 1, INGOT_LOC) {
  return x.hardtanh_(min_val, max_val, loc);
}
inline Tensor threshold_(Tensor x, double threshold, double value, INGOT_LOC) {
  return x.threshold_(threshold, value, loc);
}
inline Tensor nan_to_num_(Tensor x, double nan = 0, std::optional<double> posinf = {},
                          std::optional<double> neginf = {}, INGOT_LOC) {
  return x.nan_to_num_(nan, posinf, neginf, loc);
}
inline Tensor logit_(Tensor x, std::optional<double> eps = {}, INGOT_LOC) {
  return x.logit_(eps, loc);
}
inline Tensor xlogy_(Tensor x, const Operand& b, INGOT_LOC) { return x.xlogy_(b, loc); }

}  // namespace ingot
