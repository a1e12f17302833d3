// Module: a handle on named tensors and named parts. What copies share is in State. Calls form a
// stack per thread, so that an error can name the layer it happened in.
#include "ingot/nn/module.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <typeinfo>
#include <unordered_set>

#include "base/context.h"
#include "graph/layer_log.h"
#include "graph/thread_state.h"
#include "nn/module_state.h"
#include "ops/common.h"

namespace ingot::nn {

// ---- State

bool Module::State::has(std::string_view name) const {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const Entry& e) { return e.name == name; }) ||
         std::any_of(parts.begin(), parts.end(), [&](const Part& p) { return p.name == name; });
}

void Module::State::check_name(std::string_view name, const char* op, const SourceLoc& loc) const {
  if (name.empty() || name.find('.') != std::string_view::npos)
    fail(ErrorKind::Value, op, "\"" + std::string(name) + "\" cannot be a name", loc,
         "give a name without dots; the path of a parameter joins the names with dots");
  if (has(name))
    fail(ErrorKind::Value, op, "the name \"" + std::string(name) + "\" is taken", loc,
         "give each part a unique name");
}

Module::State::Entry& Module::State::find(std::string_view path, const char* op,
                                          const SourceLoc& loc) {
  Entry* found = nullptr;
  std::string known;
  each_tensor(*this, "", [&](const std::string& p, Entry& e) {
    if (p == path) found = &e;
    known += (known.empty() ? "" : ", ") + p;
  });
  if (!found)
    fail(ErrorKind::Value, op, "there is no parameter or buffer \"" + std::string(path) + "\"", loc,
         known.empty() ? "this module has none" : "there are: " + known);
  return *found;
}

NamedTensors Module::State::named(bool trained) {
  NamedTensors all;
  std::unordered_set<const Cell*> seen;
  each_tensor(*this, "", [&](const std::string& path, const Entry& e) {
    if (e.trained == trained && seen.insert(e.tensor.cell()).second)
      all.emplace_back(path, e.tensor);
  });
  return all;
}

bool Module::State::holds(std::string_view path, const Tensor& t) const {
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos)
    return std::any_of(tensors.begin(), tensors.end(), [&](const Entry& e) {
      return e.name == path && e.tensor.cell() == t.cell();
    });
  return std::any_of(parts.begin(), parts.end(), [&](const Part& p) {
    return p.name == path.substr(0, dot) && p.module->state_->holds(path.substr(dot + 1), t);
  });
}

bool Module::State::name_added(const std::shared_ptr<State>& s, bool part) {
  std::string prefix;
  std::shared_ptr<State> root = s;
  while (std::shared_ptr<State> parent = root->parent.lock()) {
    // What was added last is the most likely one.
    const auto at = std::find_if(parent->parts.rbegin(), parent->parts.rend(),
                                 [&](const Part& p) { return p.module->state_ == root; });
    if (at == parent->parts.rend()) return false;
    prefix = at->name + "." + prefix;
    root = std::move(parent);
  }
  NamedTensors added;
  std::unordered_set<const Cell*> seen;
  const auto take = [&](const std::string& path, const Entry& e) {
    if (e.trained && seen.insert(e.tensor.cell()).second) added.emplace_back(path, e.tensor);
  };
  if (part) {
    const Part& p = s->parts.back();
    each_tensor(*p.module->state_, prefix + p.name + ".", take);
  } else {
    take(prefix + s->tensors.back().name, s->tensors.back());
  }
  for (const auto& [path, tensor] : added)
    if (const std::string now = tensor.name(); now != path && root->holds(now, tensor))
      return false;
  for (auto& [path, tensor] : added) tensor.set_name(path);
  return true;
}

// ---- Calls

namespace detail {
struct Frames {
  static const Call*& top() { return this_thread.call; }
  static const Module& module(const Call& c) { return c.module_; }
  static const Call* outer(const Call& c) { return c.outer_; }
};
}  // namespace detail

namespace {

std::string layer_in_errors() {
  const detail::Call* call = detail::Frames::top();
  if (!call) return "";
  const Module& m = detail::Frames::module(*call);
  while (detail::Frames::outer(*call)) call = detail::Frames::outer(*call);
  const std::string path = m.path(), outermost = class_name(detail::Frames::module(*call));
  if (path.empty()) return class_name(m);
  return path + " (" + class_name(m) + ")" +
         (&m == &detail::Frames::module(*call) ? "" : " of " + outermost);
}

bool trains(const Module& m) {
  for (const Tensor& p : m.parameters())
    if (p.requires_grad()) return true;
  return false;
}

}  // namespace

detail::Call::Call(const Module& module, SourceLoc loc)
    : module_(module),
      scope_(loc),
      outer_(Frames::top()),
      first_(layer_log().wanted ? next_node_number() : 0) {
  static const bool set = (current_layer = layer_in_errors, true);
  (void)set;
  if (outer_ && !module.state_->parent.lock() && trains(module)) {
    // The library's own blocks, too, would call a part before it has a parent only by mistake.
    fail(ErrorKind::State, class_name(module).c_str(),
         "this " + class_name(module) + " is used in " + class_name(outer_->module_) +
             "::forward() but was never added to a module: its parameters would neither be trained "
             "nor saved",
         user_loc(loc),
         "declare it as `" + class_name(module) + " name = add(\"name\", " + class_name(module) +
             "(...));`");
  }
  Frames::top() = this;
}

detail::Call::~Call() {
  Frames::top() = outer_;
  if (LayerLog& log = layer_log(); log.wanted && first_) {
    if (log.calls.size() > 100000) log.calls.clear();  // evaluation without steps: never queried
    log.calls.push_back(
        {first_, next_node_number(),
         (module_.path().empty() ? "" : module_.path() + " ") + "(" + class_name(module_) + ")"});
  }
}

Tensor detail::Call::enter(Tensor x) const {
  const auto& to = module_.state_->placed;
  return to && x.defined() && x.device() != *to ? x.to(*to) : x;
}

Tensor detail::Call::leave(Tensor y) const {
  const auto& to = module_.state_->returns;
  return to && y.defined() && y.device() != *to ? y.to(*to) : y;
}

Module::Module() : state_(std::make_shared<State>()) {}
Module::~Module() = default;

Tensor Module::forward(Tensor) {
  fail(ErrorKind::State, "forward", "this module does not define forward(Tensor)",
       user_loc(SourceLoc::current()),
       "write `Tensor forward(Tensor x) override` in your module, or call the function it defines");
}

Tensor Module::operator()(Tensor x, SourceLoc loc) {
  detail::Call call(*this, loc);
  return call.leave(forward(call.enter(std::move(x))));
}

// ---- Registration

void Module::add_part(std::string name, const Module& layer, detail::CopyModule copy,
                      const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  state_->check_name(name, "register_module", loc);
  bool inside = false;
  State::each_state(*layer.state_, "",
                    [&](const std::string&, const State& s) { inside |= &s == state_.get(); });
  if (inside)
    fail(ErrorKind::Value, "register_module", "\"" + name + "\" contains this module", loc);
  state_->parts.push_back({std::move(name), copy(layer), copy});
  layer.state_->parent = state_;
  if (!State::name_added(state_, true)) name_parameters();
}

namespace {

Tensor as_parameter(const Tensor& t, const char* op, const SourceLoc& loc) {
  LocScope scope(loc);
  if (!is_float(node_of(t, op, loc)->dtype))
    fail(ErrorKind::DType, op, "a parameter has a floating type, not " + describe(t), loc,
         "use register_buffer() for a tensor that is not trained");
  Tensor p = t;
  p.eval_(loc);
  if (!p.requires_grad()) p.requires_grad_(true, loc);
  if (!p.is_leaf())
    fail(ErrorKind::Autograd, op, "a result with history cannot be a parameter: " + describe(t),
         loc, "give t.detach()");
  return p;
}

}  // namespace

Parameter Module::register_parameter(std::string name, const Tensor& t, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  state_->check_name(name, "register_parameter", loc);
  Tensor p = as_parameter(t, "register_parameter", loc);
  state_->tensors.push_back({std::move(name), p, true, true});
  if (!State::name_added(state_, false)) name_parameters();
  return p;
}

Parameter Module::register_buffer(std::string name, const Tensor& t, bool persistent,
                                  SourceLoc where) {
  SourceLoc loc = user_loc(where);
  state_->check_name(name, "register_buffer", loc);
  t.eval_(loc);
  state_->tensors.push_back({std::move(name), t, false, persistent});
  return t;
}

// A parameter's name is its path from the outermost module, under the first of its names.
void Module::name_parameters() const {
  std::shared_ptr<State> root = state_;
  while (std::shared_ptr<State> parent = root->parent.lock()) root = std::move(parent);
  for (auto& [path, tensor] : root->named(true)) tensor.set_name(path);
}

// ---- Access

NamedTensors Module::named_parameters() const { return state_->named(true); }
NamedTensors Module::named_buffers() const { return state_->named(false); }

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> all;
  for (auto& [path, tensor] : state_->named(true)) all.push_back(std::move(tensor));
  return all;
}

std::vector<std::pair<std::string, std::shared_ptr<Module>>> Module::named_modules() const {
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> all{
      {"", std::make_shared<Module>(*this)}};
  const std::function<void(State&, const std::string&)> walk = [&](State& s,
                                                                   const std::string& prefix) {
    for (State::Part& p : s.parts) {
      all.emplace_back(prefix + p.name, p.module);
      walk(*p.module->state_, prefix + p.name + ".");
    }
  };
  walk(*state_, "");
  return all;
}

int64_t Module::parameter_count() const {
  int64_t n = 0;
  for (const Tensor& p : parameters()) n += p.numel();
  return n;
}

Tensor Module::parameter(std::string_view path, SourceLoc loc) const {
  return state_->find(path, "parameter", user_loc(loc)).tensor;
}

void Module::set_parameter(std::string_view path, const Tensor& t, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  State::Entry& e = state_->find(path, "set_parameter", loc);
  if (!(node_of(t, "set_parameter", loc)->shape == e.tensor.shape()))
    fail(ErrorKind::Shape, "set_parameter",
         describe(t) + " does not fit into " + describe(e.tensor), loc,
         "the shapes must be the same");
  e.tensor = e.trained ? as_parameter(t, "set_parameter", loc) : t;
  name_parameters();
}

const Tensor& Module::own(size_t index) const { return state_->tensors[index].tensor; }
size_t Module::own_count() const { return state_->tensors.size(); }

std::string Module::path() const {
  std::string path;
  std::shared_ptr<State> s = state_;
  while (std::shared_ptr<State> parent = s->parent.lock()) {
    for (const State::Part& p : parent->parts)
      if (p.module->state_ == s) {
        path = path.empty() ? p.name : p.name + "." + path;
        break;
      }
    s = std::move(parent);
  }
  return path;
}

std::string class_name(const Module& m) {
  const char* mangled = typeid(m).name();
  int status = 0;
  char* plain = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 ? plain : mangled;
  std::free(plain);
  name = name.substr(0, name.find('<'));
  const size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

std::string Module::description() const { return class_name(*this); }

// ---- Modes

Module& Module::train(bool on) {
  State::each_state(*state_, "", [&](const std::string&, State& s) { s.training = on; });
  return *this;
}

bool Module::is_training() const { return state_->training; }

void Module::zero_grad() {
  for (const Tensor& p : parameters()) p.zero_grad();
}

Module& Module::requires_grad_(bool on) {
  for (Tensor& p : parameters()) p.requires_grad_(on);
  return *this;
}

Module& Module::apply(const std::function<void(Module&)>& fn) {
  for (State::Part& p : state_->parts) p.module->apply(fn);
  fn(*this);
  return *this;
}

}  // namespace ingot::nn
