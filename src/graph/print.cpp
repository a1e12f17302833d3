// Words for nodes: one node in an error message, a whole graph for debugging.
#include <algorithm>
#include <unordered_set>

#include "graph/leaf.h"
#include "graph/node.h"

namespace ingot {

std::string describe(const Node& n) {
  std::string s = std::string(name_of(n.dtype)) + to_string(n.shape) + " on " + n.device.name();
  const std::string* name = n.leaf && !n.leaf->name.empty() ? &n.leaf->name : n.ext ? &n.ext->name : nullptr;
  if (name && !name->empty()) s += " (" + *name + ")";
  return s;
}

std::string dump(std::span<Node* const> roots) {
  std::vector<const Node*> found, todo(roots.begin(), roots.end());
  std::unordered_set<const Node*> seen;
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (!seen.insert(n).second) continue;
    found.push_back(n);
    for (Node* i : n->inputs()) todo.push_back(i);
  }
  std::sort(found.begin(), found.end(), [](const Node* a, const Node* b) { return a->seq < b->seq; });
  std::string s;
  for (const Node* n : found) {
    s += "%" + std::to_string(n->seq) + " = " + info(n->op).name + "(";
    for (size_t i = 0; i < n->inputs().size(); ++i)
      s += (i ? ", %" : "%") + std::to_string(n->inputs()[i]->seq);
    const std::string attrs = n->attrs.text();
    if (!attrs.empty()) s += (n->n_inputs ? ", " : "") + attrs;
    s += ") : " + describe(*n);
    if (n->computed.load(std::memory_order_acquire)) s += " computed";
    if (n->loc.line) s += std::string("  # ") + n->loc.file + ":" + std::to_string(n->loc.line);
    s += "\n";
  }
  return s;
}

}  // namespace ingot
