// Mixed precision: products in 16 bits, parameters and sums in 32. bfloat16 needs nothing else;
// float16 needs loss scaling, so that small gradients do not underflow.
//
//   mixed_precision [--device cpu]
#include <ingot/ingot.h>
#include <ingot/models.h>
using namespace ingot;

static double train(const Device& device, std::optional<DType> type) {
  manual_seed(1);
  models::MLP model(32, 4, {.hidden = {128, 128}});
  model.to(device);
  optim::AdamW opt(model.parameters(), {.lr = 3e-3});
  amp::GradScaler scaler({.enabled = type == float16});
  const Tensor centres = randn({4, 32}, device) * 0.6;
  double last = 0;
  for (int step = 0; step < 60; ++step) {
    const Tensor target = randint(4, {128}, device);
    const Tensor x = centres.index_select(0, target) + randn({128, 32}, device);
    Tensor loss;
    {
      amp::Autocast autocast(type.value_or(bfloat16), type.has_value());
      loss = cross_entropy(model(x), target);
    }
    opt.zero_grad();
    scaler.scale(loss).backward();
    scaler.step(opt);
    scaler.update();
    last = loss.item();
  }
  return last;
}

int main(int argc, char** argv) {
  const Device device = argc > 1 ? Device(argv[argc - 1]) : Device::best();
  const double full = train(device, {}), brain = train(device, bfloat16),
               half = train(device, float16);
  std::cout << "loss after 60 steps: float32 " << full << ", bfloat16 " << brain << ", float16 "
            << half << "\n";
  return std::abs(brain - full) < 0.1 && std::abs(half - full) < 0.1 ? 0 : 1;
}
