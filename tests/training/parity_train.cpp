// parity_train MODEL FOLDER STEPS [autocast | master]: trains a model of the library from
// FOLDER/init.npz on the batches of FOLDER/data.npz (x.0, y.0, x.1, ...) and writes
// FOLDER/ours.npz: "loss" of each step and "grad.NAME" of the first. autocast: products in
// bfloat16; master: parameters in bfloat16 with float32 masters. parity.py makes the input and
// compares.
#include <ingot/ingot.h>
#include <ingot/models.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>

using namespace ingot;

namespace {

struct Case {
  std::shared_ptr<nn::Module> model;
  std::function<Tensor(const Tensor&, const Tensor&)> loss;
  std::function<std::unique_ptr<optim::Optimizer>()> optimiser;  // made when the weights are there
};

bool master = false;  // parameters in bfloat16

template <class M>
std::shared_ptr<M> made(M& model) {
  if (master) model.to(bfloat16);
  return std::make_shared<M>(model);
}

std::function<std::unique_ptr<optim::Optimizer>()> adamw(nn::Module& model) {
  return [&model] {
    return std::make_unique<optim::AdamW>(
        model.parameters(), optim::AdamWOptions{.lr = 3e-4, .master_weights = master});
  };
}

template <class M>
Case classifier(M model, bool adam) {
  auto shared = made(model);
  Case c;
  c.model = shared;
  c.loss = [shared](const Tensor& x, const Tensor& y) {
    return cross_entropy((*shared)(master ? x.to(bfloat16) : x).to(float32), y);
  };
  if (adam)
    c.optimiser = adamw(*shared);
  else
    c.optimiser = [shared] {
      return std::make_unique<optim::SGD>(
          shared->parameters(),
          optim::SGDOptions{.lr = 0.005, .momentum = 0.9, .master_weights = master});
    };
  return c;
}

template <class M>
Case language_model(M model) {
  auto shared = made(model);
  Case c;
  c.model = shared;
  c.loss = [shared](const Tensor& x, const Tensor& y) {
    return cross_entropy((*shared)(x).to(float32).flatten(0, 1), y.flatten());
  };
  c.optimiser = adamw(*shared);
  return c;
}

Case make(const std::string& name) {
  if (name == "lenet") return classifier(models::LeNet(), false);
  if (name == "resnet18")
    return classifier(models::resnet18({.num_classes = 10, .small_input = true}), false);
  if (name == "vit")
    return classifier(models::vit_tiny({.image_size = 64, .num_classes = 10}), true);
  if (name == "gpt")
    return language_model(
        models::GPT({.layers = 3, .heads = 4, .width = 128, .context = 64, .vocabulary = 96}));
  if (name == "lstm") return language_model(models::CharLSTM(96));
  std::fprintf(stderr, "parity_train: there is no model %s\n", name.c_str());
  std::exit(2);
}

void run(const std::string& name, const std::string& folder, int steps, bool autocast) {
  Case c = make(name);
  StateDict init;
  init.tensors = io::load_npz(folder + "/init.npz");
  c.model->load_state_dict(init);
  const std::unique_ptr<optim::Optimizer> optimiser = c.optimiser();
  std::map<std::string, Tensor> data;
  for (auto& [key, t] : io::load_npz(folder + "/data.npz")) data[key] = t.to(default_device());
  std::vector<float> losses;
  NamedTensors written;
  for (int step = 0; step < steps; ++step) {
    Tensor loss;
    {
      amp::Autocast scope(bfloat16, autocast);
      loss = c.loss(data.at("x." + std::to_string(step)), data.at("y." + std::to_string(step)));
    }
    loss.backward();
    if (step == 0)
      for (const auto& [path, p] : c.model->named_parameters())
        written.emplace_back("grad." + path, p.grad().to(float32).clone().eval_());
    optimiser->step();
    losses.push_back(loss.item<float>());
  }
  written.emplace_back("loss", tensor(losses));
  io::save_npz(folder + "/ours.npz", written);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 5 ? argv[4] : "";
  if (argc < 4 || argc > 5 || (argc == 5 && mode != "autocast" && mode != "master")) {
    std::fprintf(stderr, "usage: parity_train MODEL FOLDER STEPS [autocast | master]\n");
    return 2;
  }
  master = mode == "master";
  try {
    if (const char* device = std::getenv("INGOT_TEST_DEVICE")) set_default_device(Device(device));
    run(argv[1], argv[2], std::atoi(argv[3]), mode == "autocast");
  } catch (const Error& e) {
    std::fprintf(stderr, "parity_train: %s\n", e.what());
    return 1;
  }
}
