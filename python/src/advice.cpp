// What an error of the library advises, in Python. The library writes its advice in C++, next to
// the check; where that is no Python, this table has what a Python program writes.
#include "bind.h"

namespace ingot_python {
namespace {

struct Advice {
  std::string_view cpp, python;
};

constexpr Advice table[] = {
    {"{ NoGrad guard; ... }", "with ingot.no_grad():"},
    {"x.to_vector<T>()", "x.tolist()"},
    {"allow_unused=true to get an undefined Tensor", "allow_unused=True to get None"},
    {"backward({}, /*retain_graph=*/true)", "backward(retain_graph=True)"},
    {"step(/*keep_gradients=*/true)", "step(keep_gradients=True)"},
    {"Device::set_memory_limit", "ingot.device(...).set_memory_limit(bytes)"},
    {"Device::best()", "ingot.device.best()"},
    {"CheckpointOptions{.fresh = true}", "Checkpoint(..., fresh=True)"},
    {"strict = false", "strict=False"},
    {"{.kernel_size = 3}", "kernel_size=3"},
    {"{.scale_factor = {2}}", "scale_factor=2"},
    {"{before, after}", "(before, after)"},
    {"it was made by Tensor() and", "it was"},
};

// A shape: {2, 3} as an argument of its own becomes 2, 3, anywhere else [2, 3].
void convert_shapes(std::string& text) {
  for (size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
    const size_t end = text.find_first_not_of("0123456789, -", at + 1);
    if (end == std::string::npos || text[end] != '}' || end == at + 1) continue;
    const bool alone =
        at > 0 && text[at - 1] == '(' && end + 1 < text.size() && text[end + 1] == ')';
    text.replace(end, 1, alone ? "" : "]");
    text.replace(at, 1, alone ? "" : "[");
  }
}

}  // namespace

std::string in_python(std::string text) {
  for (const Advice& a : table)
    for (size_t at = text.find(a.cpp); at != std::string::npos;
         at = text.find(a.cpp, at + a.python.size()))
      text.replace(at, a.cpp.size(), a.python);
  convert_shapes(text);
  return text;
}

}  // namespace ingot_python
