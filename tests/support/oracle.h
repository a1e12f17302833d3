// The oracle: a naive interpreter of recorded graphs, one node at a time, in float64 and int64, by
// plain loops. It shares no code with the compiler or a backend, so agreement with it means
// something. Slow and simple on purpose.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/node.h"

namespace ingot::oracle {

/// A value: `f` holds the elements of floating types, `i` those of integers and bool, in row-major
/// order.
struct Value {
  DType dtype = DType::Float64;
  Dims shape;
  std::vector<double> f;
  std::vector<int64_t> i;

  Value() = default;
  Value(DType t, const Dims& s);
  int64_t numel() const { return shape.numel(); }
  double at(int64_t k) const { return is_float(dtype) ? f[k] : static_cast<double>(i[k]); }
};

enum class Precision {
  Rounded,  ///< every node's result is rounded to its type, as a device would
  Exact,    ///< floating types are float64 whatever they are called: for finite differences
};

class Oracle {
 public:
  explicit Oracle(Precision p = Precision::Rounded) : precision_(p) {}
  /// Uses this value for the node instead of computing it (or reading its buffer).
  void set(const Node* n, Value v) { values_[n] = std::move(v); }
  /// The value of a node, computed or pending; a computed node is read from its buffer. Iterative:
  /// the graph may be deep. The reference is good until the next call. Throws std::runtime_error at
  /// an index out of range.
  const Value& operator()(const Node* n);
  const Value& operator()(const NodeRef& n) { return (*this)(n.get()); }

 private:
  Value compute(const Node& n);
  std::vector<Value> several(const Node& n);  // of an op with several results
  std::vector<Value> decomposed(const Node& n);
  std::unordered_map<const Node*, Value> values_;
  Precision precision_;
};

/// All results of Op::Lstm and Op::LstmGrad. Unless exact, what later steps read is rounded as it
/// is stored.
std::vector<Value> lstm(const Node& n, std::span<const Value* const> in, bool exact);
std::vector<Value> lstm_grad(const Node& n, std::span<const Value* const> in, bool exact);
/// Rounds to the nearest value of the type (ties to even; past the largest finite value: infinity).
double round_to(DType t, double x);
/// Wraps around as an integer of the type; bool becomes 0 or 1.
int64_t wrap_to(DType t, int64_t x);
/// One element of an op of the elementwise table. Operands of floating type go in a, b; others in
/// ia, ib.
double float_element(Op op, double a, double b);
int64_t int_element(Op op, DType t, int64_t a, int64_t b);
/// Ops with a bool result on floating operands.
bool bool_element(Op op, double a, double b);
/// Reads `count` elements of the type from memory of this machine.
Value read_memory(DType t, const Dims& shape, const void* data);

}  // namespace ingot::oracle
