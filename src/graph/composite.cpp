#include "graph/composite.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>

#include "base/fork.h"
#include "base/hash.h"
#include "graph/engine.h"
#include "graph/lift.h"
#include "graph/recorder.h"
#include "graph/thread_state.h"

namespace ingot {

const Composite* find_composite(const char* name, Composite::Body body,
                                std::span<const CompositeParam> params) {
  struct Known {
    ForkMutex<ForkOrder::Small> mutex;
    std::unordered_multimap<uint64_t, const Composite*> all;
  };
  static Known* known = new Known;
  Hasher h;
  h.add(reinterpret_cast<uintptr_t>(body));
  for (const CompositeParam& p : params) h.add(static_cast<uint64_t>(p.bits));
  std::lock_guard lock(known->mutex);
  const auto [first, last] = known->all.equal_range(h.value());
  for (auto at = first; at != last; ++at) {
    const Composite& c = *at->second;
    const bool same =
        std::equal(params.begin(), params.end(), c.params.begin(), c.params.end(),
                   [](const CompositeParam& p, int64_t bits) { return p.bits == bits; });
    if (c.body == body && same) return at->second;
  }
  auto* made = new Composite{static_cast<int64_t>(known->all.size()) + 1, name, body, {}};
  for (const CompositeParam& p : params) made->params.push_back(p.bits);
  known->all.emplace(h.value(), made);
  return made;
}

namespace {

std::array<Decomposition, static_cast<size_t>(Op::Count_)> decompositions;

std::vector<Tensor> decompose_composite(Op, const OpSpec& call,
                                        const std::vector<Tensor>& operands) {
  return {(*call.attrs.as<CompositeAttrs>().what)(operands, call.dtype)};
}

/// What is recorded while one lives is in a recorder of its own, by the ops themselves: no history,
/// no Autocast, nothing runs.
class Aside {
 private:
  struct Side {
    Recorder& mine = take_side_recorder();
    ~Side() { leave_side_recorder(mine); }
  } side_;
  ThreadScope<&ThreadState::recorder> recorder_{&side_.mine};
  ThreadScope<&ThreadState::aside> aside_{true};
  ThreadScope<&ThreadState::grad> grad_{false};
  ThreadScope<&ThreadState::autocast> autocast_{false};
  ThreadScope<&ThreadState::check> check_{Check::None};
  ThreadScope<&ThreadState::random_uses> random_{nullptr};
};

// The steps that lead from the operands to the results, in order of recording.
Decomposed steps_between(std::span<const NodeRef> operands, std::span<const NodeRef> results) {
  std::unordered_map<const Node*, int> number;
  for (size_t k = 0; k < operands.size(); ++k)
    number.try_emplace(operands[k].get(), -1 - static_cast<int>(k));
  std::vector<const Node*> todo, steps;
  for (const NodeRef& r : results) todo.push_back(r.get());
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (!number.try_emplace(n, 0).second) continue;
    if (n->op == Op::Leaf || n->op == Op::Random || n->op == Op::Arg || n->op == Op::Call)
      throw Error(ErrorKind::Internal, "decompose",
                  std::string("a decomposition holds ") + info(n->op).name);
    steps.push_back(n);
    for (const Node* i : n->inputs()) todo.push_back(i);
  }
  std::sort(steps.begin(), steps.end(),
            [](const Node* a, const Node* b) { return a->seq < b->seq; });
  Decomposed d;
  for (const Node* n : steps) {
    RecordedStep s{n->op, {n->attrs, n->shape, n->dtype, n->device}, {}};
    for (const Node* i : n->inputs()) s.in.push_back(number.at(i));
    number[n] = static_cast<int>(d.steps.size());
    d.steps.push_back(std::move(s));
  }
  for (const NodeRef& r : results) d.results.push_back(number.at(r.get()));
  return d;
}

}  // namespace

void set_decomposition(Op op, Decomposition f) { decompositions[static_cast<size_t>(op)] = f; }

Decomposition decomposition_of(Op op) {
  engine();  // whoever makes it registers them
  return op == Op::Composite ? decompose_composite : decompositions[static_cast<size_t>(op)];
}

void record_decomposition(Op op, const OpSpec& call, std::span<const OperandType> operands,
                          const std::function<void(std::span<const NodeRef> operands,
                                                   std::span<const NodeRef> results)>& read) {
  Aside aside;
  std::vector<NodeRef> leaves, results;
  std::vector<Tensor> handles;
  for (const OperandType& o : operands) {
    NodeRef leaf = make_leaf({}, o.dtype, o.shape, o.device);
    leaf->awaited = true;  // its bytes are no batch's
    leaves.push_back(leaf);
    handles.push_back(lift(std::move(leaf)));
  }
  for (const Tensor& t : decomposition_of(op)(op, call, handles))
    results.push_back(t.defined() ? node_of(t) : leaves[0]);
  read(leaves, results);
}

Decomposed decompose(Op op, const OpSpec& call, std::span<const OperandType> operands) {
  Decomposed d;
  record_decomposition(op, call, operands,
                       [&](auto leaves, auto results) { d = steps_between(leaves, results); });
  return d;
}

std::string name_of(Op op, const Attributes& attrs) {
  if (op != Op::Composite && op != Op::CompositeGrad) return info(op).name;
  const std::string name = attrs.as<CompositeAttrs>().what->name;
  return op == Op::Composite ? name : "gradient of " + name;
}

}  // namespace ingot
