// Training steps of small models, as the peer's script writes them.
#include <memory>
#include <vector>

#include <ingot/ingot.h>
#include <ingot/models.h>

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
  const std::vector<Group> groups{
      Group{matrices, {.lr = 1e-3, .betas = {0.9, 0.99}, .weight_decay = 0.1}},
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

// GPT-2 124M: all logits of 64 tokens at once.
Work gpt2_forward() {
  models::GPT model;
  model.eval();
  Tensor tokens = randint(0, 50257, {1, 64});
  eval(tokens);
  const double parameters = static_cast<double>(model.parameter_count());
  return {[=]() mutable {
            NoGrad guard;
            eval(model(tokens));
          },
          2 * (parameters - 1024 * 768) * 64, 0,
          std::to_string(model.parameter_count()) + " params"};
}

// One token with 64 before it in the caches, logits included.
Work gpt2_decode() {
  const models::GPTConfig config;
  auto blocks = std::make_shared<std::vector<models::GPTBlock>>();
  auto caches = std::make_shared<std::vector<models::KVCache>>();
  for (int64_t i = 0; i < config.layers; ++i) {
    blocks->emplace_back(config);
    blocks->back().eval();
    caches->push_back({randn({1, 12, 1024, 64}), randn({1, 12, 1024, 64})});
    eval({caches->back().keys, caches->back().values});
  }
  nn::Embedding tokens(50257, 768), positions(1024, 768);
  nn::LayerNorm norm(Dims{768});
  Tensor token = randint(0, 50257, {1, 1});
  eval({token, tokens.weight(), positions.weight()});
  return {[=]() mutable {
            NoGrad guard;
            Tensor position = argument(64.0, float64);
            Tensor x = tokens(token) + positions(position.to(int64).reshape({1}));
            std::vector<Tensor> results;
            for (size_t i = 0; i < blocks->size(); ++i) {
              x = (*blocks)[i].with_cache(x, (*caches)[i], position, config.context);
              results.insert(results.end(), {(*caches)[i].keys, (*caches)[i].values});
            }
            results.push_back(linear(norm(x), tokens.weight()));
            eval(results);
          },
          0, 4.0 * (124.44e6 - 1024 * 768)};
}

Work attention(bool backward) {
  std::vector<Tensor> t;
  for (int i = 0; i < 4; ++i) t.push_back(randn({8, 12, 1024, 64}));
  eval(t);
  const double flops = 4.0 * 96 * 1024 * 1024 * 64;
  if (!backward) return {[=] { eval(scaled_dot_product_attention(t[0], t[1], t[2])); }, flops};
  for (int i = 0; i < 3; ++i) t[static_cast<size_t>(i)].requires_grad_();
  return {[=] {
            for (Tensor x : t) x.zero_grad();
            Tensor y = scaled_dot_product_attention(t[0], t[1], t[2]);
            y.backward(t[3]);
            eval({y, t[0].grad(), t[1].grad(), t[2].grad()});
          },
          3.5 * flops};
}

}  // namespace

void add_model_cases() {
  add("mlp_784_256_10_b64_train", mlp_step);
  add("nanogpt_4l4h128_b12_t64_train", nanogpt_step);
  add("gpt2_124M_fwd_1x64", gpt2_forward);
  add("gpt2_124M_decode_ctx64", gpt2_decode);
  add("attention_8x12x1024x64_fwd", [] { return attention(false); });
  add("attention_8x12x1024x64_fwdbwd", [] { return attention(true); });
}

}  // namespace bench
