// Fine-tuning: a network learns one task, its file is loaded into another network, and only a small
// part is trained on: first a new head on frozen layers, then updates of low rank (LoRA).
//
//   fine_tuning [--device cpu]
#include <cmath>
#include <filesystem>

#include <ingot/ingot.h>
using namespace ingot;

// Points in the plane; the classes of the second task are those of the first, slightly rotated.
static std::pair<Tensor, Tensor> points(double angle) {
  const Tensor x = randn({512, 2});
  const Tensor rotated = x.select(1, 0) * std::cos(angle) + x.select(1, 1) * std::sin(angle);
  return {x, (rotated * rotated > 0.5).to(int64)};
}

struct Net : nn::Module {
  nn::Sequential body =
      add("body", nn::Sequential(nn::Linear(2, 64), nn::Tanh(), nn::Linear(64, 64), nn::Tanh()));
  nn::Linear head = add("head", nn::Linear(64, 2));
  Tensor forward(Tensor x) override { return head(body(x)); }
};

// Trains what still requires gradients.
static double train(nn::Module& model, double angle, int steps) {
  std::vector<Tensor> trained;
  for (const Tensor& p : model.parameters())
    if (p.requires_grad()) trained.push_back(p);
  optim::AdamW opt(trained, {.lr = 1e-2});
  Tensor loss;
  for (int i = 0; i < steps; ++i) {
    const auto [x, y] = points(angle);
    loss = cross_entropy(model(x), y);
    opt.zero_grad();
    loss.backward();
    opt.step();
  }
  return loss.item();
}

int main(int argc, char** argv) {
  set_default_device(argc > 1 ? Device(argv[argc - 1]) : Device::best());
  manual_seed(1);
  const std::string file =
      (std::filesystem::temp_directory_path() / "ingot-fine-tuning.safetensors").string();
  Net first;
  std::cout << "first task: loss " << train(first, 0, 200) << "\n";
  io::save_weights(first, file);

  Net second;
  io::load_weights(second, file);
  second.body.requires_grad_(false);  // frozen: only the head is trained
  const double head_only = train(second, 0.4, 100);
  std::cout << "second task, head only: loss " << head_only << "\n";

  Net third;
  io::load_weights(third, file);
  const int64_t layers = nn::add_lora(third, "body.*", {.r = 4, .lora_alpha = 4});
  const double lora = train(third, 0.4, 100);
  std::cout << "second task, LoRA of rank 4 in " << layers << " layers: loss " << lora << "\n";
  nn::merge_lora(third);  // merges the updates into the weights: a plain network again
  std::filesystem::remove(file);
  return lora < 0.5 ? 0 : 1;
}
