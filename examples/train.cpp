#include <ingot/ingot.h>
using namespace ingot;

struct Net : nn::Module {
  nn::Conv2d conv1 = add("conv1", nn::Conv2d(1, 32, {.kernel_size = 3, .padding = 1}));
  nn::Conv2d conv2 = add("conv2", nn::Conv2d(32, 64, {.kernel_size = 3, .padding = 1}));
  nn::Linear fc = add("fc", nn::Linear(64 * 7 * 7, 10));
  Tensor forward(Tensor x) override {
    x = max_pool2d(relu(conv1(x)), 2);
    x = max_pool2d(relu(conv2(x)), 2);
    return fc(x.flatten(1));
  }
};

int main(int argc, char** argv) {
  Device device = argc > 1 ? Device(argv[argc - 1]) : Device::best();
  manual_seed(42);
  Net model;
  model.to(device);
  data::DataLoader train(data::FashionMNIST("data"),
                         {.batch_size = 128, .shuffle = true, .device = device});
  optim::AdamW opt(model.parameters(), {.lr = 1e-3});
  Checkpoint ckpt("runs/fashion", model, opt, train);
  for (int epoch = ckpt.resume(); epoch < 5; ++epoch) {
    Tensor loss;
    for (auto [images, labels] : train) {
      amp::Autocast autocast(bfloat16, device.is_cuda());
      loss = cross_entropy(model(images), labels);
      opt.zero_grad();
      loss.backward();
      opt.step();
    }
    ckpt.save(epoch + 1);
    std::cout << "epoch " << epoch << " loss " << loss.item() << '\n';
  }
}
