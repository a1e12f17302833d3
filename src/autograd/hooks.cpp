#include "autograd/hooks.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>

#include "autograd/leaves.h"
#include "graph/leaf.h"
#include "graph/lift.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"

namespace ingot {
namespace autograd {
namespace {

// Where the hooks of a node are kept, or null.
struct Hooks {
  HookList* list = nullptr;
  const void* guarded_by = nullptr;
};
Hooks hooks_of(const Node& n) {
  if (LeafMeta* leaf = n.leaf.get()) return {&leaf->hooks, leaf};
  NodeExt* ext = n.ext.get();
  return ext && ext->hooked ? Hooks{&ext->hooks, ext} : Hooks{};
}
HookList copy_of(const Hooks& h) {
  if (!h.list) return {};
  std::lock_guard lock(side_mutex(h.guarded_by));
  return *h.list;
}

// A second entry that keeps the gradient is not wanted.
void add_hook(Node& n, int id, std::shared_ptr<HookEntry> entry) {
  LeafMeta* leaf = n.leaf.get();
  NodeExt* ext = leaf ? nullptr : &n.extra();
  std::lock_guard lock(side_mutex(leaf ? static_cast<const void*>(leaf) : ext));
  HookList& list = leaf ? leaf->hooks : ext->hooks;
  if (id == kRetain &&
      std::any_of(list.begin(), list.end(), [](auto& h) { return h.first == kRetain; }))
    return;
  if (ext) ext->hooked = true;
  list.emplace_back(id, std::move(entry));
}

void remove_hook(const Node& n, int id) {
  const Hooks h = hooks_of(n);
  if (!h.list) return;
  std::shared_ptr<void> removed;  // released when the lock is
  std::lock_guard lock(side_mutex(h.guarded_by));
  const auto at =
      std::find_if(h.list->begin(), h.list->end(), [id](auto& e) { return e.first == id; });
  if (at == h.list->end()) return;
  removed = std::move(at->second);
  h.list->erase(at);
}

CellRef kept_by(HookEntry& entry) {
  std::lock_guard lock(side_mutex(&entry));
  return entry.retained;
}

// Walks add up, as they do on a leaf.
void keep(HookEntry& entry, const Tensor& grad) {
  add_to(entry.retained, grad, &entry, [] { return true; });
}

}  // namespace

void run_hooks(Node* n, Tensor& grad) {
  for (auto& [id, hook] : copy_of(hooks_of(*n))) {  // a hook may remove itself
    auto* entry = static_cast<HookEntry*>(hook.get());
    if (id == kRetain) {
      keep(*entry, grad);
      continue;
    }
    Tensor changed = entry->fn(grad);
    if (!changed.defined()) continue;
    const NodeRef got = node_of(changed), had = node_of(grad);
    if (!(got->shape == had->shape) || got->dtype != had->dtype || got->device != had->device)
      throw Error(ErrorKind::Autograd, "register_hook",
                  "a hook returned " + describe(got) + " for a gradient that is " + describe(had),
                  n->loc,
                  "return a tensor like the gradient, or an undefined Tensor to leave it as it is");
    grad = changed;
  }
}

std::optional<CellRef> retained_gradient(const Node* n) {
  if (n->leaf) return {};
  for (auto& [id, hook] : copy_of(hooks_of(*n)))
    if (id == kRetain) return kept_by(*static_cast<HookEntry*>(hook.get()));
  return {};
}

void retain_grad(Node* n) { add_hook(*n, kRetain, std::make_shared<HookEntry>()); }

}  // namespace autograd

void HookHandle::remove() {
  if (remove_) std::exchange(remove_, nullptr)();
}

HookHandle register_hook(const Tensor& t, std::function<Tensor(const Tensor&)> hook,
                         SourceLoc loc) {
  static std::atomic<int> next{autograd::kRetain + 1};
  if (!t.requires_grad(loc))
    throw Error(ErrorKind::Autograd, "register_hook",
                "the tensor does not require a gradient, so no hook would be called", user_loc(loc),
                "call requires_grad_() on it first");
  NodeRef n(node_of(t));
  int id = next.fetch_add(1);
  autograd::add_hook(
      *n, id, std::make_shared<autograd::HookEntry>(autograd::HookEntry{std::move(hook), {}}));
  return HookHandle([n, id] { autograd::remove_hook(*n, id); });
}

}  // namespace ingot
