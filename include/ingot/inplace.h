// In-place forms as functions: exp_(x) is x.exp_(). The handle that comes back is x's. tensor.h
// says what in-place means and what throws.
#pragma once
#include "ingot/tensor.h"

namespace ingot {

#define INGOT_IN_PLACE_FUNCTION(name, parameters, arguments)         \
  inline Tensor name##_(Tensor x, INGOT_LIST parameters INGOT_LOC) { \
    x.name##_(INGOT_LIST arguments loc);                             \
    return x;                                                        \
  }
#include "ingot/methods.def"
inline Tensor fill_(Tensor x, const Scalar& value, INGOT_LOC) { return x.fill_(value, loc); }
inline Tensor zero_(Tensor x, INGOT_LOC) { return x.zero_(loc); }
inline Tensor clamp_(Tensor x, const Scalar& lo, const Scalar& hi, INGOT_LOC) {
  return x.clamp_(lo, hi, loc);
}

/// From now on x, in every handle, has value's elements, type, shape and device; no gradient flows
/// to value. A leaf stays the leaf it was, with its hooks and its grad(), so optimisers continue
/// with it. What x was a view of, and views taken from it whose sizes, type or device no longer
/// fit, keep the old elements. Throws Error(Autograd) when x is the result of an operation that
/// requires gradients, Error(DType) when x requires gradients and value is not floating.
void set_data(const Tensor& x, const Tensor& value, INGOT_LOC);

}  // namespace ingot
