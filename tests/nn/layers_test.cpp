// The layers: what they compute, what they begin with, what they refuse.
#include <cmath>

#include "support/nn_check.h"

using namespace ingot;
using namespace ingot::check;

TEST_CASE("Embedding with a padding row") {
  manual_seed(1);
  nn::Embedding table(5, 3, {.padding_idx = -1});
  Tensor index = tensor({{1, 4}, {4, 2}});
  Tensor y = table(index);
  CHECK(largest(y[{0, 1}]) == 0);
  CHECK(largest(y[{0, 0}]) > 0);
  y.sum().backward();
  const Tensor g = table.weight().grad();
  CHECK(g.sum(1).to_vector<float>() == std::vector<float>{0, 3, 3, 0, 0});
  CHECK(contains(message([&] { nn::Embedding(5, 3, {.padding_idx = 5}); }, ErrorKind::Value),
                 "outside"));
}

TEST_CASE("dropouts of whole channels, and AlphaDropout keeps mean and variance") {
  manual_seed(2);
  nn::Dropout2d drop(0.25);
  Tensor x = ones({40, 50, 3, 3});
  Tensor y = drop(x);
  CHECK(difference(y.amax({2, 3}), y.amin({2, 3})) == 0);  // a channel is dropped as a whole
  CHECK((y != 0.0).to(float32).mean().item() == doctest::Approx(0.75).epsilon(0.05));
  CHECK(y.max().item() == doctest::Approx(1 / 0.75));
  CHECK(nn::Dropout1d(0.5)(ones({4, 5, 6})).shape() == Dims{4, 5, 6});
  CHECK(nn::Dropout3d(0.5)(ones({4, 5, 6, 2})).shape() == Dims{4, 5, 6, 2});
  CHECK(contains(message([&] { drop(ones({2, 2})); }, ErrorKind::Shape), "channels and 2 dims"));
  drop.eval();
  CHECK(difference(drop(x), x) == 0);
  nn::AlphaDropout alpha(0.3);
  Tensor z = alpha(randn({400, 400}));
  CHECK(z.mean().item() == doctest::Approx(0).epsilon(0.02));
  CHECK(z.std().item() == doctest::Approx(1).epsilon(0.02));
  alpha.eval();
  CHECK(difference(alpha(x), x) == 0);
}

TEST_CASE("Identity, Flatten, Unflatten") {
  Tensor x = randn({2, 3, 4, 5});
  CHECK(difference(nn::Identity()(x), x) == 0);
  CHECK(nn::Flatten()(x).shape() == Dims{2, 60});
  CHECK(nn::Flatten(0, 1)(x).shape() == Dims{6, 4, 5});
  CHECK(nn::Unflatten(-1, {5, 1})(x).shape() == Dims{2, 3, 4, 5, 1});
  CHECK(nn::Unflatten(1, {3, -1})(x).shape() == Dims{2, 3, 1, 4, 5});
  CHECK(contains(message([&] { nn::Unflatten(1, {2, 2})(x); }, ErrorKind::Shape), "reshape"));
}

TEST_CASE("activations as modules") {
  Tensor x = randn({3, 4, 2, 2});
  CHECK(difference(nn::LeakyReLU(0.2)(x), leaky_relu(x, 0.2)) == 0);
  CHECK(difference(nn::Softmax(1)(x), softmax(x, 1)) == 0);
  CHECK(difference(nn::Softmax2d()(x), softmax(x, 1)) == 0);
  CHECK(difference(nn::LogSoftmax(-1)(x), log_softmax(x, -1)) == 0);
}

TEST_CASE("the weights of a loss are its buffers: they move with it, are saved and cloned") {
  nn::CrossEntropyLoss loss({.weight = tensor({1.0f, 3.0f})});
  Tensor x = tensor({{1.0f, 2.0f}, {0.5f, 0.0f}}), y = tensor({0, 1});
  CHECK(difference(loss(x, y), cross_entropy(x, y, {.weight = tensor({1.0f, 3.0f})})) == 0);
  CHECK(loss.state_dict().tensors.at(0).first == "weight");
  CHECK(nn::CrossEntropyLoss().state_dict().tensors.empty());
  nn::CrossEntropyLoss copy = loss.clone();
  copy.parameter("weight").fill_(1);
  CHECK(difference(copy(x, y), cross_entropy(x, y)) == 0);
  CHECK(difference(loss(x, y), cross_entropy(x, y)) > 0);
  loss.to(float64);
  CHECK(loss(x.to(float64), y).dtype() == float64);
  CHECK(contains(message([&] { nn::L1Loss({.reduction = "all"})(x, x); }, ErrorKind::Value),
                 "\"all\""));
}

TEST_CASE("recurrent layers and cells refuse what does not fit") {
  Tensor x = zeros({5, 2, 3});
  CHECK(
      contains(message([&] { nn::LSTM(4, 6)(x); }, ErrorKind::Shape), "expects [time, batch, 4]"));
  CHECK(contains(message(
                     [&] {
                       nn::GRU(3, 6)(x, zeros({1, 2, 5}));
                     },
                     ErrorKind::Shape),
                 "h0 must be [1, 2, 6]"));
  CHECK(contains(message(
                     [&] {
                       nn::LSTM(3, 6, {.proj_size = 2})(x, zeros({1, 2, 2}), zeros({1, 2, 2}));
                     },
                     ErrorKind::Shape),
                 "c0 must be [1, 2, 6]"));
  CHECK(contains(message([&] { nn::RNN(3, 6, {.nonlinearity = "elu"}); }, ErrorKind::Value),
                 "\"elu\""));
  CHECK(contains(message([&] { nn::RNNCell(3, 6, {.nonlinearity = "elu"}); }, ErrorKind::Value),
                 "\"elu\""));
  CHECK(contains(message(
                     [&] {
                       nn::GRUCell(3, 6)(zeros({2, 4}));
                     },
                     ErrorKind::Shape),
                 "expects [batch, 3]"));
  CHECK(contains(message(
                     [&] {
                       nn::LSTMCell(3, 6)(zeros({2, 3}), zeros({2, 5}));
                     },
                     ErrorKind::Shape),
                 "the state must be [2, 6]"));
  CHECK(contains(message(
                     [&] {
                       lstm(x, {}, {}, {zeros({24, 3}), zeros({24, 5}), zeros({4, 6})}, false);
                     },
                     ErrorKind::Shape),
                 "layer 0 wants weights"));
}

TEST_CASE("truncated normal, orthogonal, sparse, identity and dirac initial values") {
  manual_seed(3);
  Tensor t = zeros({300, 200}).requires_grad_();
  nn::init::trunc_normal_(t, 0.5, 2, -1, 1);
  CHECK(t.detach().max().item() <= 1);
  CHECK(t.detach().min().item() >= -1);
  // The mean of a normal cut at both ends, by its formula.
  const auto density = [](double z) { return std::exp(-z * z / 2) / std::sqrt(2 * M_PI); };
  const auto below = [](double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); };
  const double a = (-1 - 0.5) / 2, b = (1 - 0.5) / 2;
  CHECK(t.detach().mean().item() ==
        doctest::Approx(0.5 + 2 * (density(a) - density(b)) / (below(b) - below(a))).epsilon(0.1));
  for (const Dims& shape : {Dims{20, 30}, Dims{30, 20}, Dims{6, 3, 2, 2}}) {
    Tensor w = zeros(shape, float64);
    nn::init::orthogonal_(w, 2);
    Tensor m = w.reshape({shape[0], -1});
    if (m.size(0) > m.size(1)) m = m.t();
    CHECK(difference(matmul(m, m.t()), eye(m.size(0), {}, float64) * 4) < 1e-12);
  }
  nn::init::sparse_(t, 0.25);
  CHECK(difference((t == 0.0).to(float32).sum(0), full({200}, 75.0)) == 0);
  CHECK(t.detach().std().item() == doctest::Approx(0.01 * std::sqrt(0.75)).epsilon(0.02));
  nn::init::eye_(t);
  CHECK(difference(t, eye(300, 200)) == 0);
  Tensor filter = zeros({4, 2, 3, 3});
  nn::init::dirac_(filter, 2);
  CHECK(filter.sum().item() == 4);
  CHECK(filter[{3, 1, 1, 1}].item() == 1);
  CHECK(t.requires_grad());
  CHECK(contains(message([&] { nn::init::trunc_normal_(t, 0, 1, 2, 1); }, ErrorKind::Value),
                 "less than"));
  CHECK(contains(message([&] { nn::init::orthogonal_(ones({3})); }, ErrorKind::Shape), "2 dims"));
  CHECK(contains(message([&] { nn::init::dirac_(filter, 3); }, ErrorKind::Shape), "groups"));
  CHECK(contains(message([&] { nn::init::sparse_(t, 2); }, ErrorKind::Value), "sparsity"));
  CHECK(contains(message(
                     [&] {
                       nn::init::eye_(zeros({2, 2}, int64));
                     },
                     ErrorKind::DType),
                 "floating"));
}

TEST_CASE("LoRA: only the updates are trained, and merging gives the same function") {
  manual_seed(4);
  nn::Sequential net(nn::Linear(6, 8), nn::ReLU(), nn::Linear(8, 3, {.bias = false}));
  Tensor x = randn({10, 6}), target = randint(0, 3, {10});
  const Tensor before = net(x).detach().eval_();
  const Tensor weight = net.parameter("0.weight").detach().clone().eval_();
  CHECK(nn::add_lora(net, "*", {.r = 2, .lora_alpha = 4}) == 2);
  CHECK(difference(net(x), before) < 1e-6);  // lora_B is 0
  CHECK(net.parameter("0.lora_A").shape() == Dims{2, 6});
  CHECK(net.parameter("2.lora_B").shape() == Dims{3, 2});
  int64_t trained = 0;
  for (const Tensor& p : net.parameters()) trained += p.requires_grad() ? p.numel() : 0;
  CHECK(trained == 2 * (6 + 8) + 2 * (8 + 3));
  optim::AdamW o(net.parameters(), {.lr = 0.05});
  double first = 0, last = 0;
  for (int step = 0; step < 40; ++step) {
    Tensor loss = cross_entropy(net(x), target);
    loss.backward();
    o.step();
    last = loss.item();
    if (step == 0) first = last;
  }
  CHECK(last < 0.6 * first);
  CHECK(difference(net.parameter("0.weight"), weight) == 0);
  const Tensor tuned = net(x).detach().eval_();
  CHECK(contains(message([&] { nn::add_lora(net, "*"); }, ErrorKind::State), "merge_lora"));
  nn::merge_lora(net);
  CHECK(names(net.named_parameters()) == "0.weight 0.bias 2.weight");
  CHECK(difference(net(x), tuned) < 1e-5);
  CHECK(contains(message([&] { nn::add_lora(net, "3"); }, ErrorKind::Value), "there are: 0, 2"));
  CHECK(
      contains(message([&] { nn::add_lora(net, "0", {.r = 0}); }, ErrorKind::Value), "r must be"));
}
