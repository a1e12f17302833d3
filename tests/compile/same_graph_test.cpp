// A program records the same graph on every device and with or without optional libraries: what a
// backend can do is asked when a plan is made, not when ops are recorded. Programs are recorded on
// several devices and compared as dump() prints them. With INGOT_TEST_DUMP=FILE the dumps are
// written there: same_graph.py compares those of processes with different libraries.
#include <doctest/doctest.h>
#include <ingot/ingot.h>
#include <ingot/models/gpt.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <utility>

#include "graph/cell.h"
#include "graph/node.h"

using namespace ingot;

namespace {

struct There {
  Device device;
  DType type = float32;

  Tensor leaf(const Dims& shape) const {
    Tensor t = full(shape, 0.5).to(type).to(device);
    return t.eval_().detach().requires_grad_();
  }
  Tensor tokens(const Dims& shape) const { return zeros(shape, int64).to(device).eval_(); }
  template <class M>
  void move(M& m) const {
    m.to(device);
    eval(m.parameters());
  }
};

using Tensors = std::vector<Tensor>;

Tensors with_gradients(const Tensor& y, const Tensors& leaves) {
  Tensors all{y};
  for (const Tensor& g : grad({y.to(float32).sum()}, leaves)) all.push_back(g);
  return all;
}

Tensors attention(const There& on, const AttentionOptions& options) {
  const Tensors in{on.leaf({2, 2, 48, 16}), on.leaf({2, 2, 48, 16}), on.leaf({2, 2, 48, 16})};
  return with_gradients(scaled_dot_product_attention(in[0], in[1], in[2], options), in);
}

template <class Layer>
Tensors recurrent(const There& on) {
  manual_seed(1);
  Layer layer(8, 16, {.num_layers = 2, .bidirectional = true});
  on.move(layer);
  const Tensor x = on.leaf({12, 4, 8});
  Tensors leaves = layer.parameters();
  leaves.push_back(x);
  return with_gradients(layer(x).output, leaves);
}

Tensors linear_stack(const There& on, const std::function<Tensor(const Tensor&)>& between) {
  const Tensors in{on.leaf({32, 24}), on.leaf({48, 24}), on.leaf({48}), on.leaf({10, 48})};
  return with_gradients(linear(between(linear(in[0], in[1], in[2])), in[3]), in);
}

Tensors convolutions(const There& on) {
  manual_seed(1);
  nn::Sequential net(nn::Conv2d(3, 16, {.kernel_size = 3, .stride = 2, .padding = 1}),
                     nn::BatchNorm2d(16), nn::ReLU(),
                     nn::Conv2d(16, 16, {.kernel_size = 3, .padding = 1, .groups = 16}),
                     nn::Flatten(), nn::Linear(16 * 64, 10));
  on.move(net);
  const Tensor loss = cross_entropy(net(on.leaf({4, 3, 16, 16})), on.tokens({4}));
  loss.backward();
  Tensors all{loss};  // an optimiser's first step runs what is pending: the update is by hand
  for (const Tensor& p : net.parameters()) all.push_back(p.detach() - p.grad() * 0.1);
  return all;
}

Tensors cached_generation(const There& on) {
  manual_seed(1);
  models::GPTBlock block({.layers = 1, .heads = 2, .width = 32, .context = 64, .vocabulary = 40});
  on.move(block);
  block.eval();
  NoGrad guard;
  models::KVCache cache;
  const Tensor position = on.tokens({});
  Tensors all{block.with_cache(on.leaf({2, 5, 32}), cache, {}, 64)};
  all.push_back(block.with_cache(on.leaf({2, 1, 32}), cache, position, 64));
  all.push_back(cache.keys);
  all.push_back(cache.values);
  return all;
}

struct Program {
  const char* name;
  std::vector<DType> types;
  std::function<Tensors(const There&)> record;
  bool on_cpu = false;  // elsewhere it records copies to the CPU and back
};

const std::vector<Program>& programs() {
  static const std::vector<Program> all = {
      {"attention", {float32, bfloat16}, [](const There& on) { return attention(on, {}); }},
      {"causal attention",
       {float32, bfloat16},
       [](const There& on) { return attention(on, {.is_causal = true}); }},
      {"attention with a bias",
       {float32, bfloat16},
       [](const There& on) {
         return attention(on, {.mask = on.leaf({1, 2, 48, 48}).detach()});
       }},
      {"LSTM", {float32}, recurrent<nn::LSTM>},
      {"GRU", {float32}, recurrent<nn::GRU>},
      {"RNN", {float32}, recurrent<nn::RNN>},
      {"layer norm",
       {float32, bfloat16},
       [](const There& on) {
         const Tensors in{on.leaf({8, 32}), on.leaf({32}), on.leaf({32})};
         return with_gradients(layer_norm(in[0], {32}, in[1], in[2]), in);
       }},
      {"softmax",
       {float32, bfloat16},
       [](const There& on) {
         const Tensor x = on.leaf({8, 32});
         return with_gradients(softmax(x, -1) * 2, {x});
       }},
      {"cross entropy",
       {float32},
       [](const There& on) {
         const Tensor x = on.leaf({8, 32});
         return with_gradients(cross_entropy(x, on.tokens({8})), {x});
       }},
      {"GELU MLP",
       {float32, bfloat16},
       [](const There& on) {
         return linear_stack(on, [](const Tensor& x) { return gelu(x, "tanh"); });
       }},
      {"convolutions in training", {float32}, convolutions},
      {"products of few rows",
       {float32},
       [](const There& on) {
         const Tensors in{on.leaf({1, 24}), on.leaf({48, 24})};
         return with_gradients(relu(linear(in[0], in[1])), in);
       }},
      {"factorisation",
       {float32},
       [](const There& on) {
         return Tensors{inv(on.leaf({4, 4}).detach() + eye(4, {}, {on.type, on.device}))};
       },
       true},
      {"cached generation", {float32}, cached_generation},
  };
  return all;
}

/// f(position, length) for each "%number" in the text.
template <class F>
void each_number(const std::string& text, F f) {
  for (size_t at = text.find('%'); at != text.npos; at = text.find('%', at + 1))
    f(at, text.find_first_not_of("0123456789", at + 1) - at);
}

// dump() without the device's name, with leaves before their first use, whose origin is not part of
// what was recorded, and nodes numbered in that order.
std::string masked(const std::string& text, const Device& device) {
  std::map<std::string, std::string> leaves;  // not printed yet, by number
  std::map<std::string, int> numbers;
  std::string ordered, out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t made = line.find(" = "), type = line.find(") : "), end = line.find(" computed");
    if (end != line.npos) {
      leaves[line.substr(0, made)] =
          line.substr(0, made) + " = leaf(" + line.substr(type, end - type) + "\n";
      continue;
    }
    each_number(line, [&](size_t at, size_t n) {
      const auto leaf = leaves.find(line.substr(at, n));
      if (leaf == leaves.end()) return;
      ordered += leaf->second;
      leaves.erase(leaf);
    });
    ordered += line + "\n";
  }
  size_t copied = 0;
  each_number(ordered, [&](size_t at, size_t n) {
    const int next = static_cast<int>(numbers.size());
    const int number = numbers.try_emplace(ordered.substr(at, n), next).first->second;
    out += ordered.substr(copied, at - copied) + "%" + std::to_string(number);
    copied = at + n;
  });
  out += ordered.substr(copied);
  const std::string name = " on " + device.name();
  for (size_t at; (at = out.find(name)) != std::string::npos;)
    out.replace(at, name.size(), " on D");
  return out;
}

std::string recorded(const Program& p, const There& on) {
  const Tensors results = p.record(on);
  std::vector<NodeRef> roots;
  for (const Tensor& t : results) roots.emplace_back(t.cell()->current());
  return masked(dump(pointers(roots)), on.device);
}

std::string title(const Program& p, DType t) {
  return std::string(p.name) + " in " + std::string(name_of(t));
}

}  // namespace

TEST_CASE("a program records the same graph on every device") {
  for (const Program& p : programs())
    for (DType t : p.types) {
      CAPTURE(title(p, t));
      const std::string want = recorded(p, {Device("cpu"), t});
      CHECK(std::count(want.begin(), want.end(), '\n') > 3);
      if (p.on_cpu) continue;
      for (const Device& other : {Device("null"), Device("cpu:1"), default_device()})
        CHECK(recorded(p, {other, t}) == want);
    }
}

TEST_CASE("graphs for a comparison with other processes") {
  const char* file = std::getenv("INGOT_TEST_DUMP");
  if (!file) return;
  std::ofstream out(file);
  for (const Program& p : programs())
    for (DType t : p.types) out << "== " << title(p, t) << "\n" << recorded(p, {Device("cpu"), t});
  CHECK(out.good());
}
