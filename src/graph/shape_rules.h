// Result type, shape and device of every primitive, and the last check before a node is made.
// Front-end functions check what needs the user's own words (dims, options); what is said here
// names operands. Each rule is named in rows of graph/ops.def.
#pragma once
#include "graph/node.h"

namespace ingot {

/// What a rule looks at.
struct ShapeCall {
  Op op;
  std::span<Node* const> in;
  const OpSpec& spec;
  const SourceLoc& loc;

  const Node& x() const { return *in[0]; }
  const Dims& shape() const { return spec.shape; }
  template <class T>
  const T& attrs() const {
    return spec.attrs.as<T>();
  }
};

namespace shape_rules {
#define INGOT_OP(E, name, arity, results, kind, attrs, shape, ...) \
  Inferred shape(const ShapeCall& c);
#include "graph/ops.def"
#undef INGOT_OP
Inferred elementwise(const ShapeCall& c);

/// Throws the error of an op; short, so that checks stay readable.
[[noreturn]] void fail(ErrorKind kind, Op op, std::string what, const SourceLoc& loc,
                       std::string fix = {});
/// Sizes are 0 or more, and at most 2^60 elements.
void check_shape(Op op, const Dims& shape, const SourceLoc& loc);
void check_device(const ShapeCall& c);
void check_same_dtype(Op op, const Node& a, const Node& b, const SourceLoc& loc);
}  // namespace shape_rules

/// Size of a convolution's (or a pooling's) result along one dim: how many windows fit; below 1
/// when none does.
inline int64_t window_count(int64_t size, int64_t kernel, int64_t stride, int64_t dilation,
                            int64_t front, int64_t behind) {
  int64_t room = size + front + behind - (dilation * (kernel - 1) + 1);
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace ingot
