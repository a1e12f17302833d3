// StateDict's numbers, and the writing of many tensors at once.
#include "ingot/state.h"

#include <charconv>

#include "ingot/autograd.h"
#include "ingot/runtime.h"
#include "ops/common.h"

namespace ingot {

void StateDict::set(const std::string& name, std::string_view text) { values[name] = text; }
bool StateDict::has(const std::string& name) const { return values.count(name) != 0; }

void StateDict::set(const std::string& name, double number) {
  char text[64];
  auto [end, error] =
      std::to_chars(text, text + sizeof text, number);  // the shortest text that reads back exactly
  values[name] = std::string(text, end);
}

const std::string& StateDict::text(const std::string& name, SourceLoc loc) const {
  auto at = values.find(name);
  if (at == values.end())
    fail(ErrorKind::State, "state_dict", "there is no value \"" + name + "\"", user_loc(loc));
  return at->second;
}

namespace {

template <class T>
T parse(const StateDict& d, const std::string& name, const SourceLoc& loc) {
  const std::string& s = d.text(name, loc);
  T v{};
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc() || end != s.data() + s.size() || s.empty())
    fail(ErrorKind::State, "state_dict",
         "the value \"" + name + "\" is not a number of its kind: \"" + s + "\"", user_loc(loc));
  return v;
}

}  // namespace

double StateDict::number(const std::string& name, SourceLoc loc) const {
  return parse<double>(*this, name, loc);
}
int64_t StateDict::integer(const std::string& name, SourceLoc loc) const {
  return parse<int64_t>(*this, name, loc);
}
uint64_t StateDict::unsigned_integer(const std::string& name, SourceLoc loc) const {
  return parse<uint64_t>(*this, name, loc);
}

const Tensor& StateDict::tensor(std::string_view name, SourceLoc loc) const {
  for (const auto& [key, t] : tensors)
    if (key == name) return t;
  fail(ErrorKind::State, "state_dict", "there is no tensor \"" + std::string(name) + "\"",
       user_loc(loc));
}

void assign_all(const std::vector<std::pair<Tensor, Tensor>>& pairs, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  for (const auto& [target, value] : pairs)
    if (!(node_of(target, "assign_all", loc)->shape == node_of(value, "assign_all", loc)->shape))
      fail(ErrorKind::Shape, "assign_all",
           describe(value) + " does not fit into " + describe(target), loc,
           "the shapes must be the same");
  std::vector<Tensor> changed;
  for (auto [target, value] : pairs) {
    target.copy_(value.detach().to(target.device()));
    changed.push_back(target);
  }
  eval(changed, loc);
}

}  // namespace ingot
