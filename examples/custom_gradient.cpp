// Custom gradients: rounding has no useful gradient, so the backward half passes it straight
// through; and a function whose derivative has a more stable form than differentiation would give.
// gradcheck() tests whether a gradient is correct.
//
//   custom_gradient [--device cpu]
#include <ingot/ingot.h>
using namespace ingot;

int main(int argc, char** argv) {
  set_default_device(argc > 1 ? Device(argv[argc - 1]) : Device::best());

  const CustomFunction quantize(
      [](FunctionContext&, const std::vector<Tensor>& in) {
        return std::vector{round(in[0] * 8) / 8};
      },
      [](FunctionContext&, const std::vector<Tensor>& g) { return g; }, "quantize");
  Tensor x = tensor({0.30, -0.71, 1.22}).requires_grad_();
  const Tensor y = quantize({x})[0];
  (y * y).sum().backward();
  std::cout << "rounded to eighths: " << y << "\ngradient: " << x.grad() << "\n";

  const CustomFunction softplus_(
      [](FunctionContext& ctx, const std::vector<Tensor>& in) {
        ctx.save_for_backward(in);
        return std::vector{in[0].clamp_min(0) + log1p(exp(-in[0].abs()))};
      },
      [](FunctionContext& ctx, const std::vector<Tensor>& g) {
        return std::vector{g[0] * sigmoid(ctx.saved()[0])};
      },
      "softplus");
  const Tensor at = tensor({-3.0, 0.5, 20.0}).to(float64).requires_grad_();
  const GradCheck check =
      gradcheck([&](const std::vector<Tensor>& in) { return softplus_(in); }, {at});
  std::cout << "softplus: " << softplus_({at})[0] << "\nits gradient is "
            << (check ? "right" : "wrong: " + check.report) << "\n";
  return check ? 0 : 1;
}
