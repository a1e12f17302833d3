// A reader of pickles that executes nothing. It knows the plain values and, by name, the few
// functions that rebuild tensors and ordered dicts; any other class or function in the file is an
// error as soon as it would be called.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/budget.h"
#include "io/file.h"

namespace ingot::io {

/// Values refer to each other by index, so that a pickle nested a million times deep (or in a
/// cycle) is harmless. A one-byte instruction creates one of these: they are small, and texts stay
/// in the pickle.
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
  bool special = false;  // Dict: argparse's Namespace; Tuple: a set
  int64_t integer =
      0;  // Bool, Int; Float: its bits; Tensor: offset in elements; Storage: its type, a Global
  std::string_view text{};  // Text, Binary; Global: "module name"; Storage: key
  /// Tuple, List; Dict: key, value, key, value, ...; Tensor: its storage, the tuples of its sizes
  /// and strides.
  std::vector<uint32_t> items{};
};

class Pickle {
 public:
  /// The bytes must outlive it. Every value is charged to the budget.
  Pickle(Bytes data, Budget& budget, const char* op, const std::string& path, const SourceLoc& loc);
  const PickleValue& root() const { return values_[root_]; }
  const PickleValue& operator[](uint32_t id) const { return values_[id]; }
  size_t size() const { return values_.size(); }
  /// The elements of a tensor's tuple of sizes or strides.
  std::vector<int64_t> numbers(uint32_t id) const;

 private:
  uint32_t make(PickleValue v);
  void push(uint32_t id);
  uint32_t pop();
  std::vector<uint32_t> pop_to_mark();
  uint32_t memo(uint64_t key) const;
  void remember(uint64_t key);
  void tuple(size_t n);
  void text(size_t n, PickleValue::Kind kind = PickleValue::Kind::Text);
  std::string_view keep(std::string text);
  void extend(uint32_t target, const uint32_t* items, size_t count);
  void append(const std::vector<uint32_t>& items);
  void set_items(const std::vector<uint32_t>& items);
  void global(std::string_view module, std::string_view name);
  void persistent_id();
  void reduce();
  void new_object();
  std::string latin1(std::string_view utf8);
  bool plain_call(std::string_view function, uint32_t arguments);
  void ordered_dict(uint32_t arguments);
  void build();
  void rebuild_tensor(uint32_t arguments);
  void check_numbers(uint32_t id);
  bool simple(uint8_t op);
  bool stack(uint8_t op);
  void step(uint8_t op);
  [[noreturn]] void refuse(const std::string& what);

  Cursor in_;
  Budget& budget_;
  std::vector<PickleValue> values_;
  std::vector<uint32_t> stack_;
  std::unordered_map<uint64_t, uint32_t> memo_;
  std::deque<std::string> texts_;  // those that are not in the pickle as they are
  uint32_t root_ = 0;
  bool stopped_ = false;
};

}  // namespace ingot::io
