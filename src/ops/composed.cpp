#include "ops/composed.h"

#include <algorithm>

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

Tensor composite(const char* name, const std::vector<CompositeParam>& params,
                 const std::vector<Tensor>& operands, const Dims& shape, DType result,
                 Composite::Body body, const SourceLoc& loc) {
  std::vector<Tensor> given;
  std::vector<NodeRef> in;
  for (const Tensor& t : operands) {
    if (!t.defined()) continue;
    given.push_back(t);
    in.push_back(node_of(t, name, loc));
  }
  const bool empty =
      std::any_of(in.begin(), in.end(), [](const NodeRef& n) { return n->numel() == 0; });
  const Composite* what = find_composite(name, body, params);
  if (is_eager() || empty) return (*what)(given, result);
  return tensor_of(record_taking(
      Op::Composite, in, {.attrs = CompositeAttrs{what}, .shape = shape, .dtype = result}, loc));
}

}  // namespace ingot
