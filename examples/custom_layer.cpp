// A custom layer: named parameters, nested parts, saved and moved like any other.
//
//   custom_layer [--device cpu]
#include <ingot/ingot.h>
using namespace ingot;

// y = x + scale * mix(norm(x)), with a gate that learns how much of each feature to take.
class GatedBlock : public nn::Module {
 public:
  explicit GatedBlock(int64_t width)
      : norm_(add("norm", nn::LayerNorm(width))),
        mix_(add("mix", nn::Linear(width, width))),
        scale_(register_parameter("scale", full({width}, 0.1))) {}
  Tensor forward(Tensor x) override { return x + scale_ * silu(mix_(norm_(x))); }

 private:
  nn::LayerNorm norm_;
  nn::Linear mix_;
  nn::Parameter scale_;
};

int main(int argc, char** argv) {
  const Device device = argc > 1 ? Device(argv[argc - 1]) : Device::best();
  manual_seed(1);
  nn::Sequential model(nn::Linear(8, 32), GatedBlock(32), GatedBlock(32), nn::Linear(32, 1));
  model.to(device);
  std::cout << model << "\n";
  for (const auto& [name, p] : model.named_parameters())
    std::cout << name << " " << to_string(p.shape()) << "\n";

  optim::AdamW opt(model.parameters(), {.lr = 1e-2});
  double last = 0;
  for (int step = 0; step < 200; ++step) {
    const Tensor x = randn({128, 8}, device);
    const Tensor loss = mse_loss(model(x).squeeze(-1), x.select(1, 0) * x.select(1, 1));
    opt.zero_grad();
    loss.backward();
    opt.step();
    last = loss.item();
  }
  std::cout << "loss after 200 steps: " << last << "\n";
  return last < 0.5 ? 0 : 1;
}
