// gradcheck and gradgradcheck find right gradients right and wrong ones wrong.
#include <doctest/doctest.h>

#include "support/op_check.h"

using namespace ingot;
using namespace ingot::check;

static Tensor input(const Dims& shape, uint64_t seed) {
  Numbers numbers(seed);
  Tensor t = random_tensor(shape, float64, 0.3, 1.7, numbers, "cpu");
  t.requires_grad_();
  return t;
}

TEST_CASE("right gradients pass, of both orders") {
  GradFunction f = [](const std::vector<Tensor>& x) {
    return std::vector<Tensor>{softmax(matmul(x[0], x[1]), -1), (x[0] * x[0]).sum(0) / x[1].sum()};
  };
  std::vector<Tensor> at = {input({2, 3}, 1), input({3, 2}, 2)};
  GradCheck first = gradcheck(f, at), second = gradgradcheck(f, at);
  CHECK_MESSAGE(first.ok, first.report);
  CHECK_MESSAGE(second.ok, second.report);
  CHECK(!first.report.empty());
}

TEST_CASE("a wrong gradient is found, and the element named") {
  CustomFunction wrong(
      [](FunctionContext&, const std::vector<Tensor>& in) {
        return std::vector<Tensor>{in[0] * in[0]};
      },
      [](FunctionContext&, const std::vector<Tensor>& g) {
        Tensor bad = g[0] * 0.0;
        return std::vector<Tensor>{bad};
      });
  GradCheck result =
      gradcheck([&](const std::vector<Tensor>& x) { return wrong({x[0]}); }, {input({2, 3}, 3)});
  CHECK(!result);
  CHECK(result.worst > 100);
  CHECK(result.report.find("input 0 [") == 0);
}

TEST_CASE("only float64 can be checked") {
  Tensor x = tensor({1.0f, 2.0f});
  x.requires_grad_();
  CHECK_THROWS_AS(gradcheck([](const std::vector<Tensor>& in) { return in; }, {x}), Error);
}
