// A short training run that is killed and started again by resume.py: dropout, AdamW, a schedule, a
// loader with threads and random transforms, a separate generator. Saves in the middle of epochs
// too. At the end it writes its weights.
//
//   resume_program FOLDER WEIGHTS [--epochs N] [--asynchronous] [--no-middle] [--sleep
//   MILLISECONDS]
#include <ingot/ingot.h>

#include <chrono>
#include <cstring>
#include <iostream>
#include <thread>

using namespace ingot;

namespace {

struct Net : nn::Module {
  nn::Linear first = add("first", nn::Linear(144, 96));
  nn::Linear last = add("last", nn::Linear(96, data::Shapes::kClasses));
  Tensor forward(Tensor x) override {
    return last(dropout(relu(first(x.flatten(1))), 0.2, is_training()));
  }
};

}  // namespace

int train(int argc, char** argv) {
  int epochs = 4, sleep = 0;
  bool asynchronous = false, middle = true;
  for (int i = 3; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--epochs"))
      epochs = std::atoi(argv[++i]);
    else if (!std::strcmp(argv[i], "--sleep"))
      sleep = std::atoi(argv[++i]);
    else if (!std::strcmp(argv[i], "--asynchronous"))
      asynchronous = true;
    else if (!std::strcmp(argv[i], "--no-middle"))
      middle = false;
  }
  set_num_threads(1);
  manual_seed(42);
  Generator noise(7);
  Net model;
  data::Transforms t = {data::RandomCrop(12, {.padding = 1}), data::RandomHorizontalFlip(),
                        data::RandomErasing()};
  data::DataLoader train(data::Shapes({.size = 700, .side = 12, .transform = t}),
                         {.batch_size = 32, .shuffle = true, .num_workers = 2});
  optim::AdamW opt(model.parameters(), {.lr = 3e-3});
  optim::StepLR schedule(opt, 1, 0.7);
  Checkpoint ckpt(argv[1], {.keep = 2, .asynchronous = asynchronous}, model, opt, schedule, train,
                  noise);
  int64_t batches = 0;
  for (int epoch = static_cast<int>(ckpt.resume()); epoch < epochs; ++epoch) {
    for (auto [images, labels] : train) {
      Tensor loss = cross_entropy(model(images + randn(images.shape(), {}, noise) * 0.05), labels);
      opt.zero_grad();
      loss.backward();
      opt.step();
      if (sleep) std::this_thread::sleep_for(std::chrono::milliseconds(sleep));
      if (middle && ++batches % 5 == 0) ckpt.save(epoch);
    }
    schedule.step();
    ckpt.save(epoch + 1);
  }
  ckpt.wait();
  io::save_weights(model, argv[2]);
  std::cout << "done" << std::endl;
  return 0;
}

int main(int argc, char** argv) {
  try {
    return train(argc, argv);
  } catch (const Error& e) {
    std::cerr << e.what() << std::endl;
    return 3;
  }
}
