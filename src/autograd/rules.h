// One gradient rule per primitive. A rule is written with the functions of ops/ (or records
// primitives), so that a gradient is a graph again: with gradients on while it is recorded, it can
// itself be differentiated.
#pragma once
#include <array>

#include "graph/node.h"
#include "ingot/tensor.h"

namespace ingot::autograd {

/// As many operands of an op as may have a gradient.
inline constexpr int kMaxGrads = 5;
/// Gradients for a node's inputs; undefined where none is wanted or there is none.
using InputGrads = std::array<Tensor, kMaxGrads>;

/// The rule's view of one node: g is the gradient of its result, bit k of `wanted` asks for input
/// k's gradient.
struct RuleCall {
  Node& n;
  const Tensor& g;
  uint32_t wanted;
  InputGrads& out;
  std::span<Node* const> in;  // n's inputs, held: n itself may release them meanwhile

  bool wants(int k) const { return wanted >> k & 1; }
  Node* input(int k) const { return in[static_cast<size_t>(k)]; }
  template <class T>
  const T& attrs() const {
    return n.attrs.as<T>();
  }
};

/// Fills c.out by the rule of c.n's op. Ops without a gradient leave it undefined.
void apply_rule(const RuleCall& c);

/// The rules that graph/ops.def names.
namespace gradient {
#define INGOT_OP(E, name, arity, results, kind, attrs, shape, gradient, ...) \
  void gradient(const RuleCall& c);
#include "graph/ops.def"
#undef INGOT_OP
void elementwise(const RuleCall& c);
}  // namespace gradient

/// Sums g over the axes along which `shape` was broadcast, so that the result has that shape.
Tensor sum_to(const Tensor& g, const Dims& shape);

}  // namespace ingot::autograd
