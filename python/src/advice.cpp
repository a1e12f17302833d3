// What an error of the library advises, in Python. The library writes its advice in C++, next to the
// check; where that is no Python, this table has what a Python program writes.
#include "bind.h"

namespace ingot_python {
namespace {

struct Advice {
  std::string_view cpp, python;
};

constexpr Advice table[] = {
    {"{ NoGrad guard; ... }", "with ingot.no_grad():"},
    {"x.to_vector<T>()", "x.tolist()"},
    {"x.reshape({1})", "x.reshape(1)"},
    {"allow_unused=true to get an undefined Tensor", "allow_unused=True to get None"},
    {"backward({}, /*retain_graph=*/true)", "backward(retain_graph=True)"},
    {"step(/*keep_gradients=*/true)", "step(keep_gradients=True)"},
    {"Device::set_memory_limit", "ingot.device(...).set_memory_limit(bytes)"},
    {"Device::best()", "ingot.device.best()"},
    {"CheckpointOptions{.fresh = true}", "Checkpoint(..., fresh=True)"},
    {"strict = false", "strict=False"},
    {"{.kernel_size = 3}", "kernel_size=3"},
    {"{.scale_factor = {2}}", "scale_factor=2"},
    {"{front, behind}", "(front, behind)"},
    {"it was made by Tensor() and", "it was"},
};

}  // namespace

std::string in_python(std::string text) {
  for (const Advice& a : table)
    for (size_t at = text.find(a.cpp); at != std::string::npos;
         at = text.find(a.cpp, at + a.python.size()))
      text.replace(at, a.cpp.size(), a.python);
  return text;
}

}  // namespace ingot_python
