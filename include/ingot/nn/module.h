// Module: parameters, buffers and other modules under names. A network is plain C++:
//
//   struct Net : nn::Module {
//     nn::Linear fc1 = add("fc1", nn::Linear(784, 256));
//     nn::Linear fc2 = add("fc2", nn::Linear(256, 10));
//     Tensor forward(Tensor x) override { return fc2(relu(fc1(x))); }
//   };
//   Net net;
//   Tensor y = net(x);
//
// A module is a handle, as a Tensor is: a copy names the same layers and the same parameters;
// clone() makes new ones. A module that takes or returns something else says so, and is called in
// the same way:
//
//   struct Decoder : nn::ModuleOf<Tensor(Tensor, Tensor)> {
//     Tensor forward(Tensor x, Tensor memory) override { ... }
//   };
//   Tensor y = decoder(x, memory);
#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ingot/state.h"
#include "ingot/tensor.h"

namespace ingot::nn {

using ingot::NamedTensors;
class Module;
struct CloneMap;

/// What load_state_dict found no counterpart for.
struct LoadReport {
  std::vector<std::string> missing;     ///< in the module, not in the dictionary: unchanged
  std::vector<std::string> unexpected;  ///< in the dictionary, not in the module: not used
  std::vector<std::string>
      misshapen;  ///< of another shape, with both ("fc.weight: ..."): unchanged
  bool complete() const { return missing.empty() && unexpected.empty() && misshapen.empty(); }
  /// One line per entry; "" when complete.
  std::string text() const;
};

namespace detail {
/// The tensor that replaces t in the copy that clone() is making; t itself otherwise.
Tensor cloned(const Tensor& t);
bool is_cloning();
using CopyModule = std::shared_ptr<Module> (*)(const Module&);

/// A call of a module, from entering forward() to leaving it: errors name the layer, a layer that
/// was never added is reported, operands go to where place() put the layer.
class Call {
 public:
  Call(const Module& module, SourceLoc loc);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  Tensor enter(Tensor x) const;
  Tensor leave(Tensor y) const;
  template <class T>
  T enter(T x) const {
    return x;
  }
  template <class T>
  T leave(T y) const {
    return y;
  }

 private:
  friend struct Frames;
  const Module& module_;
  LocScope scope_;
  const Call* outer_;
  uint64_t first_;
};
}  // namespace detail

/// A parameter or buffer as a field of a module: a Tensor that clone() replaces in the copy.
///   nn::Parameter scale = register_parameter("scale", ones({8}));
class Parameter : public Tensor {
 public:
  Parameter() = default;
  Parameter(const Tensor& t) : Tensor(t) {}  // NOLINT(google-explicit-constructor)
  Parameter(const Parameter& o) : Tensor(detail::cloned(o)) {}
  Parameter& operator=(const Parameter& o) = default;
};

class Module {
 public:
  Module();
  Module(const Module& other);
  Module& operator=(const Module&) = default;
  virtual ~Module();

  /// What the module computes. Throws Error(State) in a module that does not define it.
  virtual Tensor forward(Tensor x);
  /// forward(x). Errors name the caller's line and the layer by its path. A layer with parameters
  /// that is called inside another module's forward() without having been added to any throws
  /// Error(State): its parameters would neither be trained nor saved.
  Tensor operator()(Tensor x, SourceLoc loc = SourceLoc::current());

  /// Makes `layer` a part of this module and returns it. Throws Error(Value) for a name that is
  /// empty, has a dot or is taken, and for a module inside itself; so do the three below.
  template <class M>
  requires std::is_base_of_v<Module, M> M add(std::string name, M layer,
                                              SourceLoc loc = SourceLoc::current()) {
    register_module(std::move(name), layer, loc);
    return layer;
  }
  template <class M>
  requires std::is_base_of_v<Module, M>
  void register_module(std::string name, const M& layer, SourceLoc loc = SourceLoc::current()) {
    const detail::CopyModule copy = [](const Module& m) -> std::shared_ptr<Module> {
      return std::make_shared<M>(static_cast<const M&>(m));
    };
    add_part(std::move(name), layer, copy, loc);
  }
  /// Makes t a parameter (it requires gradients from now on) and returns it. Two modules may share
  /// one tensor. Throws Error(DType) unless its type is floating, Error(Autograd) when it is a
  /// result with history.
  Parameter register_parameter(std::string name, const Tensor& t,
                               SourceLoc loc = SourceLoc::current());
  /// A tensor that moves with the module but is not trained; persistent: state_dict() has it too.
  Parameter register_buffer(std::string name, const Tensor& t, bool persistent = true,
                            SourceLoc loc = SourceLoc::current());

  /// Every parameter once, in the order of registration, those of this module before those of its
  /// parts.
  std::vector<Tensor> parameters() const;
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  /// This module ("") and every one below by its path, in PyTorch's order.
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> named_modules() const;
  /// One parameter or buffer by its path. Throws Error(Value) for an unknown path.
  Tensor parameter(std::string_view path, SourceLoc loc = SourceLoc::current()) const;
  /// Replaces a parameter by another tensor: net.set_parameter("head.weight",
  /// net.embedding.weight()) ties the two. Throws Error(Value) for an unknown path,
  /// Error(Shape) for another shape, and as register_parameter does.
  void set_parameter(std::string_view path, const Tensor& t, SourceLoc loc = SourceLoc::current());
  /// Elements of all parameters.
  int64_t parameter_count() const;

  /// All parameters and persistent buffers under PyTorch's names and in its order and layouts; a
  /// tied tensor appears under each of its names.
  StateDict state_dict() const;
  /// Copies values into the parameters and buffers of the same names, converted to their types and
  /// devices. With strict, throws Error(Value) that lists everything missing, unexpected or of the
  /// wrong shape, and changes nothing; without, reports it.
  LoadReport load_state_dict(const StateDict& state, bool strict = true,
                             SourceLoc loc = SourceLoc::current());

  /// Moves parameters, their gradients and buffers. An optimiser made before keeps its state where
  /// it was: make it afterwards.
  Module& to(const Device& device, SourceLoc loc = SourceLoc::current());
  Module& to(const char* device, SourceLoc loc = SourceLoc::current()) {
    return to(Device(device), loc);
  }
  /// Converts floating parameters, gradients and buffers. Throws Error(DType) unless the type is
  /// floating.
  Module& to(DType dtype, SourceLoc loc = SourceLoc::current());
  /// Puts the parts whose paths match onto a device: place("encoder.*", "cuda:1") takes encoder and
  /// all below it; * matches any characters. From then on every layer with parameters copies its
  /// inputs to its own device, and this module returns its result on its own first device;
  /// explain() counts these copies. Throws Error(Value) when nothing matches. to(device) takes it
  /// back.
  Module& place(std::string_view pattern, const Device& device,
                SourceLoc loc = SourceLoc::current());
  /// Training or not, for this module and all its parts: dropout and batch norm depend on it.
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool is_training() const;
  /// Clears the gradients of all parameters.
  void zero_grad();
  /// Freezes all parameters, or has them trained again.
  Module& requires_grad_(bool on = true);
  /// Calls fn for every module below and then for this one: what `dynamic_cast<nn::Linear*>(&m)`
  /// finds can be set up.
  Module& apply(const std::function<void(Module&)>& fn);

  /// A copy with its own parameters, buffers and parts: `Net copy = net.clone();` (auto copy =
  /// clone(net); says the same). Throws Error(State) when a field of the class is a Tensor that was
  /// registered: hold it as nn::Parameter.
  class Clone;
  Clone clone() const;

  /// "Linear(in_features=2, out_features=3, bias=True)"; the class's name for modules that do not
  /// say more.
  virtual std::string description() const;
  /// The tree of parts with shapes and counts of parameters, as operator<< prints it.
  std::string to_string() const;
  /// The path below the outermost module ("" for that one).
  std::string path() const;

 protected:
  struct State;
  /// A parameter or buffer of this module itself (no path), by the order of registration: what
  /// layers use in forward().
  const Tensor& own(size_t index) const;
  /// How many of them there are.
  size_t own_count() const;

 private:
  friend class detail::Call;
  friend struct CloneMap;
  friend class CloneScope;
  friend struct ModuleAccess;
  void add_part(std::string name, const Module& layer, detail::CopyModule copy,
                const SourceLoc& loc);
  void name_parameters() const;
  std::shared_ptr<State> state_;
};

/// While one lives, copies of a module's handles name its clone. (For clone().)
class CloneScope {
 public:
  CloneScope(const Module& original, SourceLoc loc);
  ~CloneScope();
  CloneScope(const CloneScope&) = delete;
  CloneScope& operator=(const CloneScope&) = delete;
  /// Throws Error(State) when the copy still holds tensors of the original.
  void check() const;

 private:
  CloneMap* map_;
  SourceLoc loc_;
};

template <class M>
requires std::is_base_of_v<Module, M> M clone(const M& module,
                                              SourceLoc loc = SourceLoc::current()) {
  CloneScope scope(module, loc);
  M copy(module);
  scope.check();
  return copy;
}

/// What Module::clone() gives: becomes the module's own class when it is assigned.
class Module::Clone {
 public:
  explicit Clone(const Module& m) : module_(m) {}
  template <class M>
  requires std::is_base_of_v<Module, M>
  operator M() const {  // NOLINT(google-explicit-constructor)
    const M* typed = dynamic_cast<const M*>(&module_);
    if (!typed)
      throw Error(ErrorKind::State, "clone",
                  "the module is of another class than its copy should be", SourceLoc{});
    return nn::clone(*typed);
  }

 private:
  const Module& module_;
};
inline Module::Clone Module::clone() const { return Clone(*this); }

/// A module with another signature: struct Decoder : nn::ModuleOf<Tensor(Tensor, Tensor)>.
template <class Signature>
class ModuleOf;
template <class R, class... A>
class ModuleOf<R(A...)> : public Module {
 public:
  using Module::forward;
  virtual R forward(A... args) = 0;
  R operator()(A... args, SourceLoc loc = SourceLoc::current()) {
    detail::Call call(*this, loc);
    return call.leave(forward(call.enter(std::forward<A>(args))...));
  }
};

std::ostream& operator<<(std::ostream& out, const Module& m);

}  // namespace ingot::nn
