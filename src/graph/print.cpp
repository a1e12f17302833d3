// Words for nodes: one node in an error message, a whole graph for debugging.
#include <algorithm>
#include <unordered_set>

#include "graph/leaf.h"
#include "graph/node.h"

namespace ingot {

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
    s += "%" + std::to_string(n->seq) + " = " + name_of(n->op, n->attrs) + "(";
    for (size_t i = 0; i < in.size(); ++i) s += (i ? ", %" : "%") + std::to_string(in[i]->seq);
    const std::string attrs = n->attrs.text();
    if (!attrs.empty()) s += (in.empty() ? "" : ", ") + attrs;
    s += ") : " + describe(*n);
    if (n->computed.load(std::memory_order_acquire)) s += " computed";
    if (n->loc.line) s += std::string("  # ") + n->loc.file + ":" + std::to_string(n->loc.line);
    s += "\n";
  }
  return s;
}

}  // namespace ingot
