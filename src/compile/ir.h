// The compiler's own picture of a run: the traced nodes as an array of values in recording order,
// which is a topological order. Passes annotate it (simplify, views, group) and finally lower it to
// a Plan.
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

/// Matmul: GELU (by tanh) of what it gives, alone or (Both) beside it as result 1; or what it gives
/// times GELU's derivative at input 2.
enum class Gelu : uint8_t { None, Result, Both, Gradient };

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
  bool alone =
      false;          // begins a kernel of its own (an index map did not fit the one it would join)
  bool bias = false;  // Matmul: input 2 is added to every row
  bool relu = false;  // Matmul, Conv: negative results become 0
  bool residual = false;  // Conv: the last input, of the result's shape, is added
  Gelu gelu = Gelu::None;
  Dims joined_at;  // AttentionGrad: where its three results begin in the rows of one buffer, or
                   // empty
  bool bias_grad = false;  // Matmul: result 1 is the sum over the columns of input 0
  bool relu_grad = false;  // Matmul: 0 where input 2 is not positive
  Dims stride;  // of its buffer, when material; row-major unless a library op chose otherwise

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
    return gelu == Gelu::Both || bias_grad ? 2 : info(op).results;
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

/// Rewrites that change no bit of a result: common subexpressions, movement ops that do nothing,
/// chains of the same movement, dead values. Ids stay; replaced values get `replaced[id]`.
void simplify(Graph& g);
/// The transpose of a product of a transposed value -> the product the other way round, so that its
/// rows lie as they are read.
void turn_products(Graph& g);
/// The physical order of convolutions' operands and results: channels innermost, where the backend
/// wants that. What must stay as it is (leaves, what survives the run) is copied.
void choose_layouts(Graph& g);
/// Matmul + bias, ReLU, ReLU's gradient -> one library call with an epilogue, where the backend
/// can.
void fuse_epilogues(Graph& g);
/// GELU and its gradient -> epilogues of the products beside them, where the backend can.
void fuse_gelu(Graph& g);
/// A bias's gradient -> a second result of the product that gives its weight's, where the backend
/// can.
void fuse_bias_gradients(Graph& g);
/// Gradients of q, k and v that are put together -> written together by attention's gradient.
void join_attention_gradients(Graph& g);
/// One of them as an operand of the call: the gradient of `of`, at `offset` in rows of `row`
/// elements.
OperandSpec joined_operand(const Val& of, DType type, int64_t row, int64_t offset);
/// Values that nobody uses lose their inputs, so that they keep nothing alive.
void drop_dead(Graph& g);
/// Throws Error(Internal) when an input is not earlier than its user, or a shape is wrong. Debug
/// builds run it between passes.
void verify(const Graph& g);

}  // namespace ingot
