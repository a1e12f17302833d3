// Texts: a sorted vector, searched by halves.
#include "ingot/texts.h"

#include <algorithm>

#include "ops/common.h"

namespace ingot {

static bool before(const Texts::value_type& text, std::string_view name) {
  return text.first < name;
}

Texts::Texts(std::initializer_list<value_type> texts) : Texts(std::vector<value_type>(texts)) {}

Texts::Texts(std::vector<value_type> texts) : texts_(std::move(texts)) {
  auto less = [](const value_type& a, const value_type& b) { return a.first < b.first; };
  auto same = [](const value_type& a, const value_type& b) { return a.first == b.first; };
  std::stable_sort(texts_.begin(), texts_.end(), less);
  texts_.erase(std::unique(texts_.begin(), texts_.end(), same), texts_.end());
}

Texts::const_iterator Texts::lower_bound(std::string_view name) const {
  return std::lower_bound(begin(), end(), name, before);
}
Texts::const_iterator Texts::find(std::string_view name) const {
  auto at = lower_bound(name);
  return at != end() && at->first == name ? at : end();
}
size_t Texts::count(std::string_view name) const { return find(name) != end(); }

std::string& Texts::operator[](std::string_view name) {
  auto at = std::lower_bound(texts_.begin(), texts_.end(), name, before);
  if (at == texts_.end() || at->first != name) at = texts_.emplace(at, name, "");
  return at->second;
}

const std::string& Texts::at(std::string_view name) const {
  auto at = find(name);
  if (at == end())
    fail(ErrorKind::Value, "at", "there is no text named \"" + std::string(name) + "\"", {});
  return at->second;
}

Texts::const_iterator Texts::begin() const { return texts_.begin(); }
Texts::const_iterator Texts::end() const { return texts_.end(); }
size_t Texts::size() const { return texts_.size(); }
bool Texts::empty() const { return texts_.empty(); }
bool Texts::operator==(const Texts& other) const { return texts_ == other.texts_; }

}  // namespace ingot
