// How exact the CPU backend's products are.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

using namespace ingot;

TEST_CASE("a long product is summed in parts: its error does not grow with the depth") {
  manual_seed(3);
  for (int64_t k : {192, 193, 256, 384, 385, 768, 2048}) {
    CAPTURE(k);
    Tensor a = randn({48, k}), b = randn({k, 40});
    Tensor exact = matmul(a.to(float64), b.to(float64));
    Tensor off = matmul(a, b).to(float64) - exact;
    const double error = sqrt((off * off).sum() / (exact * exact).sum()).item<double>();
    CHECK(error < 2.8e-7);  // one sum over 384 would be off by 3.5e-7
  }
}
