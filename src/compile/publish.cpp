// See publish.h.
#include "compile/publish.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "graph/recorder.h"

namespace ingot {
namespace {

void become_leaf(Node* n, const Ref<Storage>& storage) {
  n->storage = storage;
  n->computed.store(true, std::memory_order_release);
}

// Takes what was computed, and what goes with it, from the recorder's list: all under one lock. As
// soon as an output counts as computed another thread may release what it was computed from, so
// this comes before.
void unlink_all(const Trace& t, const Plan& p, Recorder& rec) {
  std::lock_guard lock(rec.list_lock);
  for (const PlanOutput& o : p.outputs) rec.unlink_locked(t.nodes[o.node]);
  for (size_t i = 0; i < t.nodes.size(); ++i)
    if (t.role[i] & kDies) rec.unlink_locked(t.nodes[i]);
}

// Which nodes of a failed run cannot be trusted: what may itself have met a bad index, and what
// read it or read an assignment that did not happen. The assigned values are the old ones, and
// good.
std::vector<bool> doubtful(const Trace& t) {
  std::unordered_map<const Node*, size_t> number;
  std::vector<bool> bad(t.nodes.size());
  for (size_t i = 0; i < t.nodes.size(); ++i) {
    const Node* n = t.nodes[i];
    number[n] = i;
    if (n->op == Op::Assign) continue;
    bad[i] = info(n->op).may_fail;
    for (Node* in : n->inputs()) {
      auto it = number.find(in);
      bad[i] = bad[i] || (it != number.end() && (bad[it->second] || in->op == Op::Assign));
    }
  }
  return bad;
}

void mark_lost(const Trace& t, const Plan& p, const char* why) {
  auto message = std::make_shared<const std::string>(why);
  std::unordered_set<const Node*> lost;
  for (const PlanOutput& o : p.outputs)
    if (o.donated >= 0) lost.insert(t.leaves[o.donated]);
  for (Node* n : t.nodes) {
    const auto in = n->inputs();
    if (std::none_of(in.begin(), in.end(), [&](const Node* i) { return lost.contains(i); }))
      continue;
    lost.insert(n);
    set_failure(n, message);
  }
}

}  // namespace

void share_storage(Node* n, Node* from) {
  if (n == from || n->computed.load(std::memory_order_relaxed)) return;
  n->storage = from->storage;
  n->computed.store(true, std::memory_order_release);
  n->recorder->unlink(n);
  drop_inputs(n);
}

void publish(const Trace& t, const Plan& p, std::span<const Ref<Storage>> out, Recorder& rec,
             std::vector<NodeRef>& done) {
  unlink_all(t, p, rec);
  for (size_t i = 0; i < out.size(); ++i) {
    Node* n = t.nodes[p.outputs[i].node];
    become_leaf(n, out[i]);
    done.emplace_back(n);
  }
  // A later run meets the same leaf whether a handle names the value or a view of all of it.
  for (auto& [n, from] : t.names)
    if (from->computed.load(std::memory_order_relaxed)) share_storage(n.get(), from);
  for (const NodeRef& n : done) drop_inputs(n.get());
}

void publish_failure(const Trace& t, const Plan& p, std::span<const Ref<Storage>> out,
                     const Error& error) {
  auto message = std::make_shared<const std::string>(error.what());
  std::vector<bool> bad = doubtful(t);
  for (size_t i = 0; i < bad.size(); ++i)
    if (bad[i]) set_failure(t.nodes[i], message);
  std::vector<NodeRef> done;
  for (size_t i = 0; i < out.size(); ++i) {
    Node* n = t.nodes[p.outputs[i].node];
    if (bad[p.outputs[i].node]) continue;
    become_leaf(n, out[i]);
    n->recorder->unlink(n);
    done.emplace_back(n);
  }
  for (const NodeRef& n : done) drop_inputs(n.get());
  throw error;
}

void publish_loss(const Trace& t, const Plan& p, const char* why) noexcept {
  try {
    mark_lost(t, p, why);
  } catch (
      const std::bad_alloc&) {  // a value that is half overwritten must not be taken for a good one
    std::fputs("ingot: no memory is left to note down which values an interrupted run destroyed\n",
               stderr);
    std::abort();
  }
}

}  // namespace ingot
