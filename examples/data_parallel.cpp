// Data parallel: one batch is split over several devices, each computes its part with the same
// parameters, the gradients are added.
//
//   data_parallel [--device cpu:1]
#include <ingot/ingot.h>
#include <ingot/models.h>
using namespace ingot;

int main(int argc, char** argv) {
  const Device other = argc > 1 ? Device(argv[argc - 1]) : Device::best();
  const std::vector<Device> devices{"cpu", other == Device("cpu") ? Device("cpu:1") : other};
  manual_seed(1);
  models::MLP model(20, 5, {.hidden = {64}});
  models::MLP alone = model.clone();  // the same network on one device, to compare
  optim::SGD opt(model.parameters(), {.lr = 0.1}), opt_alone(alone.parameters(), {.lr = 0.1});
  double worst = 0;
  for (int step = 0; step < 30; ++step) {
    const Tensor x = randn({64, 20}, "cpu"), target = randint(5, {64}, "cpu");
    const Tensor loss = data_parallel(
        devices, model.parameters(), {x, target},
        [&](const std::vector<Tensor>& part) { return cross_entropy(model(part[0]), part[1]); });
    opt.zero_grad();
    loss.backward();
    opt.step();

    const Tensor expected = cross_entropy(alone(x), target);
    opt_alone.zero_grad();
    expected.backward();
    opt_alone.step();
    worst = std::max(worst, std::abs(loss.item() - expected.item()));
  }
  std::cout << "30 steps over " << devices[0].name() << " and " << devices[1].name()
            << "; largest difference from one device: " << worst << "\n";
  return worst < 1e-4 ? 0 : 1;
}
