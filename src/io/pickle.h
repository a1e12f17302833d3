// A reader of pickles that executes nothing. It knows the plain values and, by name, the few functions that
// rebuild tensors and ordered dicts; any other class or function in the file is an error as soon as it would
// be called.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "ingot/shape.h"
#include "io/file.h"

namespace ingot::io {

/// Values refer to each other by number, so that a pickle nested a million times deep (or in a circle) is
/// harmless.
struct PickleValue {
  enum class Kind : uint8_t {
    None,
    Bool,
    Int,
    Float,
    Text,
    Binary,
    Tuple,
    List,
    Dict,
    Global,
    Storage,
    Tensor,
    Mark
  };
  Kind kind = Kind::None;
  int64_t integer = 0;            // Bool, Int; Float: its bits; Tensor: offset in elements
  std::string text{};             // Text, Binary; Global: "module name"; Storage: key
  std::string type{};             // Storage: "FloatStorage"; Dict: "Namespace" for argparse's; Tuple: "set"
  std::vector<uint32_t> items{};  // Tuple, List; Dict: key, value, key, value, ...; Tensor: its storage
  std::vector<int64_t> shape{}, stride{};
};

class Pickle {
 public:
  Pickle(Bytes data, const char* op, const std::string& path, const SourceLoc& loc);
  const PickleValue& root() const { return values_[root_]; }
  const PickleValue& operator[](uint32_t id) const { return values_[id]; }
  size_t size() const { return values_.size(); }

 private:
  uint32_t make(PickleValue v);
  uint32_t pop();
  std::vector<uint32_t> pop_to_mark();
  uint32_t memo(uint64_t key) const;
  void tuple(size_t n);
  void text(size_t n, PickleValue::Kind kind = PickleValue::Kind::Text);
  void append(const std::vector<uint32_t>& items);
  void set_items(const std::vector<uint32_t>& items);
  void global(std::string name);
  void persistent_id();
  void reduce();
  void new_object();
  std::string latin1(const std::string& utf8);
  bool plain_call(const std::string& function, const PickleValue& arguments);
  void build();
  uint32_t rebuild_tensor(const PickleValue& arguments);
  std::vector<int64_t> numbers(uint32_t id);
  bool simple(uint8_t op);
  bool stack(uint8_t op);
  void step(uint8_t op);
  void run();
  [[noreturn]] void refuse(const std::string& what);

  Cursor in_;
  std::vector<PickleValue> values_;
  std::vector<uint32_t> stack_;
  std::unordered_map<uint64_t, uint32_t> memo_;
  uint32_t root_ = 0;
  bool stopped_ = false;
};

}  // namespace ingot::io
