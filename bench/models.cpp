// Training steps of small models, as the peer's script writes them.
#include <memory>
#include <vector>

#include <ingot/ingot.h>

#include "bench.h"

namespace bench {

using namespace ingot;

namespace {

struct Mlp : nn::Module {
  nn::Linear a = add("a", nn::Linear(784, 256));
  nn::Linear b = add("b", nn::Linear(256, 10));
  Tensor forward(Tensor x) override { return b(relu(a(x))); }
};

Work mlp_step() {
  Mlp model;
  auto optimiser = std::make_shared<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = 0.01});
  Tensor x = randn({64, 784}), target = randint(0, 10, {64});
  eval({x, target});
  return {[=]() mutable {
            optimiser->zero_grad();
            cross_entropy(model(x), target).backward();
            optimiser->step();
          },
          6.0 * 64 * (784 * 256 + 2560)};
}

// nanoGPT on 65 characters, no biases. Matrices are decayed, vectors are not.
Work nanogpt_step() {
  models::GPT model({.layers = 4,
                     .heads = 4,
                     .width = 128,
                     .context = 64,
                     .vocabulary = 65,
                     .bias = false,
                     .gelu = "none"});
  const std::vector<Tensor> all = model.parameters();
  std::vector<Tensor> matrices, vectors;
  for (const Tensor& p : all) (p.dim() > 1 ? matrices : vectors).push_back(p);
  using Group = optim::ParamGroup<optim::AdamWOptions>;
  const std::vector<Group> groups{Group{matrices, {.lr = 1e-3, .betas = {0.9, 0.99}, .weight_decay = 0.1}},
                                  Group{vectors, {.lr = 1e-3, .betas = {0.9, 0.99}, .weight_decay = 0}}};
  auto optimiser = std::make_shared<optim::AdamW>(groups);
  Tensor x = randint(0, 65, {12, 64}), target = randint(0, 65, {12, 64});
  eval({x, target});
  const double parameters = static_cast<double>(model.parameter_count());
  return {[=]() mutable {
            optimiser->zero_grad();
            cross_entropy(model(x).view({-1, 65}), target.view(-1)).backward();
            optim::clip_grad_norm_(all, 1.0);
            optimiser->step();
          },
          6 * parameters * 12 * 64 + 12.0 * 4 * 128 * 64 * 12 * 64, 0,
          std::to_string(model.parameter_count()) + " params"};
}

}  // namespace

void add_model_cases() {
  add("mlp_784_256_10_b64_train", mlp_step);
  add("nanogpt_4l4h128_b12_t64_train", nanogpt_step);
}

}  // namespace bench
