// Shared by all copies of a Module: its tensors and parts by name, its parent, its mode,
// the device it was placed on.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_set>

#include "ingot/nn/module.h"

namespace ingot::nn {

struct Module::State {
  struct Entry {
    std::string name;
    Tensor tensor;
    bool trained;     // a parameter, not a buffer
    bool persistent;  // part of state_dict()
  };
  struct Part {
    std::string name;
    std::shared_ptr<Module> module;  // of the same class
    detail::CopyModule copy;
  };
  std::vector<Entry> tensors;
  std::vector<Part> parts;
  std::weak_ptr<State> parent;  // the module this one was added to last
  bool training = true;
  std::optional<Device> placed;   // operands go there
  std::optional<Device> returns;  // of the module place() was called on: results go there

  bool has(std::string_view name) const;
  void check_name(std::string_view name, const char* op, const SourceLoc& loc) const;
  Entry& find(std::string_view path, const char* op, const SourceLoc& loc);
  NamedTensors named(bool trained);
  /// Names the parameters of what was added to this module last, a part or a tensor. False where
  /// one has an earlier name in the outermost module: then all are to be named.
  static bool name_added(const std::shared_ptr<State>& s, bool part);
  /// Has it this tensor at this path?
  bool holds(std::string_view path, const Tensor& t) const;

  // Calls f(path, entry) for every tensor below, f(path, module's state) for every module, this one
  // first.
  template <class F>
  static void each_tensor(State& s, const std::string& prefix, F&& f) {
    for (Entry& e : s.tensors) f(prefix + e.name, e);
    for (Part& p : s.parts) each_tensor(*p.module->state_, prefix + p.name + ".", f);
  }
  template <class F>
  static void each_state(State& s, const std::string& path, F&& f) {
    f(path, s);
    for (Part& p : s.parts)
      each_state(*p.module->state_, path.empty() ? p.name : path + "." + p.name, f);
  }
};

/// The state of any module, for related functions.
struct ModuleAccess : Module {
  static State& state(const Module& m) { return *m.state_; }
};

/// Replaces the cell's value by `value`, a computed tensor of another device or type;
/// the leaf stays the same leaf.
void replace_value(const Tensor& t, const Tensor& value);
/// "Linear" for ingot::nn::Linear.
std::string class_name(const Module& m);
/// "encoder.*" matches "encoder", "encoder.0", "encoder.0.fc"; * * matches any characters.
bool path_matches(std::string_view pattern, std::string_view path);

}  // namespace ingot::nn
