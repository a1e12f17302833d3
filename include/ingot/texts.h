// Texts: short texts under names, in the order of the names. The part of std::map that file headers
// need, at a fraction of its compile time.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot {

class Texts {
 public:
  using key_type = std::string;
  using mapped_type = std::string;
  using value_type = std::pair<std::string, std::string>;
  using const_iterator = std::vector<value_type>::const_iterator;

  /// Where a name occurs twice, the first one counts.
  Texts(std::initializer_list<value_type> texts = {});
  explicit Texts(std::vector<value_type> texts);

  /// The text of that name, "" if there was none.
  std::string& operator[](std::string_view name);
  /// Throws Error(Value) for an unknown name.
  const std::string& at(std::string_view name) const;
  /// end() for an unknown name.
  const_iterator find(std::string_view name) const;
  /// The first that is not before that name.
  const_iterator lower_bound(std::string_view name) const;
  size_t count(std::string_view name) const;

  const_iterator begin() const;
  const_iterator end() const;
  size_t size() const;
  bool empty() const;
  bool operator==(const Texts& other) const;

 private:
  std::vector<value_type> texts_;
};

}  // namespace ingot
