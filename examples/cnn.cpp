// A convolutional network that classifies drawn shapes; the data is generated on the fly.
//
//   cnn [--device cpu]
#include <ingot/ingot.h>
using namespace ingot;

struct Net : nn::Module {
  nn::Sequential features =
      add("features", nn::Sequential(nn::Conv2d(1, 16, {.kernel_size = 3, .padding = 1}),
                                     nn::BatchNorm2d(16), nn::ReLU(), nn::MaxPool2d(2),
                                     nn::Conv2d(16, 32, {.kernel_size = 3, .padding = 1}),
                                     nn::BatchNorm2d(32), nn::ReLU(), nn::MaxPool2d(2)));
  nn::Linear head = add("head", nn::Linear(32 * 7 * 7, data::Shapes::kClasses));
  Tensor forward(Tensor x) override { return head(features(x).flatten(1)); }
};

int main(int argc, char** argv) {
  const Device device = argc > 1 ? Device(argv[argc - 1]) : Device::best();
  manual_seed(1);
  Net model;
  model.to(device);
  data::DataLoader train(data::Shapes({.size = 2000}),
                         {.batch_size = 50, .shuffle = true, .device = device});
  data::DataLoader test(data::Shapes({.size = 500, .seed = 9}),
                        {.batch_size = 100, .device = device});
  optim::AdamW opt(model.parameters(), {.lr = 3e-3});
  const auto history =
      fit(model, train,
          {.optimizer = &opt, .epochs = 3, .validation = &test, .metrics = {metrics::accuracy()}});
  return history.back().validation_metrics[0] > 0.8 ? 0 : 1;
}
