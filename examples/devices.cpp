// Choosing a device at run time: which ones there are, which is best, and how to name one.
//
//   devices [--device cuda:1]
#include <ingot/ingot.h>
using namespace ingot;

int main(int argc, char** argv) {
  for (const DeviceInfo& d : list_devices())
    std::cout << d.device.name() << ": " << d.name << ", " << (d.free >> 20) << " of "
              << (d.memory >> 20) << " MiB free\n";

  // A name from the command line, or the GPU with most free memory, or the CPU.
  const Device device = argc > 1 ? Device(argv[argc - 1]) : Device::best();
  std::cout << "chosen: " << device.name() << "\n";

  // New tensors go to the default device; a DeviceScope changes it for a scope, Options for one
  // tensor.
  set_default_device(device);
  const Tensor a = ones({1000, 1000});
  Tensor b;
  {
    DeviceScope scope("cpu");
    b = ones({2, 2});
  }
  const Tensor c = zeros({3}, "cpu:1");
  std::cout << a.device().name() << " " << b.device().name() << " " << c.device().name() << "\n";

  eval(a);
  std::cout << "in use on " << device.name() << ": " << (device.memory().in_use >> 10)
            << " KiB, at most " << (device.memory().peak >> 10) << " KiB\n";

  // A device that does not exist is an error that lists those that do.
  try {
    Device missing("cuda:63");
  } catch (const Error& e) {
    std::cout << std::string(e.what()).substr(0, std::string(e.what()).find('\n')) << "\n";
  }
}
