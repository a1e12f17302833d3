// Composites: operations that are recorded by name, as one node, and stand for several others. A
// backend's kernel may run one in one call, or take it as an epilogue; otherwise the compiler
// decomposes it. Second-order gradients go through the decomposition too.
//
// Op::Composite is the general form, of functions in ops/ such as softmax or layer_norm. Ops that
// backends have calls for (attention, recurrent layers) have their own rows in graph/ops.def and
// register a decomposition.
#pragma once
#include <bit>
#include <concepts>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/recorded_function.h"
#include "ingot/tensor.h"

namespace ingot {

/// What a composite's function may depend on: the operands that were given, the parameters, and the
/// type of the result.
struct CompositeArgs {
  const std::vector<Tensor>& in;
  std::span<const int64_t> params;
  DType result;

  const Tensor& operator[](size_t k) const { return in[k]; }
  int64_t i(size_t k) const { return params[k]; }
  bool flag(size_t k) const { return params[k] != 0; }
  double f(size_t k) const { return std::bit_cast<double>(params[k]); }
};

/// A parameter of a composite: an integer, a flag or a floating number.
struct CompositeParam {
  int64_t bits;
  template <std::integral T>
  CompositeParam(T v)  // NOLINT(google-explicit-constructor)
      : bits(static_cast<int64_t>(v)) {}
  CompositeParam(double v)
      : bits(std::bit_cast<int64_t>(v)) {}  // NOLINT(google-explicit-constructor)
};

/// One for each function and parameters, made at the first use and never destroyed.
struct Composite {
  /// The result by other ops, rounded to CompositeArgs::result.
  using Body = Tensor (*)(const CompositeArgs& args);

  int64_t id = 0;
  const char* name = "";
  Body body = nullptr;
  std::vector<int64_t> params;

  Tensor operator()(const std::vector<Tensor>& operands, DType result) const {
    return body({operands, params, result});
  }
};

const Composite* find_composite(const char* name, Composite::Body body,
                                std::span<const CompositeParam> params);

/// Records the results of a call from its operands: the op's own, then its further results.
using Decomposition = std::vector<Tensor> (*)(Op op, const OpSpec& call,
                                              const std::vector<Tensor>& operands);
/// Of an op with its own row. Called before anything is compiled (wiring/).
void set_decomposition(Op op, Decomposition f);
/// nullptr: the op is no composite.
Decomposition decomposition_of(Op op);
inline bool is_composite(Op op) { return decomposition_of(op) != nullptr; }

struct OperandType {
  DType dtype;
  Dims shape;
  Device device;
};
/// Records the decomposition of a call apart from the thread's own program. `read` gets the nodes
/// that stand for the operands and those of the results, which live until it returns.
void record_decomposition(Op op, const OpSpec& call, std::span<const OperandType> operands,
                          const std::function<void(std::span<const NodeRef> operands,
                                                   std::span<const NodeRef> results)>& read);

/// The same as a list of steps.
struct Decomposed {
  std::vector<RecordedStep> steps;
  std::vector<int> results;  // as RecordedStep::in
};
Decomposed decompose(Op op, const OpSpec& call, std::span<const OperandType> operands);

}  // namespace ingot
