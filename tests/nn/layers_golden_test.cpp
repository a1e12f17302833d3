// Every layer with parameters against PyTorch's (layers_golden.inc): the names and shapes of its
// state_dict, its result, its gradients, all with the same parameters and inputs.
#include <cmath>

#include "support/nn_check.h"

using namespace ingot;
using namespace ingot::check;

namespace {

using V = std::vector<double>;

Tensor wave(const Dims& shape, int seed) {
  V v(static_cast<size_t>(shape.numel()));
  for (size_t k = 0; k < v.size(); ++k)
    v[k] = std::sin(1.7 * static_cast<double>(k) + 0.9 * seed + 0.5);
  return tensor(v, shape);
}
Tensor x(const Dims& shape, int seed = 0) { return wave(shape, 100 + seed); }

void prepare(nn::Module& m, const std::string& names) {
  m.to(float64);
  StateDict state = m.state_dict(), filled;
  std::string got;
  int i = 0;
  for (const auto& [name, t] : state) {
    got += (got.empty() ? "" : "; ") + name + " " + to_string(t.shape());
    const double shift = name.find("running_var") != std::string::npos ? 1.5 : 0;
    filled.tensors.emplace_back(name, t.dtype() == float64 ? wave(t.shape(), i) * 0.5 + shift : t);
    ++i;
  }
  CHECK(got == names);
  m.load_state_dict(filled);
}

void compare(const V& got, const V& want, double tolerance = 1e-9) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i)
    CHECK(std::fabs(got[i] - want[i]) <= tolerance * std::max(1.0, std::fabs(want[i])));
}

void check_layer(nn::Module& m, const Tensor& y, const V& want, const V& gradients) {
  if (y.requires_grad()) (y * wave(y.shape(), 55)).sum().backward();
  compare(y.to_vector<double>(), want);
  V got;
  for (const Tensor& p : m.parameters())
    got.push_back(p.grad().defined() ? (p.grad() * wave(p.shape(), 77)).sum().item() : 0.0);
  compare(got, gradients,
          1e-7);  // some of PyTorch's gradients have float32 constants in them (hardsigmoid, celu)
}

#define UNPACK(...) __VA_ARGS__

}  // namespace

TEST_CASE("layers compute what PyTorch's compute") {
  Tensor causal = ones({4, 4}, DType::Bool).triu(1);
  Tensor padding = tensor(
      {{false, false, false, true}, {false, false, true, true}, {false, false, false, false}});
  Tensor classes = tensor({1, 3, 0});
  V buffers;
#define LAYER(made, call, names, want, gradients)                    \
  SUBCASE(#made " " #call) {                                         \
    UNPACK made;                                                     \
    prepare(m, names);                                               \
    check_layer(m, UNPACK call, want, gradients);                    \
    buffers.clear();                                                 \
    for (const auto& [name, t] : m.state_dict())                     \
      if (name.find("running") != std::string::npos)                 \
        for (double v : t.to_vector<double>()) buffers.push_back(v); \
  }
#define AFTER(want) \
  if (!buffers.empty()) compare(buffers, want), buffers.clear();
#include "layers_golden.inc"
}
