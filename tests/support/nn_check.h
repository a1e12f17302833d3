// What the tests of modules share.
#pragma once
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <string>

namespace ingot::check {

inline double largest(const Tensor& t) { return t.detach().to(float64).abs().max().item(); }
inline double difference(const Tensor& a, const Tensor& b) {
  return largest(a.detach().to(float64) - b.detach().to(float64));
}

inline std::string names(const NamedTensors& all) {
  std::string s;
  for (const auto& [name, tensor] : all) s += (s.empty() ? "" : " ") + name;
  return s;
}

template <class F>
std::string message(F&& f, ErrorKind kind) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  FAIL_CHECK("nothing was thrown");
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("missing \"" << part << "\" in:\n" << text);
  return found;
}

}  // namespace ingot::check
