// Layers on chosen devices: a network too large for one device has its parts on several. The copies
// between them are recorded like anything else, and gradients come back the same way.
//
//   layers_on_devices [--device cuda]
#include <ingot/ingot.h>
using namespace ingot;

struct Net : nn::Module {
  nn::Sequential encoder =
      add("encoder", nn::Sequential(nn::Linear(16, 64), nn::ReLU(), nn::Linear(64, 64)));
  nn::Sequential decoder =
      add("decoder", nn::Sequential(nn::Linear(64, 64), nn::ReLU(), nn::Linear(64, 4)));
  Tensor forward(Tensor x) override { return decoder(relu(encoder(x))); }
};

int main(int argc, char** argv) {
  // The encoder is on the CPU, the decoder on the requested device.
  const Device first = "cpu", second = argc > 1 ? Device(argv[argc - 1]) : Device::best();
  manual_seed(1);
  Net model;
  model.to(first);
  model.place("decoder.*", second);
  for (const auto& [name, p] : model.named_parameters())
    std::cout << name << " on " << p.device().name() << "\n";

  optim::AdamW opt(model.parameters(), {.lr = 1e-2});
  const Tensor x = randn({64, 16}, first), target = randint(4, {64}, first);
  double last = 0;
  for (int step = 0; step < 100; ++step) {
    const Tensor loss = cross_entropy(model(x), target);
    opt.zero_grad();
    loss.backward();
    opt.step();
    last = loss.item();
  }
  std::cout << "loss after 100 steps: " << last << "\n";
  return last < 0.3 ? 0 : 1;
}
