// Training steps of small models, written with plain functions, as the peer's script writes them with modules.
#include <cmath>
#include <memory>
#include <vector>

#include <ingot/ingot.h>

#include "bench.h"

namespace bench {

using namespace ingot;

namespace {

Tensor uniform_parameter(const Dims& shape, double bound) { return ((rand(shape) * 2 - 1) * bound).detach().requires_grad_(); }
Tensor normal_parameter(const Dims& shape) { return (randn(shape) * 0.02).detach().requires_grad_(); }

Work mlp_step() {
  const double bound_a = 1 / std::sqrt(784.0), bound_b = 1 / std::sqrt(256.0);
  Tensor wa = uniform_parameter({256, 784}, bound_a), ba = uniform_parameter({256}, bound_a);
  Tensor wb = uniform_parameter({10, 256}, bound_b), bb = uniform_parameter({10}, bound_b);
  auto optimiser = std::make_shared<optim::SGD>(std::vector<Tensor>{wa, ba, wb, bb}, optim::SGDOptions{.lr = 0.01});
  Tensor x = randn({64, 784}), target = randint(0, 10, {64});
  return {[=] {
            optimiser->zero_grad();
            cross_entropy(linear(relu(linear(x, wa, ba)), wb, bb), target).backward();
            optimiser->step();
          },
          6.0 * 64 * (784 * 256 + 2560)};
}

// nanoGPT: 4 layers, 4 heads, width 128, context 64, 65 characters, no biases; the output weights are the embedding's.
struct Gpt {
  static constexpr int64_t kLayers = 4, kHeads = 4, kWidth = 128, kContext = 64, kVocabulary = 65;
  struct Layer {
    Tensor norm1, qkv, out, norm2, up, down;
  };
  Tensor tokens = normal_parameter({kVocabulary, kWidth}), positions = normal_parameter({kContext, kWidth});
  std::vector<Layer> layers;
  Tensor norm = ones({kWidth}).requires_grad_();
  Tensor future = ones({kContext, kContext}).triu(1).eq(1);  // true where attention may not look

  Gpt() {
    for (int64_t i = 0; i < kLayers; ++i) {
      layers.push_back({ones({kWidth}).requires_grad_(), normal_parameter({3 * kWidth, kWidth}),
                        normal_parameter({kWidth, kWidth}), ones({kWidth}).requires_grad_(),
                        normal_parameter({4 * kWidth, kWidth}), normal_parameter({kWidth, 4 * kWidth})});
    }
    eval(future);
  }

  Tensor attention(const Tensor& x, const Layer& layer) const {
    const int64_t batch = x.size(0), time = x.size(1), size = kWidth / kHeads;
    const auto heads = [&](const Tensor& t) { return t.view({batch, time, kHeads, size}).transpose(1, 2); };
    const std::vector<Tensor> parts = linear(x, layer.qkv).split(kWidth, 2);
    const Tensor q = heads(parts[0]), k = heads(parts[1]), v = heads(parts[2]);
    const Tensor scores = matmul(q, k.transpose(-2, -1)) * (1.0 / std::sqrt(static_cast<double>(size)));
    const Tensor weights = softmax(scores.masked_fill(future, -INFINITY), -1);
    return linear(matmul(weights, v).transpose(1, 2).reshape({batch, time, kWidth}), layer.out);
  }

  Tensor forward(const Tensor& index) const {
    Tensor x = embedding(tokens, index) + embedding(positions, arange(index.size(1)));
    for (const Layer& layer : layers) {
      x = x + attention(layer_norm(x, {kWidth}, layer.norm1), layer);
      x = x + linear(gelu(linear(layer_norm(x, {kWidth}, layer.norm2), layer.up)), layer.down);
    }
    return linear(layer_norm(x, {kWidth}, norm), tokens);
  }

  std::vector<Tensor> matrices() const {
    std::vector<Tensor> all{tokens, positions};
    for (const Layer& l : layers) all.insert(all.end(), {l.qkv, l.out, l.up, l.down});
    return all;
  }
  std::vector<Tensor> vectors() const {
    std::vector<Tensor> all{norm};
    for (const Layer& l : layers) all.insert(all.end(), {l.norm1, l.norm2});
    return all;
  }
};

Work nanogpt_step() {
  auto model = std::make_shared<Gpt>();
  std::vector<Tensor> all = model->matrices();
  const std::vector<Tensor> vectors = model->vectors();
  all.insert(all.end(), vectors.begin(), vectors.end());
  double parameters = 0;
  for (const Tensor& p : all) parameters += static_cast<double>(p.numel());
  using optim::AdamW;
  const optim::AdamWOptions options{.lr = 1e-3, .betas = {0.9, 0.99}};
  auto decayed = std::make_shared<AdamW>(model->matrices(), options);
  auto optimiser = decayed;
  Tensor x = randint(0, 65, {12, 64}), target = randint(0, 65, {12, 64});
  return {[=] {
            optimiser->zero_grad();
            cross_entropy(model->forward(x).view({-1, 65}), target.view(-1)).backward();
            optim::clip_grad_norm_(all, 1.0);
            optimiser->step();
          },
          6 * parameters * 12 * 64 + 12.0 * 4 * 128 * 64 * 12 * 64,
          0,
          std::to_string(static_cast<long>(parameters)) + " params"};
}

}  // namespace

void add_model_cases() {
  add("mlp_784_256_10_b64_train", mlp_step);
  add("nanogpt_4l4h128_b12_t64_train", nanogpt_step);
}

}  // namespace bench
