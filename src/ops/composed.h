// For functions composed from others: operands brought to one floating type, computed in at least
// float32, rounded once.
#pragma once
#include <utility>
#include <vector>

#include "graph/composite.h"
#include "ops/common.h"

namespace ingot {

/// What a type is computed in: float32 for the 16-bit floats.
inline DType compute_type(DType t) { return is_half(t) ? DType::Float32 : t; }

/// The node of a floating tensor; Error(DType) otherwise.
NodeRef floating_node(const Tensor& x, const char* op, const SourceLoc& loc);

/// A number or tensor as a tensor of the type, on the device (0-d tensors and numbers follow).
Tensor operand_as(const Operand& b, DType dtype, const Device& device, const char* op,
                  const SourceLoc& loc);

/// Two operands in their common type (integers become float32 when `floating`); 16-bit floats stay
/// as they are.
struct Pair {
  Tensor a, b;
  DType dtype;
};
Pair promoted_pair(const Tensor& a, const Operand& b, bool floating, const char* op,
                   const SourceLoc& loc);

/// f of a floating x in its compute type, rounded back.
template <class F>
Tensor in_wide(const Tensor& x, const char* op, const SourceLoc& place, F f) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  DType t = floating_node(x, op, loc)->dtype;
  return f(x.to(compute_type(t))).to(t);
}

/// f of two operands in their common floating type's compute type, rounded back to the common type.
template <class F>
Tensor pair_in_wide(const Tensor& a, const Operand& b, const char* op, const SourceLoc& place,
                    F f) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Pair p = promoted_pair(a, b, true, op, loc);
  DType w = compute_type(p.dtype);
  return f(p.a.to(w), p.b.to(w)).to(p.dtype);
}

/// A call of the composite of this name. The parameters are all that the body depends on besides
/// the operands; undefined operands are left out.
Tensor composite(const char* name, const std::vector<CompositeParam>& params,
                 const std::vector<Tensor>& operands, const Dims& shape, DType result,
                 Composite::Body body, const SourceLoc& loc);

}  // namespace ingot
