// Matrix products, and the kernels that the compiler makes: elementwise chains, rows, reductions,
// copies, optimiser.
#include <memory>

#include <ingot/ingot.h>

#include "bench.h"

namespace bench {

using namespace ingot;

namespace {

Tensor gelu_primitives(const Tensor& x) {
  return 0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 * pow(x, 3))));
}
Tensor gelu_products(const Tensor& x) {
  return 0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 * (x * x * x))));
}
Tensor gelu_library(const Tensor& x) { return gelu(x, "tanh"); }

using Function = Tensor (*)(const Tensor&);

Work forward(Function f, double bytes, Tensor x) {
  return {[=] { eval(f(x)); }, 0, bytes};
}

// Forward and backward: the gradient is requested, as PyTorch computes both.
Work forward_backward(Function f, double bytes, Tensor x, Tensor gradient) {
  x.requires_grad_();
  return {[=] {
            x.zero_grad();
            Tensor y = f(x);
            y.backward(gradient);
            eval({y, x.grad()});
          },
          0, bytes};
}

void add_gelu_cases() {
  static constexpr int64_t n = 16 * 1024 * 1024;
  struct Form {
    const char* name;
    Function f;
  };
  for (const Form form : {Form{"prim", gelu_primitives}, Form{"primmul", gelu_products},
                          Form{"fused", gelu_library}}) {
    add("gelu_" + std::string(form.name) + "_fwd_16M",
        [=] { return forward(form.f, 8.0 * n, randn({n})); });
    add("gelu_" + std::string(form.name) + "_fwdbwd_16M",
        [=] { return forward_backward(form.f, 20.0 * n, randn({n}), ones({n})); });
  }
  add("add_16M", [] {
    Tensor x = randn({n}), y = randn({n});
    return Work{[=] { eval(x + y); }, 0, 12.0 * n};
  });
  add("add_out_16M", [] {
    Tensor x = randn({n}), y = randn({n}), out = zeros({n});
    return Work{[=]() mutable {
                  out.copy_(x + y);
                  eval(out);
                },
                0, 12.0 * n, "into an existing tensor"};
  });
}

void add_row_cases() {
  add("softmax_4096x1024", [] {
    return forward([](const Tensor& x) { return softmax(x, -1); }, 8.0 * 4096 * 1024,
                   randn({4096, 1024}));
  });
  add("layernorm_fwd_4096x768", [] {
    Tensor x = randn({4096, 768}), w = ones({768}), b = zeros({768});
    return Work{[=] { eval(layer_norm(x, {768}, w, b)); }, 0, 8.0 * 4096 * 768};
  });
  add("layernorm_fwdbwd_4096x768", [] {
    Tensor x = randn({4096, 768}), w = ones({768}), b = zeros({768}), g = randn({4096, 768});
    x.requires_grad_();
    w.requires_grad_();
    b.requires_grad_();
    return Work{[=] {
                  x.zero_grad();
                  w.zero_grad();
                  b.zero_grad();
                  Tensor y = layer_norm(x, {768}, w, b);
                  y.backward(g);
                  eval({y, x.grad(), w.grad(), b.grad()});
                },
                0, 20.0 * 4096 * 768};
  });
}

void add_reduce_and_copy_cases() {
  static constexpr double bytes = 4.0 * 4096 * 4096;
  add("sum_axis0_4096x4096", [] {
    return forward([](const Tensor& x) { return x.sum(0); }, bytes, randn({4096, 4096}));
  });
  add("sum_axis1_4096x4096", [] {
    return forward([](const Tensor& x) { return x.sum(1); }, bytes, randn({4096, 4096}));
  });
  add("sum_all_4096x4096", [] {
    return forward([](const Tensor& x) { return x.sum(); }, bytes, randn({4096, 4096}));
  });
  add("transpose_copy_4096x4096", [] {
    return forward([](const Tensor& x) { return x.t().clone(); }, 2 * bytes, randn({4096, 4096}));
  });
  add("embedding_8192x768_of_50257", [] {
    Tensor w = randn({50257, 768}), index = randint(0, 50257, {8192});
    return Work{[=] { eval(embedding(w, index)); }, 0, 8.0 * 8192 * 768};
  });
}

void add_adamw_case() {
  add("adamw_10M", [] {
    std::vector<Tensor> parameters, gradients;
    for (int i = 0; i < 10; ++i) {
      parameters.push_back(randn({1000, 1000}).requires_grad_());
      gradients.push_back(randn({1000, 1000}) * 0.01);
      eval(gradients.back());
    }
    auto optimiser = std::make_shared<optim::AdamW>(
        parameters, optim::AdamWOptions{.lr = 1e-4, .weight_decay = 0.01});
    return Work{[=] {
                  for (size_t i = 0; i < parameters.size(); ++i)
                    parameters[i].set_grad(gradients[i]);
                  optimiser->step();
                },
                0, 28.0 * 10e6};
  });
}

}  // namespace

void add_matmul_cases() {
  for (const int64_t n : {512, 1024, 2048}) {
    add("matmul_" + std::to_string(n), [n] {
      Tensor a = randn({n, n}), b = randn({n, n});
      return Work{[=] { eval(matmul(a, b)); }, 2.0 * static_cast<double>(n * n * n)};
    });
  }
  add("bmm_64x128x64x128", [] {
    Tensor a = randn({64, 128, 64}), b = randn({64, 64, 128});
    return Work{[=] { eval(matmul(a, b)); }, 2.0 * 64 * 128 * 128 * 64};
  });
}

void add_kernel_cases() {
  add_gelu_cases();
  add_row_cases();
  add_reduce_and_copy_cases();
  add_adamw_case();
}

}  // namespace bench
