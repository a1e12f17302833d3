// StateDict: what an object must save to continue where it was. Everything a Checkpoint saves has
// state_dict() and load_state_dict(); your own class takes part by having them too.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingot/tensor.h"
#include "ingot/texts.h"

namespace ingot {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Named tensors and named strings. Numbers are kept as strings that read back to the same bits.
/// The tensors share their values with the owner's. Iteration is over the tensors.
struct StateDict {
  NamedTensors tensors;
  Texts values;

  void set(const std::string& name, std::string_view text);
  void set(const std::string& name, const char* text) { set(name, std::string_view(text)); }
  void set(const std::string& name, double number);
  template <class T>
  requires std::is_integral_v<T>
  void set(const std::string& name, T number) {
    set(name, std::string_view(std::to_string(number)));
  }

  auto begin() const { return tensors.begin(); }
  auto end() const { return tensors.end(); }
  size_t size() const { return tensors.size(); }
  bool has(const std::string& name) const;
  /// The value of that name; Error(State) when there is none, or when it is not a number.
  const std::string& text(const std::string& name, SourceLoc loc = SourceLoc::current()) const;
  double number(const std::string& name, SourceLoc loc = SourceLoc::current()) const;
  int64_t integer(const std::string& name, SourceLoc loc = SourceLoc::current()) const;
  uint64_t unsigned_integer(const std::string& name, SourceLoc loc = SourceLoc::current()) const;
  /// The tensor of that name; Error(State) when there is none.
  const Tensor& tensor(std::string_view name, SourceLoc loc = SourceLoc::current()) const;
};

/// Writes each value into its target, in one run and without gradients; types and devices are
/// converted. Throws Error(Shape), naming the tensor, before anything changes when a shape differs.
void assign_all(const std::vector<std::pair<Tensor, Tensor>>& targets_and_values,
                SourceLoc loc = SourceLoc::current());

}  // namespace ingot
