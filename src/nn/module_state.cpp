// All tensors of a module together: moved to another device or type, saved to a dictionary and
// loaded, parts placed on other devices. Moving rebinds the cells of the tensors, so that every
// handle on them, tied or not, sees the new value.
#include "nn/module_state.h"

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "graph/leaf.h"
#include "ingot/autograd.h"
#include "ingot/runtime.h"
#include "nn/layer_common.h"

namespace ingot::nn {

std::string LoadReport::text() const {
  std::string s;
  const auto list = [&](const char* what, const std::vector<std::string>& names) {
    for (const std::string& n : names) s += (s.empty() ? "" : "\n") + std::string(what) + n;
  };
  list("missing: ", missing);
  list("unexpected: ", unexpected);
  list("wrong shape: ", misshapen);
  return s;
}

void replace_value(const Tensor& t, const Tensor& value) {
  Cell* cell = t.cell();
  NodeRef n = value.cell()->current();
  if (n.get() == cell->current()) return;
  std::string name = t.name();
  if (LeafMeta* meta = cell->meta.get()) {
    NoGrad guard;
    if (n->leaf && n->leaf.get() != meta)
      n = record(Op::Alias, {n}, {}, user_loc(SourceLoc::current()));
    n->leaf.set(meta);
    n->requires_grad = meta->requires_grad;
  }
  cell->rebind(std::move(n));
  if (!name.empty()) Tensor(t).set_name(std::move(name));
}

namespace {

// Converts every tensor by `convert`; everything is computed before the first one changes.
template <class F>
void convert_all(const NamedTensors& tensors, F&& convert, const SourceLoc& loc) {
  LocScope scope(loc);
  NoGrad guard;
  std::vector<std::pair<Tensor, Tensor>> changes, gradients;
  std::vector<Tensor> values;
  for (const auto& [path, t] : tensors) {
    Tensor value = convert(t.detach());
    changes.emplace_back(t, value);
    values.push_back(std::move(value));
    Tensor g = t.cell()->meta ? t.grad() : Tensor();
    if (!g.defined()) continue;
    gradients.emplace_back(t, convert(g.detach()));
    values.push_back(gradients.back().second);
  }
  ingot::eval(values, loc);
  for (const auto& [t, value] : changes) replace_value(t, value);
  for (const auto& [t, value] : gradients) t.set_grad(value);
}

NamedTensors all_of(const Module& m) {
  NamedTensors all = m.named_parameters(), buffers = m.named_buffers();
  all.insert(all.end(), buffers.begin(), buffers.end());
  return all;
}

void move_all(NamedTensors tensors, const Device& device, const SourceLoc& loc) {
  std::erase_if(tensors, [&](const auto& t) { return t.second.device() == device; });
  convert_all(
      tensors, [&](const Tensor& t) { return t.to(device); }, loc);
}

}  // namespace

Module& Module::to(const Device& device, SourceLoc where) {
  move_all(all_of(*this), device, user_loc(where));
  State::each_state(*state_, "",
                    [](const std::string&, State& s) { s.placed.reset(), s.returns.reset(); });
  return *this;
}

Module& Module::to(DType dtype, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (!is_float(dtype))
    fail(ErrorKind::DType, "to", "parameters cannot be " + std::string(name_of(dtype)), loc,
         "give a floating type");
  NamedTensors all = all_of(*this);
  std::erase_if(
      all, [&](const auto& t) { return t.second.dtype() == dtype || !is_float(t.second.dtype()); });
  convert_all(
      all, [&](const Tensor& t) { return t.to(dtype); }, loc);
  return *this;
}

void drop_tensors(const Module& m, std::string_view prefix) {
  std::erase_if(ModuleAccess::state(m).tensors,
                [&](const auto& e) { return std::string_view(e.name).starts_with(prefix); });
}

// ---- Placement

bool path_matches(std::string_view pattern, std::string_view path) {
  if (pattern.ends_with(".*") && path_matches(pattern.substr(0, pattern.size() - 2), path))
    return true;
  while (!pattern.empty() && pattern[0] != '*') {
    if (path.empty() || path[0] != pattern[0]) return false;
    pattern.remove_prefix(1);
    path.remove_prefix(1);
  }
  if (pattern.empty()) return path.empty();
  for (;; path.remove_prefix(1)) {
    if (path_matches(pattern.substr(1), path)) return true;
    if (path.empty()) return false;
  }
}

Module& Module::place(std::string_view pattern, const Device& device, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  const NamedTensors before = all_of(*this);
  const Device home = state_->returns  ? *state_->returns
                      : before.empty() ? default_device()
                                       : before[0].second.device();
  bool any = false;
  std::string known;
  State::each_state(*state_, "", [&](const std::string& path, State& s) {
    if (path.empty()) return;
    known += (known.empty() ? "" : ", ") + path;
    if (!path_matches(pattern, path)) return;
    any = true;
    NamedTensors own;
    for (const State::Entry& e : s.tensors) own.emplace_back(e.name, e.tensor);
    move_all(own, device, loc);
    s.placed = device;
  });
  if (!any)
    fail(ErrorKind::Value, "place", "nothing is named \"" + std::string(pattern) + "\"", loc,
         known.empty() ? "this module has no parts" : "there are: " + known);
  // The layers in between also copy their operands to their own device.
  State::each_state(*state_, "", [&](const std::string& path, State& s) {
    if (!path.empty() && !s.placed && !s.tensors.empty()) s.placed = s.tensors[0].tensor.device();
  });
  state_->returns = home;
  return *this;
}

// ---- Dictionaries

StateDict Module::state_dict() const {
  StateDict state;
  const std::function<void(State&, const std::string&)> walk = [&](State& s,
                                                                   const std::string& prefix) {
    for (bool trained : {true, false})  // PyTorch's order: parameters, then buffers
      for (const State::Entry& e : s.tensors)
        if (e.trained == trained && e.persistent)
          state.tensors.emplace_back(prefix + e.name, e.tensor);
    for (State::Part& p : s.parts) walk(*p.module->state_, prefix + p.name + ".");
  };
  walk(*state_, "");
  return state;
}

LoadReport Module::load_state_dict(const StateDict& state, bool strict, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  LoadReport report;
  const StateDict own = state_dict();
  std::unordered_map<std::string, Tensor> given(state.begin(), state.end());
  std::unordered_set<std::string> known;
  std::vector<std::pair<Tensor, Tensor>> changes;
  for (const auto& [name, t] : own) {
    known.insert(name);
    const auto found = given.find(name);
    if (found == given.end()) {
      report.missing.push_back(name);
      continue;
    }
    const Tensor& value = found->second;
    if (value.shape() == t.shape())
      changes.emplace_back(t, value);
    else
      report.misshapen.push_back(name + ": " + describe(t) + " in the module, " + describe(value) +
                                 " in the dictionary");
  }
  for (const auto& [name, t] : state)
    if (!known.contains(name)) report.unexpected.push_back(name);
  if (strict && !report.complete())
    fail(ErrorKind::Value, "load_state_dict",
         "the dictionary does not fit the module\n" + report.text(), loc,
         "give strict = false to load what fits");
  std::vector<Tensor> values;
  for (auto& [t, value] : changes)
    values.push_back(value = value.detach().to(t.dtype()).to(t.device()).clone());
  ingot::eval(values, loc);
  values.clear();
  for (auto& [t, value] : changes) replace_value(t, value);
  return report;
}

}  // namespace ingot::nn
