// Which convolutions take what follows them, as plans of the null device show, and which do not.
#include <doctest/doctest.h>

#include <algorithm>

#include "backend/null/null_backend.h"
#include "ingot/ingot.h"
#include "ingot/models/vision.h"
#include "plugin/conv_cases.h"

using namespace ingot;
using namespace ingot::test;

namespace {

int named(const Explanation& e, const std::string& label) {
  return static_cast<int>(std::count(e.kernels.begin(), e.kernels.end(), label));
}

}  // namespace

TEST_CASE("a convolution and what follows it are one call") {
  const ConvInputs cpu = conv_inputs();
  for (DType t : {float32, bfloat16}) {
    const ConvInputs in = cpu.moved(Device("null"), t);
    for (const ConvCase& c : conv_cases()) {
      CAPTURE(std::string(c.name));
      NoGrad guard;
      const Explanation e = explain(c.run(in));
      CAPTURE(e.text);
      CHECK(named(e, c.label) >= 1);
      const std::string name = c.name;
      CHECK(e.library == (name == "two convolutions" || name == "in a row" ? 2 : 1));
      // Weights, scale and shift: a few small kernels, and none over the result.
      CHECK(e.generated <= (c.folds ? 5 : 2));
      for (const std::string& k : e.kernels)
        CHECK((k.find("conv") == 0 || k.find("relu") == k.npos));
    }
  }
}

TEST_CASE("float16 weights are not scaled, their convolutions still take bias, residual and ReLU") {
  const ConvInputs in = conv_inputs().moved(Device("null"), float16);
  NoGrad guard;
  for (const ConvCase& c : conv_cases()) {
    CAPTURE(std::string(c.name));
    const Explanation e = explain(c.run(in));
    if (!c.folds) CHECK(named(e, c.label) == 1);
    if (c.folds && std::string(c.name) != "bias norm") CHECK(named(e, c.label) == 0);
  }
}

TEST_CASE("what others read, keep or differentiate is left alone") {
  const ConvInputs in = conv_inputs().moved(Device("null"), float32);
  auto conv = [&] { return conv2d(in.x, in.w, in.bias, 1, 1); };
  {
    NoGrad guard;
    {
      Tensor y = conv();  // the handle keeps it
      CHECK(named(explain(relu(y)), "conv+bias") == 1);
    }
    auto twice = [](const Tensor& z) { return relu(z) * (z * 2.0); };  // two readers
    CHECK(named(explain(twice(conv())), "conv+bias") == 1);
    CHECK(named(explain(relu(conv2d(in.x, in.w))), "conv") == 1);  // no bias to take along
    // A residual that is spread over the batch.
    CHECK(named(explain(relu(conv() + in.add.narrow(0, 0, 1))), "conv+bias") == 1);
    CHECK(named(explain(conv().to(float64).relu()), "conv+bias") == 1);
  }
  {
    Tensor w = in.w.detach().requires_grad_();  // a gradient may be asked for
    auto forward = [&] {
      return batch_norm(conv2d(in.x, w, {}, 1, 1), in.mean, in.var, in.gamma, in.beta);
    };
    CHECK(named(explain(relu(forward())), "conv") == 1);
  }
  // In training mode the statistics come from the result.
  CHECK(named(explain(relu(batch_norm(conv2d(in.x, in.w), {}, {}, in.gamma, in.beta, true))),
              "conv") == 1);
}

TEST_CASE("ResNet-50 at inference: a launch per convolution and few more") {
  for (DType t : {float32, bfloat16}) {
    models::ResNet model = models::resnet50({});
    model.to(t);
    model.to("null");
    model.eval();
    NoGrad guard;
    Tensor x = zeros({1, 3, 224, 224}, {t, "null"}).eval_();
    const Explanation e = explain(model(x));
    CAPTURE(e.text);
    CHECK(named(e, "conv+bias+relu") == 33);
    CHECK(named(e, "conv+bias") == 4);
    CHECK(named(e, "conv+bias+add+relu") == 16);
    CHECK(e.library == 54);
    CHECK(e.launches <= 62);
  }
}
