// What fills the arena when it is fullest: DryRun::largest(), which `ingot plan` shows.
#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include "compile/launch_times.h"
#include "graph/layer_log.h"
#include "graph/thread_state.h"
#include "ingot/profile.h"

namespace ingot {

struct DryRunUses {
  std::map<std::pair<int, int>, ArenaUse> of;  // by device
};

namespace {

std::map<std::pair<int, int>, ArenaUse>& noted() {
  std::shared_ptr<DryRunUses>& uses = thread_lists().dry_runs;
  if (!uses) uses = std::make_shared<DryRunUses>();
  return uses->of;
}
std::pair<int, int> key_of(const Device& d) { return {static_cast<int>(d.type()), d.index()}; }

enum class Part : uint8_t { Weight, Activation, Gradient };

// Was a node recorded by the forward or by the backward pass? What needs a gradient is forward, and
// so is what depends on nothing that needs one; what is computed from such values without history
// is backward. Without any history (a test) all are activations.
class Ways {
 public:
  explicit Ways(const Trace& t) {
    for (const Node* leaf : t.leaves) seen_[leaf] = {leaf->requires_grad, !leaf->requires_grad};
    for (const Node* n : t.nodes) {
      Seen s{n->requires_grad, false};
      for (const Node* in : n->inputs()) {
        const auto found = seen_.find(in);
        if (found == seen_.end()) continue;
        s.trained = s.trained || found->second.trained;
        s.data = s.data || found->second.data;
      }
      seen_[n] = s;
      history_ = history_ || n->requires_grad;
    }
  }
  Part operator()(const Node* n) const {
    const Seen s = seen_.at(n);
    if (s.trained && !s.data) return Part::Weight;
    return n->requires_grad || !s.trained || !history_ ? Part::Activation : Part::Gradient;
  }

 private:
  struct Seen {
    bool trained, data;  // depends on what is trained, on what is not
  };
  std::unordered_map<const Node*, Seen> seen_;
  bool history_ = false;
};

// The step at which most of an arena is in use.
int fullest(const Plan& p, const Device& device) {
  std::vector<double> change(p.steps.size() + 1);
  for (const Plan::Value& v : p.arena_values) {
    if (p.graph.vals[static_cast<size_t>(v.val)].device != device) continue;
    change[static_cast<size_t>(v.first)] += static_cast<double>(v.bytes);
    change[static_cast<size_t>(v.last) + 1] -= static_cast<double>(v.bytes);
  }
  double now = 0, most = -1;
  size_t best = 0;
  for (size_t s = 0; s < p.steps.size(); ++s) {
    now += change[s];
    const Step& step = p.steps[s];
    const double scratch =
        step.exe && step.device == device ? static_cast<double>(step.exe->scratch_bytes) : 0;
    if (now + scratch > most) most = now + scratch, best = s;
  }
  return static_cast<int>(best);
}

// The node that says which layer computed a value: of a product with an epilogue, the product's.
const Node* origin(const Val& val, const Node* node) {
  const Node* n = node;
  while (is_library(val.op) && n->op != val.op && !n->inputs().empty()) n = n->inputs()[0];
  return n->op == val.op ? n : node;
}

ArenaUse use_of(const Plan& p, const Trace& t, const Device& device, size_t bytes) {
  const Ways ways(t);
  const int peak = fullest(p, device);
  // Memory is reused by one value after another: it holds the last one that a step up to here uses.
  std::map<size_t, int> there;
  for (int s = 0; s <= peak; ++s) {
    const Step& step = p.steps[static_cast<size_t>(s)];
    for (size_t b = 0; b < step.buffers.size(); ++b)
      if (step.buffers[b].place == Binding::Arena &&
          p.graph.vals[static_cast<size_t>(step.vals[b])].device == device)
        there[step.buffers[b].offset] = step.vals[b];
  }
  ArenaUse use;
  use.bytes = static_cast<double>(bytes);
  std::vector<std::pair<uint64_t, double>> activations;  // by the number of their node
  for (const Plan::Value& v : p.arena_values) {
    if (v.first > peak || v.last < peak ||
        p.graph.vals[static_cast<size_t>(v.val)].device != device)
      continue;
    const auto found = there.find(v.offset);
    const Val& val =
        p.graph.vals[static_cast<size_t>(found == there.end() ? v.val : found->second)];
    const Node* node = val.node >= 0 ? t.nodes[static_cast<size_t>(val.node)] : nullptr;
    const Part part = node ? ways(node) : Part::Activation;
    const auto size = static_cast<double>(v.bytes);
    (part == Part::Weight       ? use.weights
     : part == Part::Activation ? use.activations
                                : use.gradients) += size;
    if (part == Part::Activation) activations.emplace_back(node ? origin(val, node)->seq : 0, size);
  }
  use.workspace = use.bytes - use.weights - use.activations - use.gradients;
  std::sort(activations.begin(), activations.end());
  for (const auto& [seq, size] : activations) {
    std::string layer = layer_of(layer_log().calls, seq);
    layer = layer.substr(0, std::min(layer.find('('), layer.size()));  // "h.0 (GPTBlock)"
    while (layer.ends_with(' ')) layer.pop_back();
    const auto at = std::find_if(use.layers.begin(), use.layers.end(),
                                 [&](const auto& l) { return l.first == layer; });
    if (at == use.layers.end())
      use.layers.emplace_back(layer, size);
    else
      at->second += size;
  }
  return use;
}

}  // namespace

void clear_dry_runs() { noted().clear(); }

void note_dry_run(const Plan& p, const Trace& t) {
  for (const PlanArena& a : p.arenas) {
    ArenaUse& known = noted()[key_of(a.device)];
    if (static_cast<double>(a.bytes) > known.bytes) known = use_of(p, t, a.device, a.bytes);
  }
}

ArenaUse DryRun::largest(const Device& device) const {
  const auto found = noted().find(key_of(device));
  return found == noted().end() ? ArenaUse{} : found->second;
}

}  // namespace ingot
