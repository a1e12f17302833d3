// Modules made of modules: Sequential, ModuleList, ModuleDict; and parameters in a list.
#pragma once
#include "ingot/nn/module.h"

namespace ingot::nn {

/// Modules of one kind in a list, named "0", "1", ...
template <class M>
class ModuleList : public Module {
 public:
  ModuleList() = default;
  ModuleList(std::initializer_list<M> layers) {
    for (const M& m : layers) push_back(m);
  }
  ModuleList(const ModuleList& o)
      : Module(o),
        items_(detail::is_cloning() ? std::make_shared<std::vector<M>>(*o.items_) : o.items_) {}
  ModuleList& operator=(const ModuleList&) = default;
  /// Returns the module in the list.
  M& push_back(M layer, SourceLoc loc = SourceLoc::current()) {
    register_module(std::to_string(items_->size()), layer, loc);
    items_->push_back(std::move(layer));
    return items_->back();
  }
  M& append(M layer, SourceLoc loc = SourceLoc::current()) {
    return push_back(std::move(layer), loc);
  }
  size_t size() const { return items_->size(); }
  M& operator[](size_t i) { return (*items_)[i]; }
  M& back() { return items_->back(); }
  auto begin() { return items_->begin(); }
  auto end() { return items_->end(); }
  std::string description() const override { return "ModuleList"; }

 private:
  std::shared_ptr<std::vector<M>> items_ = std::make_shared<std::vector<M>>();
};

/// Modules of one kind by name, in order of insertion.
template <class M>
class ModuleDict : public Module {
 public:
  using Items = std::vector<std::pair<std::string, M>>;
  ModuleDict() = default;
  ModuleDict(std::initializer_list<std::pair<std::string, M>> layers) {
    for (const auto& [name, m] : layers) insert(name, m);
  }
  ModuleDict(const ModuleDict& o)
      : Module(o), items_(detail::is_cloning() ? std::make_shared<Items>(*o.items_) : o.items_) {}
  ModuleDict& operator=(const ModuleDict&) = default;
  M& insert(const std::string& name, M layer, SourceLoc loc = SourceLoc::current()) {
    register_module(name, layer, loc);
    return items_->emplace_back(name, std::move(layer)).second;
  }
  bool contains(std::string_view name) const {
    for (const auto& item : *items_)
      if (item.first == name) return true;
    return false;
  }
  /// Throws Error(Value) for an unknown name.
  M& operator[](std::string_view name) {
    for (auto& item : *items_)
      if (item.first == name) return item.second;
    throw Error(ErrorKind::Value, "ModuleDict", "there is no module \"" + std::string(name) + "\"",
                SourceLoc{});
  }
  size_t size() const { return items_->size(); }
  auto begin() { return items_->begin(); }
  auto end() { return items_->end(); }
  std::string description() const override { return "ModuleDict"; }

 private:
  std::shared_ptr<Items> items_ = std::make_shared<Items>();
};

/// Parameters in a list, named "0", "1", ...
class ParameterList : public Module {
 public:
  ParameterList() = default;
  explicit ParameterList(const std::vector<Tensor>& tensors, SourceLoc loc = SourceLoc::current());
  /// Throws as register_parameter does.
  void push_back(const Tensor& t, SourceLoc loc = SourceLoc::current());
  size_t size() const { return own_count(); }
  /// Throws Error(Index) outside the list.
  Tensor operator[](size_t i) const;
  std::string description() const override { return "ParameterList"; }
};

/// Modules called one after the other, named "0", "1", ...: nn::Sequential(nn::Linear(2, 8),
/// nn::ReLU(), nn::Linear(8, 1)).
class Sequential : public Module {
  struct Item {
    std::shared_ptr<Module> layer;
    detail::CopyModule copy;
  };

 public:
  Sequential();
  template <class... M>
  requires(sizeof...(M) > 0 && (std::is_base_of_v<Module, M> && ...) &&
           !(sizeof...(M) == 1 &&
             (std::is_same_v<Sequential, M> && ...))) explicit Sequential(M... layers)
      : Sequential() {
    (push_back(std::move(layers)), ...);
  }
  Sequential(const Sequential& o);
  Sequential& operator=(const Sequential&) = default;
  template <class M>
  requires std::is_base_of_v<Module, M> Sequential& push_back(
      const M& layer, SourceLoc loc = SourceLoc::current()) {
    register_module(std::to_string(size()), layer, loc);
    append({std::make_shared<M>(layer), [](const Module& m) -> std::shared_ptr<Module> {
              return std::make_shared<M>(static_cast<const M&>(m));
            }});
    return *this;
  }
  Tensor forward(Tensor x) override;
  size_t size() const;
  /// One of its modules; dynamic_cast gives the class. Throws Error(Index) outside.
  Module& operator[](size_t i);
  std::string description() const override { return "Sequential"; }

 private:
  void append(Item item);
  std::shared_ptr<std::vector<Item>> items_;
};

}  // namespace ingot::nn
