// The models of the library: parameters by torchvision's and GPT-2's names and counts, shapes,
// errors, and that each learns.
#include "ingot/models.h"
#include "ingot/profile.h"
#include "support/nn_check.h"

using namespace ingot;
using namespace ingot::check;

namespace {

// Trains on one batch; the loss must fall below half of what it was.
template <class M>
void learns(M& model, const Tensor& x, const Tensor& target, double lr, int steps) {
  optim::AdamW o(model.parameters(), {.lr = lr});
  eval({x, target});
  double first = 0, last = 0;
  for (int step = 0; step < steps; ++step) {
    Tensor loss = cross_entropy(model(x), target);
    loss.backward();
    o.step();
    last = loss.item();
    if (step == 0) first = last;
  }
  CHECK(last < 0.5 * first);
}

}  // namespace

TEST_CASE("MLP and LeNet") {
  manual_seed(1);
  models::MLP mlp(16, 3, {.hidden = {32, 8}, .activation = "tanh"});
  CHECK(names(mlp.named_parameters()) == "0.weight 0.bias 2.weight 2.bias 4.weight 4.bias");
  learns(mlp, randn({20, 4, 4}), randint(0, 3, {20}), 1e-2, 60);
  CHECK(contains(message([] { models::MLP(2, 2, {.activation = "cube"}); }, ErrorKind::Value),
                 "tanh"));
  models::LeNet net;
  CHECK(net.parameter_count() == 61706);
  learns(net, randn({16, 1, 28, 28}), randint(0, 10, {16}), 2e-3, 25);
  CHECK(contains(message(
                     [&] {
                       net(ones({2, 1, 20, 20}));
                     },
                     ErrorKind::Shape),
                 "in layer fc1 (Linear) of LeNet"));
}

TEST_CASE("ResNets have torchvision's parameters") {
  manual_seed(2);
  models::ResNet small = models::resnet18({.num_classes = 10, .small_input = true});
  CHECK(small.parameter("layer2.0.downsample.0.weight").shape() == Dims{128, 64, 1, 1});
  CHECK(small.parameter("layer4.1.bn2.running_var").shape() == Dims{512});
  Tensor x = randn({4, 3, 32, 32});
  CHECK(small(x).shape() == Dims{4, 10});
  models::ResNet twin = small.clone();
  small.eval(), twin.eval();
  CHECK(difference(small(x), twin(x)) == 0);
  // In evaluation nothing moves.
  const Tensor mean = small.parameter("bn1.running_mean").clone().eval_();
  small(x).eval_();
  CHECK(difference(small.parameter("bn1.running_mean"), mean) == 0);
  small.train();
  small(x).eval_();
  CHECK(difference(small.parameter("bn1.running_mean"), mean) > 0);
  CHECK(small.parameter("bn1.num_batches_tracked").item() == 2);
}

TEST_CASE("parameter counts of the large ones") {
  const Device before = default_device();
  set_default_device("null");
  CHECK(models::resnet18().parameter_count() == 11689512);
  CHECK(models::resnet34().parameter_count() == 21797672);
  CHECK(models::resnet50().parameter_count() == 25557032);
  CHECK(models::resnet50()(ones({2, 3, 64, 64})).shape() == Dims{2, 1000});
  CHECK(models::GPT().parameter_count() == 124439808);
  set_default_device(before);
}

TEST_CASE("UNet and ViT") {
  manual_seed(3);
  models::UNet unet(1, 2, {.width = 4, .depth = 2});
  Tensor x = randn({2, 1, 16, 16});
  CHECK(unet(x).shape() == Dims{2, 2, 16, 16});
  learns(unet, x, (x.select(1, 0) > 0.0).to(int64), 1e-2, 25);
  CHECK(contains(message([&] { unet(ones({1, 1, 18, 16})); }, ErrorKind::Shape), "multiples of 4"));
  models::ViT vit({.image_size = 16,
                   .patch_size = 4,
                   .num_layers = 2,
                   .num_heads = 2,
                   .hidden_dim = 16,
                   .mlp_dim = 32,
                   .num_classes = 3});
  CHECK(vit.parameter("encoder.layers.encoder_layer_1.self_attention.in_proj_weight").shape() ==
        Dims{48, 16});
  CHECK(vit.parameter("encoder.pos_embedding").shape() == Dims{1, 17, 16});
  CHECK(vit.parameter("heads.head.weight").shape() == Dims{3, 16});
  learns(vit, randn({12, 3, 16, 16}), randint(0, 3, {12}), 3e-3, 60);
  CHECK(contains(message([&] { vit(ones({1, 3, 8, 8})); }, ErrorKind::Shape), "resize"));
  CHECK(
      contains(message([] { models::ViT({.image_size = 20, .patch_size = 16}); }, ErrorKind::Value),
               "multiple"));
  models::ViT twin = vit.clone();
  CHECK(difference(twin(ones({1, 3, 16, 16})), vit(ones({1, 3, 16, 16}))) == 0);
  CHECK(twin.parameter("class_token").cell() != vit.parameter("class_token").cell());
}

TEST_CASE("a GPT that computes its blocks again learns the same with less memory") {
  const Device d("cpu:2");
  auto train = [&](bool recompute) {
    manual_seed(4);
    DeviceScope scope(d);
    models::GPT gpt({.layers = 4,
                     .heads = 2,
                     .width = 32,
                     .context = 64,
                     .vocabulary = 50,
                     .dropout = 0.1,
                     .recompute = recompute});
    optim::AdamW o(gpt.parameters(), {.lr = 1e-3});
    const Tensor tokens = randint(0, 50, {4, 64}), target = randint(0, 50, {256});
    eval({tokens, target});
    empty_cache(d);
    d.reset_peak_memory();
    std::vector<double> losses;
    for (int step = 0; step < 4; ++step) {
      const Tensor loss = cross_entropy(gpt(tokens).flatten(0, 1), target);
      loss.backward();
      o.step();
      losses.push_back(loss.item());
    }
    const size_t peak = d.memory().peak;
    gpt.eval();
    NoGrad no_grad;
    losses.push_back(gpt(tokens).abs().mean().item());
    return std::pair(losses, peak);
  };
  const auto [plain, kept] = train(false);
  const auto [again, less] = train(true);
  CHECK(plain == again);
  CHECK(static_cast<double>(less) < 0.7 * static_cast<double>(kept));
}
