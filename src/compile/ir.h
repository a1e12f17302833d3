// The compiler's form of a run: the traced nodes as an array of values in recording order, which is
// a topological order. Passes rewrite it (simplify, rules), annotate it (views, group) and finally
// lower it to a Plan.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel_spec.h"
#include "graph/node.h"

namespace ingot {

/// A value's inputs: a few in place; Op::Cat alone has more.
class InputList {
 public:
  int operator[](size_t k) const { return k < few_.size() ? few_[k] : more_[k - few_.size()]; }
  int& operator[](size_t k) {
    if (k < few_.size()) return few_[k];
    if (k - few_.size() >= more_.size()) more_.resize(k - few_.size() + 1);
    return more_[k - few_.size()];
  }

 private:
  std::array<int, 8> few_{};
  std::vector<int> more_;
};

struct Val {
  Op op = Op::Leaf;
  DType dtype = DType::Float32;
  Device device{DeviceType::CPU, 0};
  uint8_t n_in = 0;
  InputList in;
  Dims shape;
  Attributes attrs;
  int slot = -1;          // Leaf: which leaf; Arg, Random: which argument
  int node = -1;          // traced node (for lines and names), -1 for leaves
  bool output = false;    // must survive the run
  bool history = false;   // a gradient may still be asked through this node
  bool copied = false;    // a movement op that is carried out, not only looked through
  bool material = false;  // has a buffer
  bool alone = false;     // begins its own kernel (an index map did not fit the one it would join)
  Epilogues epilogues;    // of a library call; the operands they read follow its own
  Dims joined_at;  // AttentionGrad: where its three results begin in the rows of one buffer; empty:
                   // they have a buffer each
  Dims stride;     // of its buffer, when material; row-major unless a library op chose otherwise

  bool view() const { return (is_movement(op) || op == Op::Alias || op == Op::Fence) && !copied; }
  /// Another op in this value's place, of the same type and shape.
  void become(Op other, Attributes its = {}) {
    op = other;
    attrs = std::move(its);
  }

  bool source() const { return op != Op::Leaf && is_source(op); }
  bool joined() const { return !joined_at.empty(); }
  /// How many results has the call, its own value included?
  int results() const {
    if (joined()) return 1;
    const bool two = epilogues.has(Epilogue::KeepSum) || epilogues.has(Epilogue::BiasGrad);
    return two ? 2 : info(op).results;
  }
  /// Work of a generated kernel.
  bool compute() const {
    return is_elementwise(op) || is_reduce(op) || op == Op::Gather || op == Op::Assign ||
           (is_movement(op) && copied);
  }
  int64_t numel() const { return shape.numel(); }
  int64_t bytes() const { return numel() * static_cast<int64_t>(size_of(dtype)); }
};

struct Graph {
  std::vector<Val> vals;
  std::vector<int> users;  // how many inputs name each value (outputs count once more)

  void count_users();
};

/// Common subexpressions, movement ops that do nothing, chains of the same movement, dead values:
/// no bit of a result changes. Ids stay.
void simplify(Graph& g);
/// Sets of rules (compile/rules), in the order in which they are applied.
void transpose_products(Graph& g);
void add_epilogues(Graph& g);
void fold_conv_epilogues(Graph& g);
void use_space_to_depth(Graph& g);
void join_attention_gradients(Graph& g);
/// The physical order of convolutions' operands and results: channels innermost, where the backend
/// wants that. What must stay as it is (leaves, what survives the run) is copied.
void choose_layouts(Graph& g);
/// One of them as an operand of the call: the gradient of `of`, at `offset` in rows of `row`
/// elements.
OperandSpec joined_operand(const Val& of, DType type, int64_t row, int64_t offset);
/// Values that nobody uses lose their inputs, so that they keep nothing alive.
void drop_dead(Graph& g);
/// Between simplify and the plan, what nobody reads has no operands.
enum class Dead : uint8_t { Dropped, Allowed };
/// Throws Error(Internal) when an operand is not earlier than its reader, an op has another number
/// of operands than its row and its epilogues say, a shape, type or device is not what follows from
/// the operands, or readers were not counted.
void verify(const Graph& g, Dead dead = Dead::Dropped);
/// The same; the error names the pass that left the graph so.
void check_graph(const Graph& g, const char* pass, Dead dead = Dead::Dropped);
/// Is the graph verified after every pass? In debug builds, and with INGOT_VERIFY=1 (read at each
/// call).
bool checks_graphs();

}  // namespace ingot
