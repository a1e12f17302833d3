// Loading, training, checkpoints and weights on a device: INGOT_TEST_DEVICE, or cpu:1. The batches
// are those of the CPU to the bit, however many threads put them there while the device works.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cstdlib>

#include "support/folder.h"

using namespace ingot;

namespace {

Device device() {
  const char* name = std::getenv("INGOT_TEST_DEVICE");
  return Device(name ? name : "cpu:1");
}

struct Net : nn::Module {
  nn::Linear first = add("first", nn::Linear(144, 32));
  nn::Linear last = add("last", nn::Linear(32, data::Shapes::kClasses));
  Tensor forward(Tensor x) override {
    return last(dropout(relu(first(x.flatten(1))), 0.1, is_training()));
  }
};

data::DataLoader loader(int workers) {
  return data::DataLoader(
      data::Shapes({.size = 300, .side = 12}),
      {.batch_size = 16, .shuffle = true, .num_workers = workers, .device = device(), .seed = 3});
}

double epoch(Net& model, optim::Optimizer& opt, data::DataLoader& train) {
  Tensor loss;
  for (auto [images, labels] : train) {
    CHECK(images.device() == device());
    loss = cross_entropy(model(images), labels);
    opt.zero_grad();
    loss.backward();
    opt.step();
  }
  return loss.item();
}

std::vector<float> weights(const Net& net) {
  std::vector<float> all;
  for (const Tensor& p : net.parameters())
    for (float v : p.to_vector<float>()) all.push_back(v);
  return all;
}

}  // namespace

TEST_CASE("batches on the device are those of the CPU") {
  data::DataLoader here(data::Shapes({.size = 100, .side = 12}),
                        {.batch_size = 16, .shuffle = true, .num_workers = 0, .seed = 3});
  data::DataLoader there(
      data::Shapes({.size = 100, .side = 12}),
      {.batch_size = 16, .shuffle = true, .num_workers = 3, .device = device(), .seed = 3});
  for (int e = 0; e < 3; ++e) {
    std::vector<std::vector<float>> want;
    for (auto [x, y] : here) want.push_back((x.sum({1, 2, 3}) + y).to_vector<float>());
    size_t i = 0;
    // The sum is computed while the next batches arrive.
    for (auto [x, y] : there)
      CHECK((x.cpu().sum({1, 2, 3}) + y.cpu()).to_vector<float>() == want[i++]);
    CHECK(i == want.size());
  }
}

TEST_CASE("training resumes to the same bit from a checkpoint, and learns") {
  Folder f;
  manual_seed(5);
  Net whole;
  whole.to(device());
  optim::AdamW opt(whole.parameters(), {.lr = 3e-3});
  data::DataLoader train = loader(2);
  std::vector<double> losses;
  for (int e = 0; e < 3; ++e) losses.push_back(epoch(whole, opt, train));

  for (bool second : {false, true}) {
    manual_seed(second ? 99 : 5);
    Net model;
    model.to(device());
    optim::AdamW own(model.parameters(), {.lr = 3e-3});
    data::DataLoader again = loader(second ? 1 : 3);
    Checkpoint ckpt(f.path, {.asynchronous = true}, model, own, again);
    int from = static_cast<int>(ckpt.resume());
    CHECK(from == (second ? 2 : 0));
    for (int e = from; e < (second ? 3 : 2); ++e) {
      CHECK(epoch(model, own, again) == losses[static_cast<size_t>(e)]);
      ckpt.save(e + 1);
    }
    ckpt.wait();
    if (second) CHECK(weights(model) == weights(whole));
    for (const Tensor& p : model.parameters()) CHECK(p.device() == device());
  }
}

TEST_CASE("weights of a file go where the module is") {
  Folder f;
  Net a, b;
  b.to(device());
  io::save_weights(a, f / "a.safetensors");
  CHECK(io::load_weights(b, f / "a.safetensors").ok());
  CHECK(weights(a) == weights(b));
  CHECK(b.first.weight().device() == device());
  io::save_safetensors(f / "b.safetensors", b.state_dict().tensors);
  CHECK(read_file(f / "a.safetensors") == read_file(f / "b.safetensors"));
  CHECK(io::load_safetensors(f / "b.safetensors", device())[0].second.device() == device());
}
