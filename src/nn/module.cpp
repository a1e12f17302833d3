// Module: a handle on named tensors and named parts. What a copy shares lies in State; moving a module to another device
// or type rebinds the cells of its tensors, so that every handle on them, tied or not, sees the new value.
#include <algorithm>
#include <unordered_set>

#include "graph/leaf.h"
#include "ingot/autograd.h"
#include "ingot/nn.h"
#include "ingot/runtime.h"
#include "ops/common.h"

namespace ingot::nn {

struct Module::State {
  struct Entry {
    std::string name;
    Tensor tensor;
    bool trained;  // a parameter, not a buffer
  };
  std::vector<Entry> tensors;
  std::vector<std::pair<std::string, Module>> parts;
  std::weak_ptr<State> parent;  // the module this one was put into last
  bool training = true;

  bool has(std::string_view name) const {
    return std::any_of(tensors.begin(), tensors.end(), [&](const Entry& e) { return e.name == name; }) ||
           std::any_of(parts.begin(), parts.end(), [&](const auto& p) { return p.first == name; });
  }

  // Calls f(path, entry) for every tensor below, f(state) for every module.
  template <class F>
  static void each_tensor(State& s, const std::string& prefix, F&& f) {
    for (Entry& e : s.tensors) f(prefix + e.name, e);
    for (auto& [name, part] : s.parts) each_tensor(*part.state_, prefix + name + ".", f);
  }
  template <class F>
  static void each_module(State& s, F&& f) {
    f(s);
    for (auto& [name, part] : s.parts) each_module(*part.state_, f);
  }

  NamedTensors named(bool trained) {
    NamedTensors all;
    std::unordered_set<const Cell*> seen;
    each_tensor(*this, "", [&](const std::string& path, const Entry& e) {
      if (e.trained == trained && seen.insert(e.tensor.cell()).second) all.emplace_back(path, e.tensor);
    });
    return all;
  }

  Entry& find(std::string_view path, const char* op, const SourceLoc& loc) {
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

  void check_name(std::string_view name, const char* op, const SourceLoc& loc) const {
    if (name.empty() || name.find('.') != std::string_view::npos)
      fail(ErrorKind::Value, op, "\"" + std::string(name) + "\" cannot be a name", loc,
           "give a name without dots; the path of a parameter joins the names with dots");
    if (has(name))
      fail(ErrorKind::Value, op, "the name \"" + std::string(name) + "\" is taken", loc, "give each part a name of its own");
  }
};

Module::Module() : state_(std::make_shared<State>()) {}
Module::~Module() = default;

Tensor Module::forward(Tensor) {
  fail(ErrorKind::State, "forward", "this module does not define forward(Tensor)", user_loc(SourceLoc::current()),
       "write `Tensor forward(Tensor x) override` in your module, or call the function it has");
}

Tensor Module::operator()(Tensor x, SourceLoc loc) {
  LocScope scope(loc);
  return forward(std::move(x));
}

// ---- Registration

void Module::register_module(std::string name, const Module& layer, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  state_->check_name(name, "register_module", loc);
  bool inside = false;
  State::each_module(*layer.state_, [&](const State& s) { inside |= &s == state_.get(); });
  if (inside) fail(ErrorKind::Value, "register_module", "\"" + name + "\" contains this module", loc);
  state_->parts.emplace_back(std::move(name), Module(layer));
  layer.state_->parent = state_;
  name_parameters();
}

namespace {

Tensor as_parameter(const Tensor& t, const char* op, const SourceLoc& loc) {
  LocScope scope(loc);
  Node* n = node_of(t, op, loc);
  if (!is_float(n->dtype))
    fail(ErrorKind::DType, op, "a parameter has a floating type, not " + describe(t), loc,
         "use register_buffer() for a tensor that is not trained");
  Tensor p = t;
  p.eval_(loc);
  if (!p.requires_grad()) p.requires_grad_(true, loc);
  if (!p.is_leaf())
    fail(ErrorKind::Autograd, op, "a result with history cannot be a parameter: " + describe(t), loc, "give t.detach()");
  return p;
}

}  // namespace

Tensor Module::register_parameter(std::string name, const Tensor& t, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  state_->check_name(name, "register_parameter", loc);
  Tensor p = as_parameter(t, "register_parameter", loc);
  state_->tensors.push_back({std::move(name), p, true});
  name_parameters();
  return p;
}

Tensor Module::register_buffer(std::string name, const Tensor& t, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  state_->check_name(name, "register_buffer", loc);
  t.eval_(loc);
  state_->tensors.push_back({std::move(name), t, false});
  return t;
}

// A parameter carries its path from the outermost module, under the first of its names.
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
    fail(ErrorKind::Shape, "set_parameter", describe(t) + " does not fit into " + describe(e.tensor), loc,
         "the shapes must be the same");
  e.tensor = e.trained ? as_parameter(t, "set_parameter", loc) : t;
  name_parameters();
}

const Tensor& Module::own(size_t index) const { return state_->tensors[index].tensor; }

// ---- All tensors at once

namespace {

// The cell's value replaced by `value`, a computed tensor of another device or type; the leaf stays the same leaf.
void replace_value(const Tensor& t, const Tensor& value) {
  Cell* cell = t.cell();
  NodeRef n = value.cell()->node;
  if (n == cell->node) return;
  std::string name = t.name();
  if (cell->meta) {
    n->leaf = cell->meta;
    n->requires_grad = cell->meta->requires_grad;
  }
  cell->rebind(std::move(n));
  if (!name.empty()) Tensor(t).set_name(std::move(name));
}

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

}  // namespace

Module& Module::to(const Device& device, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NamedTensors all = named_parameters(), buffers = named_buffers();
  all.insert(all.end(), buffers.begin(), buffers.end());
  std::erase_if(all, [&](const auto& t) { return t.second.device() == device; });
  convert_all(all, [&](const Tensor& t) { return t.to(device); }, loc);
  return *this;
}

Module& Module::to(DType dtype, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (!is_float(dtype))
    fail(ErrorKind::DType, "to", "parameters cannot be " + std::string(name_of(dtype)), loc, "give a floating type");
  NamedTensors all = named_parameters(), buffers = named_buffers();
  all.insert(all.end(), buffers.begin(), buffers.end());
  std::erase_if(all, [&](const auto& t) { return t.second.dtype() == dtype || !is_float(t.second.dtype()); });
  convert_all(all, [&](const Tensor& t) { return t.to(dtype); }, loc);
  return *this;
}

Module& Module::train(bool on) {
  State::each_module(*state_, [&](State& s) { s.training = on; });
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

}  // namespace ingot::nn
