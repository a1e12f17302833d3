// Every rewrite rule by itself: a program that it changes, the values before and after, and
// programs that it must leave alone. The null device says which epilogues its calls take.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>
#include <string_view>

#include "backend/null/null_backend.h"
#include "compile/decompose.h"
#include "compile/executor.h"
#include "compile/rewrite.h"
#include "graph/cell.h"
#include "graph/recorder.h"

using namespace ingot;

namespace {

using Tensors = std::vector<Tensor>;

struct WithKernels {
  NullKernels before = null_kernels();
  explicit WithKernels(const NullKernels& now) { set(now); }
  ~WithKernels() { set(before); }
  static void set(const NullKernels& kernels) {
    set_null_kernels(kernels);
    clear_plan_cache();
  }
};

Tensor leaf(const Dims& shape, DType t = float32) {
  return zeros(shape, {t, "null"}).eval_().detach().requires_grad_();
}
Tensor data(const Dims& shape, DType t = float32) { return zeros(shape, {t, "null"}).eval_(); }

// The compiler's graph of what is asked for, before the rules.
Graph graph_of(const Tensors& asked) {
  Recorder& recorder = Recorder::current();
  std::lock_guard lock(recorder.run_mutex);
  std::vector<NodeRef> nodes;
  for (const Tensor& t : asked) nodes.emplace_back(t.cell()->current());
  Graph g = make_graph(make_trace(recorder, pointers(nodes), false));
  decompose_unclaimed(g, {}, true);
  g.count_users();
  simplify(g);
  return g;
}

void apply(Graph& g, std::string_view name) {
  if (name == kBiasGradient) return add_epilogues(g);  // which is no row
  for (const auto rows : {transposed_product_rules(), epilogue_rules(), fold_conv_rules(),
                          space_to_depth_rules(), join_attention_rules()})
    for (const Rule& rule : rows)
      if (rule.name == name) rewrite(g, {&rule, 1});
  g.count_users();
  drop_dead(g);
  verify(g);
}

// "matmul+bias relu": what is computed or looked at, in order.
std::string text_of(const Graph& g) {
  std::string text;
  for (size_t i = 0; i < g.vals.size(); ++i) {
    const Val& v = g.vals[i];
    if (g.users[i] == 0 || is_source(v.op)) continue;
    if (!text.empty()) text += " ";
    text += v.op == Op::Composite || v.op == Op::CompositeGrad ? name_of(v.op, v.attrs)
                                                               : info(v.op).name;
    text += to_string(v.epilogues);
    if (v.joined()) text += "(joined)";
  }
  return text;
}

struct Change {
  const char* rule;
  std::vector<const char*> first;  // rules that are applied before
  NullKernels kernels;
  std::function<Tensors()> program;
  const char *before, *after;
};
struct Kept {
  const char *rule, *why;
  std::vector<const char*> first;
  NullKernels kernels;
  std::function<Tensors()> program;
};

using enum Epilogue;
constexpr Epilogues kUsual{Bias, Residual, Relu};
const NullKernels kDefault{};
const NullKernels kNone{.epilogues = {}};
const NullKernels kBias{.epilogues = {Bias}};
const NullKernels kGelu{.epilogues = {Bias, GeluTanh, KeepSum, GeluTanhGrad}};
const NullKernels kGeluAlone{.epilogues = {Bias, GeluTanh}};
const NullKernels kReluGrad{.epilogues = {Bias, Relu, ReluGrad}};
const NullKernels kBiasGrad{.epilogues = {Bias, BiasGrad}};
const NullKernels kChannelsLast{.epilogues = kUsual, .channels_last = true};

Tensor gelu_of(const Tensor& x) { return gelu(x, "tanh"); }

Tensors mlp_gradient(DType t, Tensor (*between)(const Tensor&)) {
  const Tensor x = leaf({32, 24}, t), w = data({48, 24}, t), v = data({16, 48}, t);
  return grad({linear(between(linear(x, w)), v)}, {x}, {data({32, 16}, t)});
}

Tensor relu_of(const Tensor& x) { return relu(x); }

struct Conv {
  Tensor x = data({2, 8, 6, 6}), w = data({12, 8, 3, 3}), bias = data({12}),
         other = data({2, 12, 6, 6});
  Tensor operator()() const { return conv2d(x, w, {}, 1, 1); }
  Tensor norm(const Tensor& y) const { return batch_norm(y, bias, bias, bias, bias); }
};

Tensors image_conv(int64_t stride, DType t) {
  return {conv2d(data({2, 3, 32, 32}, t), data({16, 3, 7, 7}, t), {}, stride, 3)};
}
Tensors image_weight_gradient(int64_t stride, DType t) {
  const Tensor w = leaf({16, 3, 7, 7}, t);
  const Tensor y = conv2d(data({2, 3, 32, 32}, t), w, {}, stride, 3);
  return {grad({y}, {w}, {data(y.shape(), t)})[0] * 2};  // a result keeps its layout
}

// The gradient of the projection that q, k and v are cut from.
Tensors attention_gradient(bool again) {
  const Tensor qkv = leaf({2, 64, 96}, bfloat16);
  const Tensors parts = qkv.split(32, 2);
  const auto heads = [](const Tensor& t) { return t.view({2, 64, 2, 16}).transpose(1, 2); };
  Tensor y = scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]));
  y = y.transpose(1, 2).reshape({2, 64, 32});
  if (again) y = y + parts[0] * 2;
  return grad({y}, {qkv}, {data({2, 64, 32}, bfloat16)});
}

Tensors bias_gradient(int64_t rows) {
  const Tensor x = data({rows, 24}), w = leaf({48, 24}), b = leaf({48});
  return grad({linear(x, w, b)}, {w, b}, {data({rows, 48})});
}

constexpr const char* kGeluRule = "GELU of a product";
constexpr const char* kReluRule = "ReLU of a product";
constexpr const char* kBiasRule = "bias of a product";
constexpr const char* kConvBiasRule = "bias of a convolution";
constexpr const char* kGeluGradRule = "GELU's gradient of a product";
constexpr const char* kReluGradRule = "ReLU's gradient of a product";
constexpr const char* kTransposed = "(X^T G)^T is G^T X";
constexpr const char* kFold = "batch norm, residual and ReLU of a convolution";
constexpr const char* kBlocks = "convolution of an image over blocks of pixels";
constexpr const char* kBlockGradient = "weight's gradient over blocks of pixels";
constexpr const char* kJoin = "gradients of q, k and v written side by side";

const Change kChanges[] = {
    {kTransposed,
     {},
     kDefault,
     [] {
       const Tensor x = data({128, 32}), w = leaf({64, 32});
       return grad({linear(x, w)}, {w}, {data({128, 64})});
     },
     "permute matmul permute",
     "permute matmul"},
    {kGeluRule,
     {},
     kGeluAlone,
     [] {
       return Tensors{gelu_of(matmul(data({32, 24}, bfloat16), data({24, 48}, bfloat16)))};
     },
     "matmul gelu_tanh",
     "matmul+gelu"},
    {kGeluGradRule,
     {kGeluRule},
     kGelu,
     [] { return mlp_gradient(bfloat16, gelu_of); },
     "permute matmul matmul gradient of gelu_tanh matmul",
     "permute matmul matmul+gelu_grad reshape matmul"},
    {kReluGradRule,
     {kReluRule},
     kReluGrad,
     [] { return mlp_gradient(float32, relu_of); },
     "permute matmul+relu reshape matmul gt where matmul",
     "permute matmul+relu matmul+relu_grad reshape matmul"},
    {kReluRule,
     {},
     kDefault,
     [] {
       return Tensors{relu(matmul(data({32, 24}), data({24, 48})))};
     },
     "matmul relu",
     "matmul+relu"},
    {kConvBiasRule,
     {},
     kDefault,
     [] {
       const Conv conv;
       return Tensors{conv() + conv.bias.reshape({1, 12, 1, 1})};
     },
     "reshape conv add",
     "reshape conv+bias"},
    {kBiasRule,
     {},
     kDefault,
     [] {
       return Tensors{matmul(data({32, 24}), data({24, 48})) + data({48})};
     },
     "matmul add",
     "matmul+bias"},
    {kFold,
     {},
     kDefault,
     [] {
       const Conv conv;
       const Tensor each = conv.bias.reshape({1, 12, 1, 1});
       return Tensors{relu(conv() * each + each + conv.other)};
     },
     "reshape conv mul add add relu",
     "reshape reshape mul conv+bias+add+relu"},
    {kBlocks,
     {},
     kChannelsLast,
     [] { return image_conv(2, bfloat16); },
     "conv",
     "pad reshape permute reshape pad reshape permute reshape conv"},
    {kBlockGradient,
     {},
     kChannelsLast,
     [] { return image_weight_gradient(2, bfloat16); },
     "conv_grad_weight mul",
     "pad reshape permute reshape conv_grad_weight reshape permute reshape slice mul"},
    {kJoin,
     {},
     kDefault,
     [] { return attention_gradient(false); },
     "slice slice slice reshape permute reshape permute reshape permute reshape permute "
     "attention_grad result result permute reshape permute reshape permute reshape pad pad add pad "
     "add",
     "slice slice slice reshape permute reshape permute reshape permute reshape permute "
     "attention_grad(joined) result result"},
    {kBiasGradient,
     {kTransposed},
     kBiasGrad,
     [] { return bias_gradient(32); },
     "sum reshape permute matmul",
     "permute matmul+bias_grad result reshape"},
};

const Kept kKept[] = {
    {kTransposed,
     "the product is read twice",
     {},
     kDefault,
     [] {
       const Tensor p = matmul(data({128, 32}).transpose(0, 1), data({128, 64}));
       return Tensors{p.transpose(0, 1) * 2, p * 3};
     }},
    {kTransposed,
     "nothing is transposed",
     {},
     kDefault,
     [] {
       return Tensors{matmul(data({32, 128}), data({128, 64})).transpose(0, 1) * 2};
     }},
    {kGeluRule,
     "float32",
     {},
     kGelu,
     [] {
       return Tensors{gelu_of(matmul(data({32, 24}), data({24, 48})))};
     }},
    {kGeluRule,
     "the product is read twice, and the kernel does not keep it",
     {},
     kGeluAlone,
     [] {
       const Tensor p = matmul(data({32, 24}, bfloat16), data({24, 48}, bfloat16));
       return Tensors{gelu_of(p), p * 2};
     }},
    {kGeluRule,
     "no kernel takes it",
     {},
     kBias,
     [] {
       return Tensors{gelu_of(matmul(data({32, 24}, bfloat16), data({24, 48}, bfloat16)))};
     }},
    {kGeluGradRule,
     "the kernel takes GELU alone",
     {kGeluRule},
     kGeluAlone,
     [] { return mlp_gradient(bfloat16, gelu_of); }},
    {kReluGradRule,
     "ReLU is no product's epilogue",
     {},
     kReluGrad,
     [] { return mlp_gradient(float32, relu_of); }},
    {kReluGradRule,
     "no kernel takes it",
     {kReluRule},
     kDefault,
     [] { return mlp_gradient(float32, relu_of); }},
    {kReluRule,
     "the product is read twice",
     {},
     kDefault,
     [] {
       const Tensor p = matmul(data({32, 24}), data({24, 48}));
       return Tensors{relu(p), p * 2};
     }},
    {kReluRule,
     "no kernel takes it",
     {},
     kBias,
     [] {
       return Tensors{relu(matmul(data({32, 24}), data({24, 48})))};
     }},
    {kReluRule,
     "integers",
     {},
     kDefault,
     [] {
       return Tensors{relu(matmul(data({32, 24}, int32), data({24, 48}, int32)))};
     }},
    {kConvBiasRule,
     "a bias along another dim",
     {},
     kDefault,
     [] {
       const Conv conv;
       return Tensors{conv() + data({1, 1, 6, 1})};
     }},
    {kConvBiasRule,
     "the convolution is read twice",
     {},
     kDefault,
     [] {
       const Conv conv;
       const Tensor y = conv();
       return Tensors{y + conv.bias.reshape({1, 12, 1, 1}), y * 2};
     }},
    {kBiasRule,
     "a bias along the rows",
     {},
     kDefault,
     [] {
       return Tensors{matmul(data({32, 24}), data({24, 48})) + data({32, 1})};
     }},
    {kBiasRule,
     "the product is read twice",
     {},
     kDefault,
     [] {
       const Tensor p = matmul(data({32, 24}), data({24, 48}));
       return Tensors{p + data({48}), p * 2};
     }},
    {kBiasRule,
     "no kernel takes it",
     {},
     kNone,
     [] {
       return Tensors{matmul(data({32, 24}), data({24, 48})) + data({48})};
     }},
    {kFold,
     "the convolution is read twice",
     {},
     kDefault,
     [] {
       const Conv conv;
       const Tensor y = conv();
       return Tensors{relu(y + conv.bias.reshape({1, 12, 1, 1})), y * 2};
     }},
    {kFold,
     "no kernel takes a residual and ReLU",
     {},
     kBias,
     [] {
       const Conv conv;
       return Tensors{relu(conv() + conv.bias.reshape({1, 12, 1, 1}))};
     }},
    {kBlocks, "stride 1", {}, kChannelsLast, [] { return image_conv(1, bfloat16); }},
    {kBlocks, "float32", {}, kChannelsLast, [] { return image_conv(2, float32); }},
    {kBlocks,
     "the kernel wants channels first",
     {},
     kDefault,
     [] { return image_conv(2, bfloat16); }},
    {kBlockGradient,
     "stride 1",
     {},
     kChannelsLast,
     [] { return image_weight_gradient(1, bfloat16); }},
    {kBlockGradient,
     "the kernel wants channels first",
     {},
     kDefault,
     [] { return image_weight_gradient(2, bfloat16); }},
    {kJoin, "more is added to the sum", {}, kDefault, [] { return attention_gradient(true); }},
    {kBiasGradient,
     "large gradients",
     {kTransposed},
     kBiasGrad,
     [] { return bias_gradient(16384); }},
    {kBiasGradient, "no kernel takes it", {kTransposed}, kBias, [] { return bias_gradient(32); }},
};

Tensor linear_of(const Dims& shape, DType t) {
  return linear(data(shape, t), data({48, 24}, t), data({48}, t));
}

std::set<std::string_view> all_names() {
  const auto names = rule_names();
  return {names.begin(), names.end()};
}

template <class Cases>
std::set<std::string_view> tested(const Cases& cases) {
  std::set<std::string_view> names;
  for (const auto& c : cases) names.insert(c.rule);
  return names;
}

}  // namespace

TEST_CASE("every rule has a program that it changes and one that it does not") {
  const std::set<std::string_view> all = all_names();
  CHECK(all.size() == rule_names().size());  // names differ
  CHECK(all.size() >= 12);
  for (std::string_view name : all) {
    CAPTURE(std::string(name));
    CHECK(tested(kChanges).contains(name));
    CHECK(tested(kKept).contains(name));
  }
  CHECK(tested(kChanges).size() == all.size());
  CHECK(tested(kKept).size() == all.size());
}

TEST_CASE("what each rule makes of a program") {
  for (const Change& c : kChanges) {
    CAPTURE(std::string(c.rule));
    const WithKernels kernels(c.kernels);
    const Tensors asked = c.program();
    Graph g = graph_of(asked);
    for (const char* rule : c.first) apply(g, rule);
    CHECK(text_of(g) == c.before);
    apply(g, c.rule);
    CHECK(text_of(g) == c.after);
  }
}

TEST_CASE("what each rule leaves alone") {
  for (const Kept& c : kKept) {
    CAPTURE(std::string(c.rule));
    CAPTURE(std::string(c.why));
    const WithKernels kernels(c.kernels);
    const Tensors asked = c.program();
    Graph g = graph_of(asked);
    for (const char* rule : c.first) apply(g, rule);
    const std::string before = text_of(g);
    CHECK(before != "");
    apply(g, c.rule);
    CHECK(text_of(g) == before);
  }
}

TEST_CASE("a bias added to a reshaped product leaves the product one reader") {
  const auto library_and_other = [](const NullKernels& kernels, const Tensor& y) {
    const WithKernels now(kernels);
    const Explanation e = explain(y);
    return e.generated + e.library;
  };
  // Of what is in memory, and with no handle on what is between.
  const auto of_half = [](const Dims& shape) { return gelu_of(linear_of(shape, bfloat16)); };
  const auto of_float = [](const Dims& shape) { return relu(linear_of(shape, float32)); };
  for (const Dims& shape : {Dims{1, 1, 24}, Dims{2, 3, 24}}) {
    CHECK(library_and_other(kGeluAlone, of_half(shape)) == 1);
    CHECK(library_and_other(kDefault, of_float(shape)) == 1);
  }
}

TEST_CASE("plans have fewer kernels where the device takes epilogues") {
  const auto count = [](const NullKernels& kernels, const std::function<Tensors()>& program) {
    const WithKernels now(kernels);
    const Tensors asked = program();
    const Explanation e = explain(asked);
    return e.generated + e.library;
  };
  const auto gelu_gradient = [] { return mlp_gradient(bfloat16, gelu_of); };
  const auto relu_gradient = [] { return mlp_gradient(float32, relu_of); };
  const auto biases = [] { return bias_gradient(32); };
  CHECK(count(kBias, gelu_gradient) - count(kGelu, gelu_gradient) == 1);
  CHECK(count(kBias, relu_gradient) - count(kReluGrad, relu_gradient) == 1);
  CHECK(count(kBias, biases) - count(kBiasGrad, biases) == 1);
}
