// Tensors: creating them, computing with them, printing them, gradients.
//
//   tensors [--device cpu]
#include <ingot/ingot.h>
using namespace ingot;

int main(int argc, char** argv) {
  set_default_device(argc > 1 ? Device(argv[argc - 1]) : Device::best());

  Tensor a = tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}).reshape({2, 3});
  Tensor b = ones({3, 2}) * 0.5;
  std::cout << "a =\n" << a << "\na @ b =\n" << matmul(a, b) << "\n";

  // Shapes broadcast and indices slice as in PyTorch; a slice is a view, and writing to it writes
  // to a.
  std::cout << "rows minus their means =\n" << a - a.mean(1, true) << "\n";
  a[{Slice{}, 0}] = 0;
  std::cout << "first column cleared =\n" << a << "\nlargest of each row: " << a.amax(1) << "\n";

  // Nothing has to run until a value is needed: the three lines below become one kernel.
  Tensor x = linspace(0, 1, 1000);
  Tensor y = exp(-x) * sin(10 * x);
  std::cout << "mean of exp(-x) sin(10 x): " << (y * y).mean().sqrt().item()
            << " (root of the mean square)\n";

  // Gradients of anything with respect to what requires them.
  Tensor w = tensor({3.0, -1.0}).requires_grad_();
  Tensor loss = (w * w).sum() + w.prod();
  loss.backward();
  std::cout << "gradient of w0^2 + w1^2 + w0 w1 at (3, -1): " << w.grad() << "\n";
}
