#include "autograd/hooks.h"

#include <atomic>
#include <functional>
#include <memory>

#include "autograd/lift.h"
#include "graph/leaf.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"

namespace ingot {
namespace autograd {
namespace {

using HookList = std::vector<std::pair<int, std::shared_ptr<void>>>;

HookList* hooks_of(Node* n) {
  if (n->leaf) return &n->leaf->hooks;
  return n->ext ? &n->ext->hooks : nullptr;
}

// Walks add up, as they do on a leaf.
void keep(HookEntry& entry, const Tensor& grad) {
  if (!entry.retained)
    entry.retained = make_cell(NodeRef(node_of(grad)));
  else
    entry.retained->rebind(NodeRef(node_of(lift(entry.retained->node) + grad)));
}

}  // namespace

void run_hooks(Node* n, Tensor& grad) {
  HookList* list = hooks_of(n);
  if (!list || list->empty()) return;
  HookList hooks = *list;  // a hook may remove itself
  for (auto& [id, hook] : hooks) {
    auto* entry = static_cast<HookEntry*>(hook.get());
    if (id == kRetain) {
      keep(*entry, grad);
      continue;
    }
    Tensor changed = entry->fn(grad);
    if (!changed.defined()) continue;
    const Node &got = *node_of(changed), &had = *node_of(grad);
    if (!(got.shape == had.shape) || got.dtype != had.dtype || got.device != had.device)
      throw Error(ErrorKind::Autograd, "register_hook",
                  "a hook returned " + describe(got) + " for a gradient that is " + describe(had), n->loc,
                  "return a tensor like the gradient, or an undefined Tensor to leave it as it is");
    grad = changed;
  }
}

HookEntry* retained_entry(const Node* n) {
  if (n->ext)
    for (auto& [id, hook] : n->ext->hooks)
      if (id == kRetain) return static_cast<HookEntry*>(hook.get());
  return nullptr;
}

void retain_grad(Node* n) {
  if (!retained_entry(n)) n->extra().hooks.emplace_back(kRetain, std::make_shared<HookEntry>());
}

}  // namespace autograd

void HookHandle::remove() {
  if (remove_) std::exchange(remove_, nullptr)();
}

HookHandle register_hook(const Tensor& t, std::function<Tensor(const Tensor&)> hook, SourceLoc loc) {
  static std::atomic<int> next{autograd::kRetain + 1};
  if (!t.requires_grad(loc))
    throw Error(ErrorKind::Autograd, "register_hook",
                "the tensor does not require a gradient, so no hook would be called", user_loc(loc),
                "call requires_grad_() on it first");
  NodeRef n(autograd::node_of(t));
  int id = next.fetch_add(1);
  auto entry = std::make_shared<autograd::HookEntry>(autograd::HookEntry{std::move(hook), {}});
  if (n->leaf)
    n->leaf->hooks.emplace_back(id, entry);
  else
    n->extra().hooks.emplace_back(id, entry);
  return HookHandle([n, id] {
    if (auto* list = autograd::hooks_of(n.get()))
      std::erase_if(*list, [id](auto& h) { return h.first == id; });
  });
}

}  // namespace ingot
