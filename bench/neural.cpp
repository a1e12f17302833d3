// Convolutions, pooling, batch normalisation, and the models made of them, as the peer's script
// writes them.
#include <memory>
#include <vector>

#include <ingot/ingot.h>

#include "bench.h"

namespace bench {

using namespace ingot;

namespace {

struct ConvCase {
  const char* name;
  int64_t n, c, size, out, window, stride, pad, groups;
};

void add_conv_cases(const ConvCase& k) {
  const int64_t result = (k.size + 2 * k.pad - k.window) / k.stride + 1;
  const double flops = 2.0 * static_cast<double>(k.n * k.out * result * result * (k.c / k.groups) *
                                                 k.window * k.window);
  auto input = [=] { return randn({k.n, k.c, k.size, k.size}); };
  auto weight = [=] { return randn({k.out, k.c / k.groups, k.window, k.window}) * 0.05; };
  auto f = [=](const Tensor& x, const Tensor& w) {
    return conv2d(x, w, {}, k.stride, k.pad, 1, k.groups);
  };
  add(std::string(k.name) + "_fwd", [=] {
    Tensor x = input(), w = weight();
    eval({x, w});
    return Work{[=] { eval(f(x, w)); }, flops};
  });
  for (bool dx : {true, false}) {
    if (!dx && k.c != 3) continue;
    add(std::string(k.name) + (dx ? "_fwdbwd" : "_fwdbwd_nodx"), [=] {
      Tensor x = input(), w = weight(), g = randn({k.n, k.out, result, result});
      eval({x, w, g});
      if (dx) x.requires_grad_();
      w.requires_grad_();
      return Work{[=] {
                    x.zero_grad();
                    w.zero_grad();
                    Tensor y = f(x, w);
                    y.backward(g);
                    if (dx)
                      eval({y, x.grad(), w.grad()});
                    else
                      eval({y, w.grad()});
                  },
                  (dx ? 3 : 2) * flops};
    });
  }
}

void add_pool_cases() {
  static constexpr double n = 32.0 * 64 * 112 * 112, n2 = 32.0 * 64 * 56 * 56;
  add("maxpool_32x64x112_k3s2_fwd", [] {
    Tensor x = randn({32, 64, 112, 112});
    eval(x);
    return Work{[=] { eval(max_pool2d(x, 3, 2, 1)); }, 0, 5 * n};
  });
  add("maxpool_32x64x112_k3s2_fwdbwd", [] {
    Tensor x = randn({32, 64, 112, 112}), g = randn({32, 64, 56, 56});
    eval({x, g});
    x.requires_grad_();
    return Work{[=] {
                  x.zero_grad();
                  Tensor y = max_pool2d(x, 3, 2, 1);
                  y.backward(g);
                  eval({y, x.grad()});
                },
                0, 12 * n};
  });
  add("batchnorm_32x64x56_fwdbwd", [] {
    Tensor x = randn({32, 64, 56, 56}), g = randn({32, 64, 56, 56}), w = ones({64}),
           b = zeros({64}), m = zeros({64}), v = ones({64});
    eval({x, g, w, b, m, v});
    for (Tensor t : {x, w, b}) t.requires_grad_();
    return Work{[=] {
                  for (Tensor t : {x, w, b}) t.zero_grad();
                  Tensor y = batch_norm(x, m, v, w, b, true);
                  y.backward(g);
                  eval({y, x.grad(), w.grad(), b.grad(), m, v});
                },
                0, 20 * n2};
  });
}

/// Parameters and buffers in the order in which a model requests them: created once, used in every
/// step.
class Store {
 public:
  Tensor weight(const Dims& shape, double scale) {
    return parameter([&] { return randn(shape) * scale; });
  }
  Tensor fill(int64_t n, double v) {
    return parameter([&] { return full({n}, v); });
  }
  Tensor buffer(int64_t n, double v) {
    if (!made_) buffers_.push_back(full({n}, v)), eval(buffers_.back());
    return buffers_[next_buffer_++];
  }
  void rewind() {
    made_ = !parameters.empty();
    next_ = next_buffer_ = 0;
  }
  std::vector<Tensor> parameters;
  bool training = true;

 private:
  template <class F>
  Tensor parameter(F make) {
    if (!made_) {
      Tensor t = make();
      eval(t);
      t.requires_grad_();
      parameters.push_back(t);
    }
    return parameters[next_++];
  }
  std::vector<Tensor> buffers_;
  bool made_ = false;
  size_t next_ = 0, next_buffer_ = 0;
};

Tensor norm(Store& s, const Tensor& x) {
  const int64_t c = x.size(1);
  Tensor w = s.fill(c, 1), b = s.fill(c, 0), m = s.buffer(c, 0), v = s.buffer(c, 1);
  return batch_norm(x, m, v, w, b, s.training);
}
Tensor conv(Store& s, const Tensor& x, int64_t out, int64_t k, int64_t stride, int64_t pad) {
  return conv2d(x, s.weight({out, x.size(1), k, k}, 0.05), {}, stride, pad);
}
Tensor block(Store& s, const Tensor& x, int64_t out, int64_t stride) {
  Tensor y = relu(norm(s, conv(s, x, out, 3, stride, 1)));
  y = norm(s, conv(s, y, out, 3, 1, 1));
  Tensor skip = stride != 1 || x.size(1) != out ? norm(s, conv(s, x, out, 1, stride, 0)) : x;
  return relu(y + skip);
}
Tensor resnet18(Store& s, const Tensor& input) {
  s.rewind();
  Tensor x = max_pool2d(relu(norm(s, conv(s, input, 64, 7, 2, 3))), 3, 2, 1);
  const std::pair<int64_t, int64_t> layers[] = {{64, 1},  {64, 1},  {128, 2}, {128, 1},
                                                {256, 2}, {256, 1}, {512, 2}, {512, 1}};
  for (auto [c, stride] : layers) x = block(s, x, c, stride);
  Tensor w = s.weight({1000, 512}, 0.04), b = s.fill(1000, 0);
  return linear(x.mean({2, 3}), w, b);
}
Tensor lenet(Store& s, const Tensor& input) {
  s.rewind();
  auto layer = [&](const Tensor& x, int64_t out, int64_t pad) {
    Tensor w = s.weight({out, x.size(1), 5, 5}, 0.1), b = s.fill(out, 0);
    return max_pool2d(relu(conv2d(x, w, b, 1, pad)), 2);
  };
  auto full = [&](const Tensor& x, int64_t out) {
    Tensor w = s.weight({out, x.size(1)}, 0.1), b = s.fill(out, 0);
    return linear(x, w, b);
  };
  Tensor x = layer(layer(input, 6, 2), 16, 0).flatten(1);
  return full(relu(full(relu(full(x, 120)), 84)), 10);
}

Work training(Tensor (*model)(Store&, const Tensor&), Tensor x, int64_t classes, double decay,
              double flops) {
  auto store = std::make_shared<Store>();
  Tensor target = randint(0, classes, {x.size(0)});
  eval({x, target});
  {
    NoGrad guard;
    (void)model(*store, x);
  }
  auto optimiser = std::make_shared<optim::SGD>(
      store->parameters, optim::SGDOptions{.lr = 0.01, .momentum = 0.9, .weight_decay = decay});
  return {[=]() mutable {
            optimiser->zero_grad();
            cross_entropy(model(*store, x), target).backward();
            optimiser->step();
          },
          flops};
}

void add_recurrent_cases() {
  auto parts = [] {
    std::vector<Tensor> t{
        randn({64, 32, 128}),      randn({64, 32, 256}), randn({1024, 128}) * 0.06,
        randn({1024, 256}) * 0.06, zeros({1024}),        zeros({1024})};
    eval(t);
    return t;
  };
  static constexpr double flops = 2.0 * 64 * 32 * 1024 * (128 + 256);
  add("lstm_h256_i128_s64_b32_fwdbwd", [=] {
    std::vector<Tensor> t = parts(), leaves{t[0], t[2], t[3], t[4], t[5]};
    for (Tensor& l : leaves) l.requires_grad_();
    return Work{[=] {
                  std::vector<Tensor> results;
                  for (Tensor l : leaves) l.zero_grad();
                  results.push_back(
                      lstm(leaves[0], {}, {}, {leaves[1], leaves[2], leaves[3], leaves[4]}).output);
                  results[0].backward(t[1]);
                  for (const Tensor& l : leaves) results.push_back(l.grad());
                  eval(results);
                },
                3 * flops};
  });
  add("lstm_h256_i128_s64_b32_fwd", [=] {
    std::vector<Tensor> t = parts();
    return Work{[=] { eval(lstm(t[0], {}, {}, {t[2], t[3], t[4], t[5]}).output); }, flops};
  });
}

}  // namespace

void add_neural_cases() {
  add_conv_cases({"conv_32x3x224_k7s2_64", 32, 3, 224, 64, 7, 2, 3, 1});
  add_conv_cases({"conv_32x64x56_k3_64", 32, 64, 56, 64, 3, 1, 1, 1});
  add_conv_cases({"conv_32x256x14_k3_256", 32, 256, 14, 256, 3, 1, 1, 1});
  add_conv_cases({"dwconv_32x64x56_k3", 32, 64, 56, 64, 3, 1, 1, 64});
  add_pool_cases();
  add_recurrent_cases();
  add("lenet5_b64_train", [] { return training(lenet, randn({64, 1, 28, 28}), 10, 0, 0); });
  add("resnet18_b8_train", [] {
    return training(resnet18, randn({8, 3, 224, 224}), 1000, 1e-4, 3 * 8 * 2 * 1.814e9);
  });
  add("resnet18_b1_infer", [] {
    auto store = std::make_shared<Store>();
    store->training = false;
    Tensor x = randn({1, 3, 224, 224});
    eval(x);
    return Work{[=] {
                  NoGrad guard;
                  eval(resnet18(*store, x));
                },
                2 * 1.814e9};
  });
}

}  // namespace bench
