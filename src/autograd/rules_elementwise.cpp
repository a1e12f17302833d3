// Gradients of the elementwise ops. The table's rows carry their own (graph/elementwise.def): here
// the rows become cases, with operands and result converted to Tensors only where a row's text
// mentions them.
#include <string_view>

#include "autograd/rules.h"
#include "graph/lift.h"
#include "ingot/elementwise.h"
#include "ingot/ops.h"

namespace ingot::autograd {
namespace {

constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

// Does the text of a rule mention the variable?
constexpr bool mentions(std::string_view text, char variable) {
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == variable && (i == 0 || !is_word(text[i - 1])) &&
        (i + 1 == text.size() || !is_word(text[i + 1])))
      return true;
  return false;
}

// How a tie-breaking op shares its gradient: all of it where `mine` wins, half at a tie.
Tensor share(const Tensor& a, const Tensor& b, const Tensor& mine) {
  Tensor half = where(a == b, full({}, 0.5, {a.dtype(), a.device()}), 0.0);
  return where(mine, 1.0, half);
}

// The derivative of polygamma, whose order travels as a number.
Tensor polygamma_of(const Tensor& n, const Tensor& x) {
  return make(Op::Polygamma, {node_of(n), node_of(x)}, {});
}

// A factor of several steps: of 16-bit floats it is computed in float32 and rounded once.
template <class F>
Tensor in_wide(const Tensor& a, F f) {
  const DType t = a.dtype();
  return is_half(t) ? f(a.to(DType::Float32)).to(t) : f(a);
}

template <bool used>
Tensor operand(Node* n) {
  if constexpr (used)
    return lift(n);
  else
    return {};
}

template <class Rule>
void give(const RuleCall& c, int k, Rule rule) {
  if (!c.wants(k)) return;
  Tensor grad = rule();
  if (grad.defined()) c.out[static_cast<size_t>(k)] = sum_to(grad, c.input(k)->shape);
}

}  // namespace

namespace gradient {

void where(const RuleCall& c) {
  Tensor condition = lift(c.input(0));
  give(c, 1, [&] { return ingot::where(condition, c.g, 0.0); });
  give(c, 2, [&] { return ingot::where(condition, 0.0, c.g); });
}

void cast(const RuleCall& c) {
  if (c.wants(0)) c.out[0] = c.g.to(c.input(0)->dtype);
}

void none(const RuleCall&) {}

void custom(const RuleCall& c) {
  throw Error(ErrorKind::Internal, info(c.n.op).name, "has no gradient rule", c.n.loc);
}

void elementwise(const RuleCall& c) {
  using ingot::where;
  [[maybe_unused]] const Tensor& g = c.g;
  switch (c.n.op) {
#define NONE Tensor()
#define INGOT_EW(E, name, arity, rule, expr, ga, gb)                   \
  case Op::E: {                                                        \
    Node* in0 = c.input(0);                                            \
    [[maybe_unused]] Node* in1 = (arity) > 1 ? c.input(1) : nullptr;   \
    give(c, 0, [&] {                                                   \
      [[maybe_unused]] Tensor a = operand<mentions(#ga, 'a')>(in0);    \
      [[maybe_unused]] Tensor b = operand<mentions(#ga, 'b')>(in1);    \
      [[maybe_unused]] Tensor y = operand<mentions(#ga, 'y')>(&c.n);   \
      return Tensor(ga);                                               \
    });                                                                \
    if ((arity) > 1)                                                   \
      give(c, 1, [&] {                                                 \
        [[maybe_unused]] Tensor a = operand<mentions(#gb, 'a')>(in0);  \
        [[maybe_unused]] Tensor b = operand<mentions(#gb, 'b')>(in1);  \
        [[maybe_unused]] Tensor y = operand<mentions(#gb, 'y')>(&c.n); \
        return Tensor(gb);                                             \
      });                                                              \
    return;                                                            \
  }
#include "graph/elementwise.def"
#undef INGOT_EW
#undef NONE
    default:
      return;
  }
}

}  // namespace gradient

Tensor sum_to(const Tensor& g, const Dims& shape) {
  const Dims from = node_of(g)->shape;
  if (from == shape) return g;
  int extra = from.size() - shape.size();
  ReduceAttrs sum;
  for (int d = 0; d < from.size(); ++d)
    if (d < extra || (shape[d - extra] == 1 && from[d] != 1)) sum.axes |= 1u << d;
  Tensor r = sum.axes ? make(Op::Sum, {node_of(g)}, {sum}) : g;
  return extra == 0 ? r : make(Op::Reshape, {node_of(r)}, {.shape = shape});
}

void apply_rule(const RuleCall& c) {
  static constexpr void (*rules[])(const RuleCall&) = {
#define INGOT_OP(E, name, arity, results, kind, attrs, shape, rule, ...) gradient::rule,
#include "graph/ops.def"
#undef INGOT_OP
  };
  info(c.n.op).in_table ? gradient::elementwise(c) : rules[static_cast<size_t>(c.n.op)](c);
}

}  // namespace ingot::autograd
