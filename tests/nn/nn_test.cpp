// Modules: what they hold, what a copy shares, what moves, what errors say; the layers against
// PyTorch's definitions.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include <ingot/ingot.h>
#include <ingot/models.h>

using namespace ingot;

namespace {

struct Net : nn::Module {
  nn::Linear fc1 = add("fc1", nn::Linear(4, 8));
  nn::Linear fc2 = add("fc2", nn::Linear(8, 3));
  static constexpr int kForwardLine = __LINE__ + 1;
  Tensor forward(Tensor x) override { return fc2(relu(fc1(x))); }
};

struct Tied : nn::Module {
  nn::Embedding table = add("table", nn::Embedding(7, 5));
  nn::Linear head = add("head", nn::Linear(5, 7, {.bias = false}));
  Tied() { set_parameter("head.weight", table.weight()); }
  Tensor forward(Tensor index) override { return head(table(index)); }
};

std::string names(const nn::NamedTensors& all) {
  std::string s;
  for (const auto& [name, tensor] : all) s += (s.empty() ? "" : " ") + name;
  return s;
}

double largest(const Tensor& t) { return t.abs().max().item(); }

template <class F>
std::string message(F&& f, ErrorKind kind) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  FAIL("nothing was thrown");
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("missing \"" << part << "\" in:\n" << text);
  return found;
}

}  // namespace

TEST_CASE("parameters have paths, an order and a count") {
  Net net;
  CHECK(names(net.named_parameters()) == "fc1.weight fc1.bias fc2.weight fc2.bias");
  CHECK(net.parameters().size() == 4);
  CHECK(net.parameter_count() == 4 * 8 + 8 + 8 * 3 + 3);
  CHECK(net.fc1.weight().name() == "fc1.weight");
  CHECK(net.parameter("fc2.bias").shape() == Dims{3});
  for (const Tensor& p : net.parameters()) CHECK(p.requires_grad());
}

TEST_CASE("a module inside a module inside a module") {
  struct Outer : nn::Module {
    Net a = add("a", Net());
    nn::ModuleList<Net> list = add("list", nn::ModuleList<Net>());
    Outer() {
      list.push_back(Net());
      list.push_back(Net());
    }
  };
  Outer outer;
  CHECK(outer.parameters().size() == 12);
  CHECK(outer.list[1].fc2.bias().name() == "list.1.fc2.bias");
  CHECK(outer.a.fc1.weight().name() == "a.fc1.weight");
  CHECK(names(outer.list.named_parameters()).substr(0, 12) == "0.fc1.weight");
}

TEST_CASE("a copy names the same layers") {
  Net net;
  Net copy = net;
  {
    NoGrad guard;
    copy.fc1.weight().zero_();
  }
  CHECK(largest(net.fc1.weight()) == 0);
  copy.eval();
  CHECK_FALSE(net.is_training());
}

TEST_CASE("training a module by hand lowers the loss") {
  manual_seed(0);
  Net net;
  Tensor x = randn({16, 4}), target = randint(0, 3, {16});
  eval({x, target});
  double first = 0, last = 0;
  for (int step = 0; step < 50; ++step) {
    Tensor loss = cross_entropy(net(x), target);
    loss.backward();
    last = loss.item();
    if (step == 0) first = last;
    NoGrad guard;
    for (Tensor p : net.parameters()) p -= 0.5 * p.grad();
    net.zero_grad();
  }
  CHECK(last < 0.6 * first);
}

TEST_CASE(
    "tied weights: one parameter, gradients of both uses, still tied after a step and after to()") {
  Tied net;
  CHECK(names(net.named_parameters()) == "table.weight");
  CHECK(net.head.weight().name() == "table.weight");
  Tensor index = tensor({1, 2, 3});
  optim::SGD optimiser(net.parameters(), {.lr = 0.1});
  const Tensor before = net.table.weight().detach().clone().eval_();
  cross_entropy(net(index), tensor({2, 3, 4})).backward();
  CHECK(net.table.weight().grad().defined());
  optimiser.step();
  CHECK(largest(net.head.weight().detach() - before) > 0);
  CHECK(largest(net.head.weight().detach() - net.table.weight().detach()) == 0);
  net.to(float64);
  CHECK(net.table.weight().dtype() == float64);
  CHECK(net.head.weight().cell() == net.table.weight().cell());
}

TEST_CASE("to() moves parameters, gradients and buffers, and every handle sees it") {
  struct WithBuffer : Net {
    Tensor scale = register_buffer("scale", full({3}, 2.0));
    Tensor count = register_buffer("count", zeros({1}, int64));
    Tensor forward(Tensor x) override { return Net::forward(x) * scale; }
  };
  WithBuffer net;
  Tensor weight = net.fc1.weight();
  net(ones({2, 4})).sum().backward();
  net.to("cpu:1");
  CHECK(weight.device() == Device("cpu:1"));
  CHECK(weight.grad().device() == Device("cpu:1"));
  CHECK(weight.requires_grad());
  CHECK(weight.is_leaf());
  CHECK(weight.name() == "fc1.weight");
  CHECK(net.scale.device() == Device("cpu:1"));
  Tensor y = net(ones({2, 4}, "cpu:1"));
  CHECK(y.device() == Device("cpu:1"));
  y.sum().backward();
  net.to("cpu");
  net.to(float64);
  CHECK(weight.dtype() == float64);
  CHECK(net.scale.dtype() == float64);
  CHECK(net.count.dtype() == int64);
  CHECK(names(net.named_buffers()) == "scale count");
  net.zero_grad();
  CHECK_FALSE(weight.grad().defined());
  net.requires_grad_(false);
  CHECK_FALSE(weight.requires_grad());
}

TEST_CASE("training steps of one module share one plan, whatever the parameters were made from") {
  Net net;
  CHECK(net.fc1.weight().is_leaf());
  optim::AdamW optimiser(net.parameters(), {.lr = 1e-3});
  for (int i = 0; i < 3; ++i) {
    cross_entropy(net(ones({5, 4})), zeros({5}, int64)).backward();
    optimiser.step();
  }
  CHECK(std::isfinite(net.fc2.weight().sum().item()));
}

TEST_CASE("Linear: PyTorch's initial values") {
  manual_seed(3);
  nn::Linear layer(100, 400);
  const double bound = 1 / std::sqrt(100.0);
  CHECK(largest(layer.weight()) <= bound);
  CHECK(largest(layer.weight()) > 0.99 * bound);
  CHECK(largest(layer.bias()) <= bound);
  CHECK(layer.weight().detach().std().item() ==
        doctest::Approx(bound / std::sqrt(3.0)).epsilon(0.02));
  CHECK_FALSE(nn::Linear(2, 3, {.bias = false}).bias().defined());
  CHECK(nn::Linear(2, 3, {.dtype = float64}).weight().dtype() == float64);
}

TEST_CASE("layers compute what their functions compute") {
  Tensor x = randn({3, 6});
  nn::LayerNorm norm(6);
  CHECK(largest(norm(x) - layer_norm(x, {6}, ones({6}), zeros({6}))) == 0);
  CHECK(norm.parameters().size() == 2);
  CHECK(nn::LayerNorm(6, {.bias = false}).parameters().size() == 1);
  CHECK(nn::LayerNorm(6, {.elementwise_affine = false}).parameters().empty());
  nn::RMSNorm rms(6);
  CHECK(largest(rms(x) - rms_norm(x, {6})) == 0);
  nn::Embedding table(10, 4);
  CHECK(table(tensor({{1, 2}, {3, 9}})).shape() == Dims{2, 2, 4});
  nn::Sequential net(nn::Linear(6, 5), nn::ReLU(), nn::GELU("tanh"), nn::Tanh(), nn::Sigmoid(),
                     nn::SiLU(), nn::Linear(5, 2));
  CHECK(net(x).shape() == Dims{3, 2});
  CHECK(names(net.named_parameters()) == "0.weight 0.bias 6.weight 6.bias");
}

TEST_CASE("dropout acts in training only, and zero is the p of nothing") {
  nn::Sequential net(nn::Dropout(0.5), nn::Flatten());
  Tensor x = ones({100, 10, 10});
  const double kept = (net(x) != 0.0).to(float32).mean().item();
  CHECK(kept == doctest::Approx(0.5).epsilon(0.1));
  net.eval();
  CHECK(largest(net(x) - x.flatten(1)) == 0);
  net.train();
  CHECK(net(x).min().item() == 0);
}

TEST_CASE("initialisers have the moments they promise") {
  manual_seed(5);
  Tensor t = zeros({300, 200}).requires_grad_();
  const auto spread = [&] { return t.detach().std().item(); };
  nn::init::normal_(t, 1, 0.5);
  CHECK(t.detach().mean().item() == doctest::Approx(1).epsilon(0.01));
  CHECK(spread() == doctest::Approx(0.5).epsilon(0.02));
  nn::init::uniform_(t, -2, 2);
  CHECK(spread() == doctest::Approx(4 / std::sqrt(12.0)).epsilon(0.02));
  nn::init::xavier_uniform_(t);
  CHECK(largest(t) <= std::sqrt(6.0 / 500));
  nn::init::xavier_normal_(t, 2);
  CHECK(spread() == doctest::Approx(2 * std::sqrt(2.0 / 500)).epsilon(0.02));
  nn::init::kaiming_uniform_(t, {.nonlinearity = "relu"});
  CHECK(largest(t) <= std::sqrt(6.0 / 200));
  nn::init::kaiming_normal_(t, {.mode = "fan_out", .nonlinearity = "linear"});
  CHECK(spread() == doctest::Approx(std::sqrt(1.0 / 300)).epsilon(0.02));
  nn::init::constant_(t, 3);
  CHECK(t.detach().mean().item() == 3);
  nn::init::ones_(t);
  nn::init::zeros_(t);
  CHECK(largest(t) == 0);
  CHECK(t.requires_grad());
  CHECK(nn::init::calculate_gain("tanh") == doctest::Approx(5.0 / 3));
}

TEST_CASE("mistakes name the user's line, the layer's parameter and what to do") {
  Net net;
  // The mistake shows inside Net::forward, at the line that calls fc1.
  std::string text = message([&] { net(ones({2, 5})); }, ErrorKind::Shape);
  CHECK(contains(text, "nn_test.cpp:" + std::to_string(Net::kForwardLine)));
  CHECK(contains(text, "fc1.weight"));
  CHECK(contains(text, "4 features"));
  const int here = __LINE__ + 1;
  text = message([&] { nn::Linear(3, 2)(ones({2, 5})); }, ErrorKind::Shape);
  CHECK(contains(text, "nn_test.cpp:" + std::to_string(here)));
  int line = 0;
  text = message(
      [&] {
        line = __LINE__ + 1;
        nn::Sequential(nn::Flatten(), nn::Linear(3, 2))(ones({2, 5}));
      },
      ErrorKind::Shape);
  CHECK(contains(text, "nn_test.cpp:" + std::to_string(line)));
  CHECK(contains(text, "1.weight"));
  CHECK(contains(message([&] { nn::Linear(0, 2); }, ErrorKind::Value), "in_features"));
  CHECK(contains(message([&] { nn::Dropout(1.5); }, ErrorKind::Value), "1.5"));
  CHECK(contains(message([&] { net.add("fc1", nn::Linear(2, 2)); }, ErrorKind::Value), "taken"));
  CHECK(contains(message([&] { net.add("a.b", nn::Linear(2, 2)); }, ErrorKind::Value), "dots"));
  CHECK(contains(message([&] { net.fc1.register_module("net", net); }, ErrorKind::Value),
                 "contains this module"));
  CHECK(contains(message([&] { net.parameter("fc3.weight"); }, ErrorKind::Value), "fc2.weight"));
  CHECK(contains(message([&] { net.set_parameter("fc1.weight", ones({2})); }, ErrorKind::Shape),
                 "fc1.weight"));
  CHECK(contains(message([&] { net.register_parameter("n", zeros({2}, int64)); }, ErrorKind::DType),
                 "register_buffer"));
  CHECK(contains(
      message([&] { net.register_parameter("n", net.fc1.weight() * 2); }, ErrorKind::Autograd),
      "detach"));
  CHECK(contains(message([&] { net.to(int64); }, ErrorKind::DType), "int64"));
  CHECK(contains(message([&] { nn::Module()(ones({1})); }, ErrorKind::State), "forward"));
  CHECK(contains(message([&] { nn::init::xavier_uniform_(ones({3})); }, ErrorKind::Shape),
                 "two dims"));
  CHECK(contains(message(
                     [&] {
                       nn::init::kaiming_uniform_(ones({3, 3}), {.mode = "fan"});
                     },
                     ErrorKind::Value),
                 "fan_out"));
  CHECK(
      contains(message([&] { nn::init::calculate_gain("cube"); }, ErrorKind::Value), "leaky_relu"));
  CHECK(net.parameters().size() == 4);  // nothing was half done
}

TEST_CASE("GPT: names, count, a causal forward, and it learns") {
  manual_seed(1);
  models::GPT gpt({.layers = 2,
                   .heads = 2,
                   .width = 16,
                   .context = 8,
                   .vocabulary = 11,
                   .bias = false,
                   .gelu = "none"});
  CHECK(gpt.parameter_count() == 11 * 16 + 8 * 16 + 2 * (12 * 16 * 16 + 2 * 16) + 16);
  CHECK(gpt.parameter("h.1.attn.c_attn.weight").shape() == Dims{48, 16});
  CHECK(gpt.parameter("h.1.mlp.c_fc.weight").name() == "h.1.mlp.c_fc.weight");
  Tensor tokens = randint(0, 11, {3, 8});
  Tensor logits = gpt(tokens);
  CHECK(logits.shape() == Dims{3, 8, 11});
  Tensor other = tokens.clone();
  other[{Slice{}, 7}] = (tokens[{Slice{}, 7}] + 1) % 11;
  const Tensor difference = (gpt(other) - logits).detach();
  // What comes later is not seen. On an H200 one rounding (6e-8) was seen between the two forwards;
  // why is not known yet.
  CHECK(largest(difference[{Slice{}, Slice{0, 7}}]) <= (default_device().is_cuda() ? 1e-6 : 0.0));
  CHECK(largest(difference[{Slice{}, 7}]) > 0);
  optim::AdamW optimiser(gpt.parameters(), {.lr = 1e-2});
  Tensor target = randint(0, 11, {3, 8});
  eval({tokens, target});
  double first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    Tensor loss = cross_entropy(gpt(tokens).flatten(0, 1), target.flatten());
    loss.backward();
    optimiser.step();
    last = loss.item();
    if (step == 0) first = last;
  }
  CHECK(first == doctest::Approx(std::log(11.0)).epsilon(0.05));
  CHECK(last < 0.5 * first);
  CHECK(contains(message([&] { gpt(ones({1, 9}, int64)); }, ErrorKind::Shape), "at most 8"));
  CHECK(contains(message([&] { models::GPT({.heads = 5}); }, ErrorKind::Value), "multiple"));
}

TEST_CASE(
    "Autocast: products in 16 bits, softmax, norms and losses in float32, parameters untouched") {
  manual_seed(2);
  Net net;
  Tensor x = randn({6, 4}), target = randint(0, 3, {6});
  Tensor exact = net(x).detach();
  Tensor loss;
  {
    amp::Autocast scope(bfloat16);
    CHECK(amp::is_autocast_enabled());
    Tensor y = net(x);
    CHECK(y.dtype() == bfloat16);
    CHECK(matmul(x, x.t()).dtype() == bfloat16);
    CHECK(softmax(y, -1).dtype() == float32);
    CHECK(layer_norm(y, {3}).dtype() == float32);
    CHECK(scaled_dot_product_attention(x, x, x).dtype() == bfloat16);
    CHECK((x * x).dtype() == float32);
    CHECK(matmul(x.to(float64), x.t().to(float64)).dtype() == float64);
    {
      amp::Autocast off(bfloat16, false);
      CHECK(net(x).dtype() == float32);
    }
    loss = cross_entropy(y, target);
    CHECK(loss.dtype() == float32);
    CHECK(largest(y.to(float32).detach() - exact) < 0.02);
  }
  CHECK_FALSE(amp::is_autocast_enabled());
  CHECK(net(x).dtype() == float32);
  loss.backward();
  CHECK(net.fc1.weight().grad().dtype() == float32);
  CHECK(largest(net.fc1.weight().grad()) > 0);
  CHECK(contains(message([&] { amp::Autocast scope(float32); }, ErrorKind::DType), "bfloat16"));
}

TEST_CASE("a training step writes parameters in place: it needs no memory beyond the arena") {
  Net net;
  Tensor x = randn({6, 4}), target = randint(0, 3, {6});
  optim::AdamW optimiser(net.parameters(), {.lr = 1e-3});
  const auto step = [&] {
    cross_entropy(softmax(net(x), -1), target).backward();
    optim::clip_grad_norm_(net.parameters(), 1.0);
    optimiser.step();
  };
  step();
  step();
  const Device cpu("cpu");
  cpu.synchronize();
  const size_t before = cpu.memory().in_use, made = cpu.memory().allocations;
  cpu.reset_peak_memory();
  for (int i = 0; i < 3; ++i) step();
  cpu.synchronize();
  CHECK(cpu.memory().peak == before);
  CHECK(cpu.memory().allocations == made);
}
