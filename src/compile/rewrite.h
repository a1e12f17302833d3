// The graph rewriter. A rule is a row: a pattern that is looked for at every value, in order, and a
// function that rewrites what it found. The rewriter keeps track of readers, of what survives the
// run and of the order, so a rule says only what becomes of the values.
#pragma once
#include <array>
#include <initializer_list>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "compile/ir.h"

namespace ingot {

class Rewriter {
 public:
  explicit Rewriter(Graph& g);

  const Graph& graph() const { return g_; }
  const Val& operator[](int v) const { return g_.vals[static_cast<size_t>(v)]; }
  /// For fields that are neither inputs nor survival: epilogues, stride, copied.
  Val& edit(int v) { return g_.vals[static_cast<size_t>(v)]; }
  /// How many operands read v; it is counted once more if it is an output.
  int users(int v) const;
  /// The one value that reads v, if there is one.
  int reader(int v) const;
  /// Does one operand read v, and is it no output?
  bool used_once(int v) const;

  // New values. They are computed just before the value that is being rewritten: the rule's root,
  // unless the rule names another.
  void rewriting(int v) { now_ = v; }
  int compute(Op op, DType type, const Dims& shape, std::initializer_list<int> in,
              Attributes attrs = {});
  int view(Op op, int of, const Dims& shape, Attributes attrs = {});
  int cast(int v, DType type);
  int constant(double x, DType type, const Device& device);

  /// A value that several matches share, made by the first: -1 until it is set.
  int& shared(const std::vector<int64_t>& key) {
    return shared_.try_emplace(key, -1).first->second;
  }

  void set_input(int v, int k, int to);
  void add_input(int v, int in);
  /// Another op in v's place, of the same type and shape.
  void become(int v, Op op, std::initializer_list<int> in, Attributes attrs = {});
  /// From now on v is a view of `with`, which has as many elements and takes over what v is known
  /// by: its node, that it survives the run, that a gradient may be asked through it.
  void replace(int v, int with);

  /// Values that nobody reads are dropped, inputs come first again, readers are counted.
  void settle();

 private:
  friend bool rewrite(Graph& g, std::span<const struct Rule> rules);

  int push(Val v);
  void read(int v, int reader, int sign);
  void drop_inputs(int v);
  void sort();

  Graph& g_;
  std::vector<int> reads_;  // operands that name each value
  std::vector<int>
      readers_;             // their values, combined by exclusive or: the one reader, if it is one
  std::vector<int> place_;  // the original value that it precedes (itself, if it is original)
  int now_ = -1;            // the value that is being rewritten
  bool unsorted_ = false;
  std::map<std::vector<int64_t>, int> shared_;
};

/// What a pattern has captured, by the numbers that the rule gives to its values.
struct Match {
  int root = -1;
  std::array<int, 8> captured{-1, -1, -1, -1, -1, -1, -1, -1};
  int operator[](int number) const { return captured[static_cast<size_t>(number)]; }
};

/// A pattern of values: an op with patterns for its operands, or any value.
class Pattern {
 public:
  Pattern(Op op, std::initializer_list<Pattern> in = {}) : op_(op), in_(in) {}
  static Pattern any() { return Pattern(Op::Count_); }

  Pattern as(int number) const;
  /// One operand reads it, and it is no output.
  Pattern once() const;
  /// Also with its two operands exchanged.
  Pattern commutative() const;
  /// Also through a reshape that keeps rows ([B * T, N] -> [B, T, N]) and is used once.
  Pattern rows() const;
  Pattern where(bool (*accepts)(const Rewriter& r, int v)) const;

  Op op() const { return op_; }
  bool matches(const Rewriter& r, int v, Match& m) const;

 private:
  bool matches_inputs(const Rewriter& r, int v, Match& m, bool exchanged) const;

  Op op_;
  std::vector<Pattern> in_;
  int number_ = -1;
  bool once_ = false, commutative_ = false, rows_ = false;
  bool (*accepts_)(const Rewriter&, int) = nullptr;
};

struct Rule {
  const char* name;
  Pattern pattern;
  /// False: it was no match after all, nothing was changed.
  bool (*apply)(Rewriter& r, const Match& m);
};

/// Tries the rules at every value, in order of the values; at one value the first that applies is
/// the only one. True when any was applied.
bool rewrite(Graph& g, std::span<const Rule> rules);

// The rows of each set, in the order in which the sets are applied
std::span<const Rule> transposed_product_rules();
std::span<const Rule> epilogue_rules();
std::span<const Rule> fold_conv_rules();
std::span<const Rule> space_to_depth_rules();
std::span<const Rule> join_attention_rules();
/// The names of all rules, those included that are no row (kBiasGradient).
std::vector<std::string_view> rule_names();
inline constexpr const char* kBiasGradient = "bias's gradient of a product";

/// The call of v as a backend is asked about it: dense operands in row-major order.
LibrarySpec abstract_call(const Graph& g, int v);
/// A graph of v and its operands alone, v first.
Graph call_alone(const Graph& g, int v);
/// Does the kernel that runs v take one epilogue more, with this operand if it reads one?
bool takes_epilogue(const Graph& g, int v, Epilogue e, int operand = -1);

}  // namespace ingot
