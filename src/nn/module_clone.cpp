// clone(): while a CloneScope lives on a thread, copying a handle of a module in it
// yields a handle of that module's copy. So the implicit copy constructor of a class puts
// the new layers into its fields.
#include <memory>
#include <unordered_map>

#include "graph/leaf.h"
#include "graph/thread_state.h"
#include "ingot/runtime.h"
#include "nn/module_state.h"
#include "ops/common.h"

namespace ingot::nn {

struct CloneMap {
  std::unordered_map<const void*, std::shared_ptr<Module::State>> states;
  std::unordered_map<const Cell*, Tensor> tensors;
  std::vector<std::pair<Tensor, uint32_t>> originals;  // and how many handles there were of each
  std::vector<std::string> names;
  CloneMap* outer = nullptr;

  static CloneMap*& current() { return this_thread.clones; }

  Tensor copy_of(const Tensor& t) {
    const auto found = tensors.find(t.cell());
    if (found != tensors.end()) return found->second;
    Tensor copy = t.detach().clone().eval_();
    if (t.cell()->meta) {
      copy.requires_grad_(true);
      if (!t.requires_grad()) copy.requires_grad_(false);
    }
    tensors.emplace(t.cell(), copy);
    return copy;
  }

  // States first, with their tensors; then the parts, whose copy constructors look the states up
  // here.
  std::shared_ptr<Module::State> make(Module::State& s) {
    std::shared_ptr<Module::State>& made = states[&s];
    if (made) return made;
    made = std::make_shared<Module::State>();
    std::shared_ptr<Module::State> copy = made;
    copy->training = s.training;
    copy->placed = s.placed;
    copy->returns = s.returns;
    for (const auto& e : s.tensors)
      copy->tensors.push_back({e.name, copy_of(e.tensor), e.trained, e.persistent});
    for (const auto& p : s.parts) make(*p.module->state_)->parent = copy;
    return copy;
  }
  void make_parts(Module::State& s) {
    std::shared_ptr<Module::State> copy = states.at(&s);
    if (!copy->parts.empty()) return;
    for (const auto& p : s.parts) {
      make_parts(*p.module->state_);
      copy->parts.push_back({p.name, p.copy(*p.module), p.copy});
    }
  }
};

namespace detail {

bool is_cloning() { return CloneMap::current() != nullptr; }

Tensor cloned(const Tensor& t) {
  const CloneMap* map = CloneMap::current();
  if (!map || !t.defined()) return t;
  const auto found = map->tensors.find(t.cell());
  return found == map->tensors.end() ? t : found->second;
}

}  // namespace detail

Module::Module(const Module& other) : state_(other.state_) {
  if (const CloneMap* map = CloneMap::current()) [[unlikely]]
    if (const auto found = map->states.find(state_.get()); found != map->states.end())
      state_ = found->second;
}

CloneScope::CloneScope(const Module& original, SourceLoc loc)
    : map_(new CloneMap), loc_(user_loc(loc)) {
  LocScope scope(loc_);
  Module::State& s = *original.state_;
  map_->make(s);
  Module::State::each_tensor(s, "", [&](const std::string& path, const Module::State::Entry& e) {
    map_->originals.emplace_back(e.tensor, 0);
    map_->names.push_back(path);
  });
  for (auto& [t, n] : map_->originals) n = t.cell()->refs.load();
  map_->outer = CloneMap::current();
  CloneMap::current() = map_;
  map_->make_parts(s);
  map_->states.at(&s)->parent.reset();
  Module named = original;  // the clone: its parameters get their paths
  for (auto& [path, t] : named.named_parameters()) t.set_name(path);
}

CloneScope::~CloneScope() {
  CloneMap::current() = map_->outer;
  delete map_;
}

void CloneScope::check() const {
  for (size_t i = 0; i < map_->originals.size(); ++i) {
    const auto& [t, before] = map_->originals[i];
    if (t.cell()->refs.load() > before)
      fail(ErrorKind::State, "clone",
           "the copy would still use the original's \"" + map_->names[i] +
               "\", which the class holds as a Tensor",
           loc_, "declare the field as nn::Parameter instead of Tensor");
  }
}

}  // namespace ingot::nn
