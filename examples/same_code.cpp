// The same code on the CPU and on a GPU: only the device differs.
//
//   same_code [--device cuda]
#include <chrono>

#include <ingot/ingot.h>
using namespace ingot;

// Independent of devices: it computes where its inputs are.
static Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  return matmul(softmax(matmul(q, k.transpose(-1, -2)) / 8.0, -1), v);
}

static Tensor timed(const Device& device, const Tensor& x) {
  const Tensor there = x.to(device);
  Tensor y = attention(there, there, there);
  eval(y);  // the first run compiles
  device.synchronize();
  const auto start = std::chrono::steady_clock::now();
  y = attention(there * 1.0, there, there);
  eval(y);
  device.synchronize();
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::cout << device.name() << ": " << ms << " ms\n";
  return y;
}

int main(int argc, char** argv) {
  const Device device = argc > 1 ? Device(argv[argc - 1]) : Device::best();
  manual_seed(1);
  const Tensor x = randn({8, 256, 64}, "cpu");
  const Tensor here = timed("cpu", x), there = timed(device, x);
  // Tensors on different devices do not mix: one of them has to be moved, explicitly.
  const double difference = (here - there.to("cpu")).abs().max().item();
  std::cout << "largest difference: " << difference << "\n";
  return difference < 1e-4 ? 0 : 1;
}
