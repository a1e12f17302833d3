// ingot-bench-gpu: times Ingot on the cases of the peers' GPU scripts, under the same names.
//
//   ingot-bench-gpu [--device cuda:0] [--only REGEX] [--list] [--json] [--quick]
//
// A sample is a number of iterations between two synchronisations, at least five and long enough
// that these do not count, as a training loop runs; the median sample is reported. The peers'
// scripts do the same. Inputs are drawn once; results are kept alive until the next iteration, as a
// training loop does.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include <ingot/ingot.h>
#include <ingot/models.h>

using namespace ingot;

namespace {

struct Work {
  std::function<void()> run;
  double bytes = 0, flops = 0, units = 0;  // of one iteration; units: tokens, steps
  const char* unit = "";
  double parts =
      1;  // the reported time is an iteration's divided by this: per token, where it makes many
};
struct Case {
  std::string name;
  std::function<Work()> setup;
};
std::vector<Case> cases;
void add(const std::string& name, std::function<Work()> setup) {
  cases.push_back({name, std::move(setup)});
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Tensor gelu_chain(const Tensor& x) {
  return 0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 * x * x * x)));
}

Work forward(std::function<Tensor(const Tensor&)> f, const Tensor& x, double bytes) {
  eval(x);
  return {[=] { eval(f(x)); }, bytes};
}

void add_kernels() {
  constexpr int64_t n = 1 << 26;
  add("gelu-chain-64M-fwd", [] { return forward(gelu_chain, randn({n}), 8.0 * n); });
  add("gelu-chain-64M-fwdbwd", [] {
    Tensor x = randn({n}).requires_grad_(), g = ones({n});
    eval({x, g});
    return Work{[=]() mutable {
                  x.zero_grad();
                  Tensor y = gelu_chain(x);
                  y.backward(g);
                  eval({y, x.grad()});
                },
                20.0 * n};
  });
  for (DType t : {float32, bfloat16}) {
    std::string suffix = "-" + std::string(name_of(t));
    double once = 8192.0 * 8192 * static_cast<double>(size_of(t));
    auto input = [t] { return randn({8192, 8192}).to(t); };
    add("softmax-8192x8192" + suffix,
        [=] { return forward([](const Tensor& z) { return softmax(z, -1); }, input(), 2 * once); });
    add("layernorm-8192x8192" + suffix, [=] {
      Tensor w = ones({8192}, t), b = zeros({8192}, t);
      eval({w, b});
      return forward([=](const Tensor& z) { return layer_norm(z, {8192}, w, b); }, input(),
                     2 * once);
    });
    add("sum-axis0" + suffix,
        [=] { return forward([](const Tensor& z) { return z.sum(0); }, input(), once); });
    add("sum-axis1" + suffix,
        [=] { return forward([](const Tensor& z) { return z.sum(1); }, input(), once); });
    add("sum-all" + suffix,
        [=] { return forward([](const Tensor& z) { return z.sum(); }, input(), once); });
    add("transpose-copy" + suffix, [=] {
      return forward([](const Tensor& z) { return z.t().contiguous(); }, input(), 2 * once);
    });
  }
  add("xent-32768x50304-bf16-fwdbwd", [] {
    Tensor logits = randn({32768, 50304}, bfloat16).requires_grad_(),
           target = randint(0, 50304, {32768});
    eval({logits, target});
    return Work{[=]() mutable {
                  logits.zero_grad();
                  Tensor loss = cross_entropy(logits, target);
                  loss.backward();
                  eval({loss, logits.grad()});
                },
                2.0 * 2 * 32768 * 50304};
  });
  add("1000-tiny-adds", [] {
    Tensor x = randn({10});
    eval(x);
    return Work{[=] {
      Tensor y = x;
      for (int i = 0; i < 1000; ++i) y = y + x;
      eval(y);
    }};
  });
}

/// Batch norm in training and a ReLU over channels-last images, the kernels of a ResNet besides its
/// convolutions: [images * height * width, channels] here.
void add_batch_norms() {
  struct Size {
    int64_t c, size;
  };
  for (Size z : {Size{256, 56}, {64, 56}, {2048, 7}})
    for (bool backward : {false, true}) {
      std::string at = std::to_string(z.size);
      add("batchnorm-nhwc-256x" + std::to_string(z.c) + "x" + at + "x" + at + "-bf16-" +
              (backward ? "fwdbwd" : "fwd"),
          [=] {
            Tensor x = randn({256 * z.size * z.size, z.c}, bfloat16).requires_grad_(backward);
            Tensor w = ones({z.c}).requires_grad_(backward),
                   b = zeros({z.c}).requires_grad_(backward);
            Tensor mean = zeros({z.c}), var = ones({z.c}), g = randn(x.shape(), bfloat16);
            eval({x, w, b, mean, var, g});
            // At least: x for its statistics, x and y; and in the backward pass x, g and y's sign
            // for the sums (in one pass with y), the same for dx. Signs are not counted.
            double bytes = 2.0 * static_cast<double>(x.numel()) * (backward ? 7 : 3);
            return Work{[=] {
                          Tensor y = relu(batch_norm(x, mean, var, w, b, true));
                          std::vector<Tensor> all{y};
                          if (backward)
                            for (const Tensor& d : grad({y}, {x, w, b}, {g})) all.push_back(d);
                          eval(all);
                        },
                        bytes};
          });
    }
}

void add_matmuls() {
  struct Shape {
    const char* name;
    int64_t m, k, n;
  };
  for (Shape s : {Shape{"8192", 8192, 8192, 8192},
                  {"4096", 4096, 4096, 4096},
                  {"2048", 2048, 2048, 2048},
                  {"1024", 1024, 1024, 1024},
                  {"gpt2-qkv", 32768, 768, 2304},
                  {"gpt2-fc", 32768, 768, 3072},
                  {"gpt2-head", 32768, 768, 50304}})
    add(std::string("matmul-bf16-") + s.name, [=] {
      Tensor a = randn({s.m, s.k}, bfloat16), b = randn({s.n, s.k}, bfloat16);
      eval({a, b});
      return Work{[=] { eval(a.matmul(b.t())); }, 0, 2.0 * s.m * s.k * s.n};
    });
  for (Shape s : {Shape{"64x784x256", 64, 784, 256},
                  {"256x64x784", 256, 64, 784},
                  {"64x256x10", 64, 256, 10}})
    add(std::string("matmul-f32-") + s.name, [=] {
      Tensor a = randn({s.m, s.k}), b = randn({s.n, s.k});
      eval({a, b});
      return Work{[=] { eval(a.matmul(b.t())); }, 0, 2.0 * s.m * s.k * s.n};
    });
  add("matmul-f32-4096", [] {
    Tensor a = randn({4096, 4096}), b = randn({4096, 4096});
    eval({a, b});
    return Work{[=] { eval(a.matmul(b)); }, 0, 2.0 * 4096 * 4096 * 4096};
  });
}

Work attention_case(int64_t B, int64_t H, int64_t T, int64_t D, bool backward) {
  auto draw = [&] { return randn({B, H, T, D}, bfloat16).requires_grad_(backward); };
  Tensor q = draw(), k = draw(), v = draw(), g = randn({B, H, T, D}, bfloat16);
  eval({q, k, v, g});
  double flops = 2.0 * static_cast<double>(B * H * T * T * D);  // two products, half of each
  if (!backward)
    return {[=] { eval(scaled_dot_product_attention(q, k, v, {.is_causal = true})); }, 0, flops};
  Tensor o = scaled_dot_product_attention(q, k, v, {.is_causal = true});
  eval(o);
  return {[=] { eval(grad({o}, {q, k, v}, {g}, true)); }, 0, 2.5 * flops};
}

void add_attention() {
  struct Size {
    int64_t b, h, t, d;
  };
  for (Size s : {Size{32, 12, 1024, 64}, {4, 16, 8192, 128}}) {
    std::string name = "sdpa-causal-" + std::to_string(s.b) + "x" + std::to_string(s.h) + "x" +
                       std::to_string(s.t) + "x" + std::to_string(s.d);
    add(name + "-fwd", [=] { return attention_case(s.b, s.h, s.t, s.d, false); });
    add(name + "-bwd", [=] { return attention_case(s.b, s.h, s.t, s.d, true); });
  }
}

// Parameters in bfloat16, the optimiser keeping float32 masters of them; or (autocast) parameters
// in float32, products in bfloat16.
Work gpt_step(const models::GPTConfig& config, int64_t B, int64_t T, double flops_per_token,
              bool autocast = false) {
  auto model = std::make_shared<models::GPT>(config);
  if (!autocast) model->to(bfloat16);
  auto optimiser = std::make_shared<optim::AdamW>(
      model->parameters(),
      optim::AdamWOptions{.lr = 1e-4, .weight_decay = 0.1, .master_weights = !autocast});
  Tensor x = randint(0, std::min<int64_t>(config.vocabulary, 50257), {B, T}),
         target = randint(0, std::min<int64_t>(config.vocabulary, 50257), {B, T});
  eval({x, target});
  return {[=] {
            optimiser->zero_grad();
            Tensor loss;
            {
              amp::Autocast scope(bfloat16, autocast);
              Tensor logits = (*model)(x).view({-1, config.vocabulary});
              loss = cross_entropy(autocast ? logits : logits.to(float32), target.view(-1));
            }
            loss.backward();
            optimiser->step();
          },
          0, flops_per_token * static_cast<double>(B * T), static_cast<double>(B * T), "tokens"};
}

double flops_per_token(double V, double T, double L, double C) {
  return 6 * (12 * L * C * C + V * C) + 6 * L * C * T;
}

struct Mlp : nn::Module {
  nn::Linear a = add("a", nn::Linear(784, 256));
  nn::Linear b = add("b", nn::Linear(256, 10));
  Tensor forward(Tensor x) override { return b(relu(a(x))); }
};

void add_models() {
  add("mlp-784-256-10-B64-fp32", [] {
    auto model = std::make_shared<Mlp>();
    auto optimiser = std::make_shared<optim::AdamW>(
        model->parameters(), optim::AdamWOptions{.lr = 1e-4, .weight_decay = 0.1});
    Tensor x = randn({64, 784}), target = randint(0, 10, {64});
    eval({x, target});
    return Work{[=] {
                  optimiser->zero_grad();
                  cross_entropy((*model)(x), target).backward();
                  optimiser->step();
                },
                0, 0, 1, "steps"};
  });
  add("mlp-784-256-10-B64-fp32-capture", [] {
    auto model = std::make_shared<Mlp>();
    auto optimiser = std::make_shared<optim::AdamW>(
        model->parameters(), optim::AdamWOptions{.lr = 1e-4, .weight_decay = 0.1});
    Tensor x = randn({64, 784}), target = randint(0, 10, {64});
    eval({x, target});
    auto step = std::make_shared<Captured>(capture([=](const std::vector<Tensor>& in) {
      optimiser->zero_grad();
      cross_entropy((*model)(in[0]), in[1]).backward();
      optimiser->step();
      return std::vector<Tensor>{};
    }));
    return Work{[=] { (*step)({x, target}); }, 0, 0, 1, "steps"};
  });
  add("chargpt-6x384-B64-T256-bf16", [] {
    return gpt_step({.layers = 6, .heads = 6, .width = 384, .context = 256, .vocabulary = 65}, 64,
                    256, flops_per_token(65, 256, 6, 384));
  });
  add("gpt2-124M-train-B32-T1024-bf16", [] {
    return gpt_step({.vocabulary = 50304}, 32, 1024, flops_per_token(50304, 1024, 12, 768));
  });
  add("gpt2-124M-train-B32-T1024-autocast", [] {
    return gpt_step({.vocabulary = 50304}, 32, 1024, flops_per_token(50304, 1024, 12, 768), true);
  });
  add("gpt2-1558M-train-B8-T1024-bf16", [] {
    return gpt_step({.layers = 48, .heads = 25, .width = 1600, .vocabulary = 50304}, 8, 1024,
                    flops_per_token(50304, 1024, 48, 1600));
  });
}

struct WordLSTM : nn::Module {
  nn::Embedding embedding = add("embedding", nn::Embedding(10000, 512));
  nn::LSTM lstm = add("lstm", nn::LSTM(512, 1024, {.num_layers = 2, .batch_first = true}));
  nn::Linear head = add("head", nn::Linear(1024, 10000));
  Tensor forward(Tensor x) override { return head(lstm(embedding(x)).output); }
};

void add_sequences() {
  add("lstm-2x1024-B64-T512-bf16", [] {
    constexpr int64_t B = 64, T = 512;
    auto model = std::make_shared<WordLSTM>();
    auto optimiser =
        std::make_shared<optim::AdamW>(model->parameters(), optim::AdamWOptions{.lr = 1e-3});
    Tensor x = randint(0, 10000, {B, T}), target = randint(0, 10000, {B, T});
    eval({x, target});
    return Work{[=] {
                  optimiser->zero_grad();
                  Tensor loss;
                  {
                    amp::Autocast scope(bfloat16);
                    loss = cross_entropy((*model)(x).flatten(0, 1), target.flatten());
                  }
                  loss.backward();
                  optimiser->step();
                },
                0, 0, B * T, "tokens"};
  });
  // One token after the other, from position 256 to 768 of a cache of 1024 (the peer's is at 512).
  auto decode = [](const std::string& name, int64_t layers, int64_t heads, int64_t width) {
    add("gpt2-" + name + "-decode-B1-bf16", [=] {
      auto model = std::make_shared<models::GPT>(
          models::GPTConfig{.layers = layers, .heads = heads, .width = width, .vocabulary = 50304});
      model->to(bfloat16);
      model->eval();
      Tensor prompt = randint(0, 50257, {1, 256});
      eval(prompt);
      return Work{
          [=] { model->generate(prompt, {.max_new_tokens = 512, .temperature = 0}).eval_(); },
          0,
          0,
          1,
          "tokens",
          512};
    });
  };
  decode("124M", 12, 12, 768);
  decode("1558M", 48, 25, 1600);
}

void add_images() {
  constexpr int64_t B = 256;
  add("resnet50-train-B256-bf16", [] {
    auto model = std::make_shared<models::ResNet>(models::resnet50({}));
    auto optimiser = std::make_shared<optim::SGD>(
        model->parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4});
    Tensor x = randn({B, 3, 224, 224}), target = randint(0, 1000, {B});
    eval({x, target});
    return Work{[=] {
                  optimiser->zero_grad();
                  Tensor loss;
                  {
                    amp::Autocast scope(bfloat16);
                    loss = cross_entropy((*model)(x), target);
                  }
                  loss.backward();
                  optimiser->step();
                },
                0, 3 * 2 * 4.09e9 * B, B, "images"};
  });
  for (int64_t batch : {int64_t{1}, B})
    add("resnet50-infer-B" + std::to_string(batch) + "-bf16", [=] {
      auto model = std::make_shared<models::ResNet>(models::resnet50({}));
      model->to(bfloat16);
      model->eval();
      Tensor x = randn({batch, 3, 224, 224}).to(bfloat16);
      eval(x);
      return Work{[=] {
                    NoGrad guard;
                    eval((*model)(x));
                  },
                  0, 2 * 4.09e9 * static_cast<double>(batch), static_cast<double>(batch), "images"};
    });
}

struct Settings {
  std::string device = "cuda", only;
  bool list = false, json = false, quick = false;
};

void measure(const Case& c, const Settings& s, const Device& device) {
  device.reset_peak_memory();
  double begin = seconds();
  Work w = c.setup();
  synchronize();
  double made = seconds();
  w.run();
  synchronize();
  double first = seconds() - made;
  for (int i = 0; i < 4; ++i) w.run();
  synchronize();
  auto sample = [&](int n) {
    double t = seconds();
    for (int i = 0; i < n; ++i) w.run();
    synchronize();
    return (seconds() - t) / n;
  };
  double guess = sample(1);
  int inner = std::clamp(static_cast<int>(20e-3 / guess), 5, 500), samples = s.quick ? 3 : 9;
  std::vector<double> times;
  for (int i = 0; i < samples && (i < 3 || seconds() - begin < 20); ++i)
    times.push_back(sample(inner));
  std::sort(times.begin(), times.end());
  double t = times[times.size() / 2] / w.parts;
  auto gib = static_cast<double>(device.memory().peak) / (1 << 30);
  if (s.json) {
    std::printf(
        "{\"case\": \"%s\", \"peer\": \"ingot\", \"ms\": %.5f, \"first_s\": %.3f, \"peak_gib\": "
        "%.2f",
        c.name.c_str(), t * 1e3, first, gib);
    if (w.bytes > 0) std::printf(", \"gbs\": %.0f", w.bytes / t / 1e9);
    if (w.flops > 0) std::printf(", \"tflops\": %.1f", w.flops / t / 1e12);
    if (w.units > 0) std::printf(", \"rate\": %.0f, \"unit\": \"%s/s\"", w.units / t, w.unit);
    std::printf("}\n");
  } else {
    std::printf("%-36s %10.4f ms  first %6.3f s  peak %6.2f GiB", c.name.c_str(), t * 1e3, first,
                gib);
    if (w.bytes > 0) std::printf("  %6.0f GB/s", w.bytes / t / 1e9);
    if (w.flops > 0) std::printf("  %6.1f TFLOP/s", w.flops / t / 1e12);
    if (w.units > 0) std::printf("  %.0f %s/s", w.units / t, w.unit);
    std::printf("\n");
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    if (a == "--device" && i + 1 < argc)
      s.device = argv[++i];
    else if (a == "--only" && i + 1 < argc)
      s.only = argv[++i];
    else if (a == "--list")
      s.list = true;
    else if (a == "--json")
      s.json = true;
    else if (a == "--quick")
      s.quick = true;
    else
      return std::fprintf(stderr,
                          "usage: ingot-bench-gpu [--device cuda:0] [--only REGEX] [--list] "
                          "[--json] [--quick]\n"),
             2;
  }
  add_kernels();
  add_batch_norms();
  add_attention();
  add_images();
  add_sequences();
  add_matmuls();
  add_models();
  int failures = 0;
  try {
    Device device = s.list ? Device("cpu") : Device(s.device);
    set_default_device(device);
    for (const Case& c : cases) {
      if (!s.only.empty() && !std::regex_search(c.name, std::regex(s.only))) continue;
      if (s.list) {
        std::printf("%s\n", c.name.c_str());
        continue;
      }
      try {
        measure(c, s, device);
      } catch (const std::exception& e) {
        std::printf("%-36s FAILED: %s\n", c.name.c_str(), e.what());
        ++failures;
      }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return failures != 0;
}
