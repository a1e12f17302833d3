// Printing a module: its tree, each layer with the shapes of its parameters and their number of
// elements.
#include <functional>
#include <ostream>

#include "nn/module_state.h"
#include "ops/common.h"

namespace ingot::nn {
namespace {

std::string grouped(int64_t n) {  // 1,234,567
  std::string s = std::to_string(n);
  for (int64_t at = static_cast<int64_t>(s.size()) - 3; at > 0; at -= 3)
    s.insert(static_cast<size_t>(at), ",");
  return s;
}

}  // namespace

std::string Module::to_string() const {
  std::string text;
  const std::function<void(const Module&, const std::string&, const std::string&)> walk =
      [&](const Module& m, const std::string& name, const std::string& indent) {
        State& s = *m.state_;
        std::string line = indent + (name.empty() ? "" : "(" + name + "): ") + m.description(), own;
        int64_t count = 0;
        for (const State::Entry& e : s.tensors) {
          own += (own.empty() ? "" : ", ") + e.name + " " + ingot::to_string(e.tensor.shape()) +
                 (e.trained ? (e.tensor.requires_grad() ? "" : " frozen") : " buffer");
          if (e.trained) count += e.tensor.numel();
        }
        if (s.placed) line += " on " + s.placed->name();
        if (!own.empty()) line += "  " + own + "  = " + grouped(count);
        text += line + (s.parts.empty() ? "\n" : " (\n");
        for (const State::Part& p : s.parts) walk(*p.module, p.name, indent + "  ");
        if (!s.parts.empty()) text += indent + ")\n";
      };
  walk(*this, "", "");
  int64_t trained = 0;
  size_t bytes = 0;
  for (const Tensor& p : parameters()) {
    trained += p.requires_grad() ? p.numel() : 0;
    bytes += static_cast<size_t>(p.numel()) * size_of(p.dtype());
  }
  text += "parameters: " + grouped(parameter_count()) + ", trained: " + grouped(trained) +
          ", bytes: " + grouped(static_cast<int64_t>(bytes));
  return text;
}

std::ostream& operator<<(std::ostream& out, const Module& m) { return out << m.to_string(); }

}  // namespace ingot::nn
