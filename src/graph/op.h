// The primitives. Everything else is composed from these, and differentiates by composition. The
// table with one row for each is graph/ops.def; elementwise ops have their rows in
// graph/elementwise.def.
#pragma once
#include <cstdint>
#include <string_view>

#include "ingot/dtype.h"

namespace ingot {

enum class Op : uint8_t {
#define INGOT_OP(E, ...) E,
#include "graph/ops.def"
#undef INGOT_OP
#define INGOT_EW(E, ...) E,
#include "graph/elementwise.def"
#undef INGOT_EW
  Count_
};

/// More parts than this are joined by several Cats.
inline constexpr int kCatInputs = 64;

enum class TypeRule : uint8_t { Same, Float, Int, Num, Bool };
enum class OpClass : uint8_t {
  Source,
  Movement,
  Elementwise,
  Structure,
  Reduce,
  Index,
  Library,
  Composite
};

struct OpInfo {
  static constexpr uint8_t any = 255;  // operands

  const char* name;
  uint8_t arity;
  uint8_t results;
  OpClass kind;
  TypeRule rule;        // of the elementwise table
  bool in_table;        // has its row in graph/elementwise.def
  bool differentiable;  // has a gradient rule
  bool may_fail;        // a run may find an operand's value wrong
  bool smooth;     // a smooth function of one operand: exp, tanh, ... take longer than arithmetic
  bool recurrent;  // the steps of a recurrent layer, forward or backward
};

namespace op_table {
inline constexpr uint8_t any = OpInfo::any;
inline constexpr OpInfo rows[] = {
#define INGOT_OP(E, name, arity, results, kind, attrs, shape, gradient, flops, may_fail) \
  {#name,                                                                                \
   arity,                                                                                \
   results,                                                                              \
   OpClass::kind,                                                                        \
   TypeRule::Same,                                                                       \
   false,                                                                                \
   std::string_view(#gradient) != "none",                                                \
   may_fail != 0,                                                                        \
   false,                                                                                \
   std::string_view(#attrs) == "RecurrentAttrs"},
#include "graph/ops.def"
#undef INGOT_OP
#define INGOT_EW(E, name, arity, rule, expr, ga, gb)                                              \
  {#name,                                                                                         \
   arity,                                                                                         \
   1,                                                                                             \
   OpClass::Elementwise,                                                                          \
   TypeRule::rule,                                                                                \
   true,                                                                                          \
   true,                                                                                          \
   false,                                                                                         \
   (arity) == 1 && TypeRule::rule == TypeRule::Float && std::string_view(#ga) != "zeros_like(g)", \
   false},
#include "graph/elementwise.def"
#undef INGOT_EW
};
static_assert(sizeof rows / sizeof *rows == static_cast<size_t>(Op::Count_), "one row for each op");
}  // namespace op_table

constexpr const OpInfo& info(Op op) { return op_table::rows[static_cast<size_t>(op)]; }

/// The op's row in graph/elementwise.def, or -1.
constexpr int elementwise_row(Op op) {
  constexpr int first = 0
#define INGOT_OP(E, ...) +1
#include "graph/ops.def"
#undef INGOT_OP
      ;
  return info(op).in_table ? static_cast<int>(op) - first : -1;
}

constexpr bool is_source(Op op) { return info(op).kind == OpClass::Source; }
constexpr bool is_movement(Op op) { return info(op).kind == OpClass::Movement; }
constexpr bool is_elementwise(Op op) { return info(op).kind == OpClass::Elementwise; }
constexpr bool is_reduce(Op op) { return info(op).kind == OpClass::Reduce; }
/// The steps of a recurrent layer, forward or backward.
constexpr bool is_recurrent(Op op) { return info(op).recurrent; }
constexpr bool is_recurrent_grad(Op op) {
  return is_recurrent(op) && std::string_view(info(op).name).ends_with("_grad");
}
/// How many values of each unit and step a recurrent op with gates keeps for its gradient.
inline constexpr int kKeptPerUnit = 4;
/// A separate launch, whose operands are stored in memory.
constexpr bool is_library(Op op) { return info(op).kind == OpClass::Library; }

}  // namespace ingot
