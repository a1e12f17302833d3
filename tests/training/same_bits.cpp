// same_bits FOLDER: trains five models of the library for 20 steps, in float32 and with Autocast,
// and writes the parameters of each to FOLDER. Two builds that write the same files compute the
// same bits; tools/same_bits.sh compares two commits by it.
#include <ingot/ingot.h>
#include <ingot/models.h>

#include <cstdio>
#include <functional>
#include <string>

using namespace ingot;

namespace {

using Loss = std::function<Tensor()>;

void train(const std::string& folder, const std::string& name, nn::Module& model,
           optim::Optimizer& optimiser, bool autocast, const Loss& loss_of) {
  for (int step = 0; step < 20; ++step) {
    Tensor loss;
    {
      amp::Autocast scope(bfloat16, autocast);
      loss = loss_of();
    }
    optimiser.zero_grad();
    loss.backward();
    optimiser.step();
  }
  io::save_safetensors(folder + "/" + name + (autocast ? "-autocast" : "-float32") + ".safetensors",
                       model.state_dict().tensors);
}

template <class M>
void classify(const std::string& folder, const std::string& name, bool autocast, M model,
              const Dims& images) {
  optim::SGD optimiser(model.parameters(), {.lr = 0.005, .momentum = 0.9});
  train(folder, name, model, optimiser, autocast, [&] {
    const Tensor labels = randint(0, 10, {images[0]});
    return cross_entropy(model(randn(images)).to(float32), labels);
  });
}

template <class M>
void predict_text(const std::string& folder, const std::string& name, bool autocast, M model) {
  optim::AdamW optimiser(model.parameters(), {.lr = 3e-4});
  train(folder, name, model, optimiser, autocast, [&] {
    const Tensor text = randint(0, 96, {4, 33});
    const Tensor logits = model(text.narrow(1, 0, 32)).to(float32);
    return cross_entropy(logits.flatten(0, 1), text.narrow(1, 1, 32).flatten());
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: same_bits FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  for (bool autocast : {false, true}) {
    manual_seed(7);
    predict_text(
        folder, "gpt", autocast,
        models::GPT({.layers = 3, .heads = 4, .width = 128, .context = 64, .vocabulary = 96}));
    predict_text(folder, "lstm", autocast, models::CharLSTM(96));
    classify(folder, "resnet18", autocast,
             models::resnet18({.num_classes = 10, .small_input = true}), {8, 3, 32, 32});
    classify(folder, "vit", autocast, models::vit_tiny({.image_size = 64, .num_classes = 10}),
             {8, 3, 64, 64});
    classify(folder, "mlp", autocast, models::MLP(64, 10, {.hidden = {128, 128}}), {32, 64});
  }
}
