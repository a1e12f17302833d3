// Words for nodes: the table of ops by name, one node in an error message, a whole graph for debugging.
#include <algorithm>
#include <unordered_set>

#include "graph/leaf.h"
#include "graph/node.h"
#include "graph/program.h"

namespace ingot {

const OpInfo& info(Op op) {
  static constexpr OpInfo table[] = {
      {"leaf", 0, TypeRule::Same, false},
      {"const", 0, TypeRule::Same, false},
      {"arg", 0, TypeRule::Same, false},
      {"iota", 0, TypeRule::Same, false},
      {"random", 0, TypeRule::Same, false},
      {"reshape", 1, TypeRule::Same, false},
      {"permute", 1, TypeRule::Same, false},
      {"expand", 1, TypeRule::Same, false},
      {"slice", 1, TypeRule::Same, false},
      {"window", 1, TypeRule::Same, false},
      {"pad", 1, TypeRule::Same, false},
      {"cast", 1, TypeRule::Same, true},
      {"where", 3, TypeRule::Same, true},
      {"uniform", 1, TypeRule::Same, true},
      {"alias", 1, TypeRule::Same, false},
      {"fence", 2, TypeRule::Same, false},
      {"assign", 2, TypeRule::Same, false},
      {"slice_assign", 2, TypeRule::Same, false},
      {"to_device", 1, TypeRule::Same, false},
      {"sum", 1, TypeRule::Same, false},
      {"prod", 1, TypeRule::Same, false},
      {"max", 1, TypeRule::Same, false},
      {"min", 1, TypeRule::Same, false},
      {"argmax", 1, TypeRule::Same, false},
      {"argmin", 1, TypeRule::Same, false},
      {"gather", 2, TypeRule::Same, false},
      {"scatter_add", 2, TypeRule::Same, false},
      {"scatter", 3, TypeRule::Same, false},
      {"scan", 1, TypeRule::Same, false},
      {"sort", 1, TypeRule::Same, false},
      {"attention", 255, TypeRule::Same, false},
      {"attention_grad", 255, TypeRule::Same, false},
      {"lstm", 4, TypeRule::Same, false},
      {"lstm_grad", 6, TypeRule::Same, false},
      {"pick", 1, TypeRule::Same, false},
      {"conv", 2, TypeRule::Same, false},
      {"conv_grad_input", 2, TypeRule::Same, false},
      {"conv_grad_weight", 2, TypeRule::Same, false},
      {"fold", 255, TypeRule::Same, false},
      {"cat", 255, TypeRule::Same, false},
      {"linalg", 255, TypeRule::Same, false},
      {"program", 255, TypeRule::Same, false},
      {"matmul", 2, TypeRule::Same, false},
#define INGOT_EW(E, name, arity, rule, expr, ga, gb) {#name, arity, TypeRule::rule, true},
#include "graph/elementwise.def"
#undef INGOT_EW
  };
  static_assert(sizeof table / sizeof *table == static_cast<size_t>(Op::Count_), "one row for each op");
  return table[static_cast<int>(op)];
}

std::string describe(const Node& n) {
  std::string s = std::string(name_of(n.dtype)) + to_string(n.shape) + " on " + n.device.name();
  const std::string name = name_of(n, n.leaf.get());
  return name.empty() ? s : s + " (" + name + ")";
}

std::string name_of(const Node& n, LeafMeta* leaf) {
  const auto copy = [](const auto* of) {
    if (!of) return std::string();
    std::lock_guard lock(side_mutex(of));
    return of->name;
  };
  const std::string name = copy(leaf);
  return name.empty() ? copy(n.ext.get()) : name;
}

namespace {

std::string attributes(const Node& n) {
  std::string s;
  switch (n.op) {
    case Op::Const:
      s = is_float(n.dtype) ? std::to_string(n.imm_f) : std::to_string(n.imm_i);
      break;
    case Op::Arg:
      s = std::to_string(n.imm_f);
      break;
    case Op::Random:
      s = "offset=" + std::to_string(n.imm_i);
      break;
    case Op::Permute:
      s = to_string(n.ext ? n.ext->d0 : Dims{});
      break;
    case Op::Slice:
    case Op::SliceAssign:
      if (n.ext) s = "start=" + to_string(n.ext->d0) + " step=" + to_string(n.ext->d1);
      break;
    case Op::Pad:
      if (n.ext) s = "front=" + to_string(n.ext->d0) + " value=" + std::to_string(n.imm_f);
      break;
    case Op::Window:
    case Op::Fold:
    case Op::Conv:
    case Op::ConvGradInput:
    case Op::ConvGradWeight:
      if (n.ext) s = to_string(n.ext->d0) + " " + to_string(n.ext->d1);
      if (n.imm_i > 1) s += " groups=" + std::to_string(n.imm_i);
      break;
    case Op::Gather:
    case Op::ScatterAdd:
    case Op::Cat:
      s = "dim=" + std::to_string(n.imm_i);
      break;
    case Op::Scatter:
    case Op::Scan:
    case Op::Sort:
      s = "dim=" + std::to_string(n.imm_i) + " mode=" + std::to_string(n.mask);
      break;
    case Op::Linalg:
      s = "kind=" + std::to_string(n.imm_i & 255) + " flags=" + std::to_string(n.imm_i >> 8);
      break;
    case Op::Program:
      s = std::to_string(n.ext && n.ext->program ? n.ext->program->steps.size() : 0) + " ops";
      break;
    default:
      if (is_reduce(n.op)) {
        Dims d;
        for (int i = 0; i < kMaxDims; ++i)
          if (n.mask >> i & 1) d.push_back(i);
        s = "dims=" + to_string(d);
      }
  }
  return s;
}

}  // namespace

std::string dump(std::span<Node* const> roots) {
  struct Found {
    NodeRef node;
    std::vector<NodeRef> in;
  };
  std::vector<Found> found;
  std::vector<NodeRef> todo(roots.begin(), roots.end());
  std::unordered_set<const Node*> seen;
  while (!todo.empty()) {
    const NodeRef n = std::move(todo.back());
    todo.pop_back();
    if (!seen.insert(n).second) continue;
    Found& f = found.emplace_back(Found{n, {}});
    hold_inputs(*n, f.in);
    todo.insert(todo.end(), f.in.begin(), f.in.end());
  }
  std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.node->seq < b.node->seq; });
  std::string s;
  for (const auto& [n, in] : found) {
    s += "%" + std::to_string(n->seq) + " = " + info(n->op).name + "(";
    for (size_t i = 0; i < in.size(); ++i) s += (i ? ", %" : "%") + std::to_string(in[i]->seq);
    std::string attrs = attributes(*n);
    if (!attrs.empty()) s += (in.empty() ? "" : ", ") + attrs;
    s += ") : " + describe(*n);
    if (n->computed.load(std::memory_order_acquire)) s += " computed";
    if (n->loc.line) s += std::string("  # ") + n->loc.file + ":" + std::to_string(n->loc.line);
    s += "\n";
  }
  return s;
}

}  // namespace ingot
