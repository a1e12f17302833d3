#include "ops/composed.h"

namespace ingot {

NodeRef floating_node(const Tensor& x, const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc);
  if (!is_float(n->dtype))
    fail(ErrorKind::DType, op, "needs a floating type, not " + describe(x), loc,
         "convert with x.to(float32)");
  return n;
}

Tensor operand_as(const Operand& b, DType dtype, const Device& device, const char* op,
                  const SourceLoc& loc) {
  if (!b.tensor) return tensor_of(constant(b.scalar, dtype, device, loc));
  NodeRef n = node_of(*b.tensor, op, loc);
  if (n->dtype == dtype && (n->device == device || n->rank() > 0)) return *b.tensor;
  NodeRef r = cast_to(n, dtype, loc);
  return tensor_of(n->rank() == 0 ? move_to(r.get(), device, loc) : r);
}

Pair promoted_pair(const Tensor& a, const Operand& b, bool floating, const char* op,
                   const SourceLoc& loc) {
  NodeRef x = node_of(a, op, loc);
  NodeRef y = b.tensor ? node_of(*b.tensor, op, loc) : nullptr;
  DType t = y ? promoted(x, y) : promoted(x, b.scalar);
  if (floating && !is_float(t)) t = DType::Float32;
  Device d = x->rank() == 0 && y ? y->device : x->device;
  return {operand_as(Operand(a), t, d, op, loc), operand_as(b, t, d, op, loc), t};
}

}  // namespace ingot
