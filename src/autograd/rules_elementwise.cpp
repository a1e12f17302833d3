// Gradients of the elementwise ops. The table's rows carry their own (graph/elementwise.def): here the rows
// become cases, with operands and result turned into Tensors only where a row's text mentions them.
#include <string_view>

#include "autograd/lift.h"
#include "autograd/rules.h"
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

void where_rule(const RuleCall& c) {
  Tensor condition = lift(c.input(0));
  give(c, 1, [&] { return where(condition, c.g, 0.0); });
  give(c, 2, [&] { return where(condition, 0.0, c.g); });
}

void cast_rule(const RuleCall& c) {
  if (c.wants(0)) c.out[0] = c.g.to(c.input(0)->dtype);
}

}  // namespace

bool elementwise_rule(const RuleCall& c) {
  [[maybe_unused]] const Tensor& g = c.g;
  switch (c.n.op) {
    case Op::Cast:
      return cast_rule(c), true;
    case Op::Where:
      return where_rule(c), true;
    case Op::Uniform:
      return true;
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
    return true;                                                       \
  }
#include "graph/elementwise.def"
#undef INGOT_EW
#undef NONE
    default:
      return false;
  }
}

Tensor sum_to(const Tensor& g, const Dims& shape) {
  const Dims from = node_of(g)->shape;
  if (from == shape) return g;
  int extra = from.size() - shape.size();
  Attrs sum, reshape;
  for (int d = 0; d < from.size(); ++d)
    if (d < extra || (shape[d - extra] == 1 && from[d] != 1)) sum.mask |= 1u << d;
  Tensor r = sum.mask ? make(Op::Sum, {node_of(g)}, sum) : g;
  if (extra == 0) return r;
  reshape.shape = shape;
  return make(Op::Reshape, {node_of(r)}, reshape);
}

void apply_rule(const RuleCall& c) {
  if (is_elementwise(c.n.op) ? elementwise_rule(c)
                             : movement_rule(c) || reduce_rule(c) || contraction_rule(c) || conv_rule(c) ||
                                   index_rule(c) || linalg_rule(c))
    return;
  throw Error(ErrorKind::Internal, info(c.n.op).name, "has no gradient rule", c.n.loc);
}

}  // namespace ingot::autograd
