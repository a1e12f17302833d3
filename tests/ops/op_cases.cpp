#include "ops/op_cases.h"

#include <algorithm>
#include <functional>

namespace ingot::check {
namespace {

using List = std::vector<Tensor>;
using Unary = std::function<Tensor(const Tensor&)>;
using Binary = std::function<Tensor(const Tensor&, const Tensor&)>;

Function one(Unary f) {
  return [f](const List& x) { return List{f(x[0])}; };
}
Function two(Binary f) {
  return [f](const List& x) { return List{f(x[0], x[1])}; };
}

// Shapes that broadcast: equal, against a row, a column, a 0-d tensor, more dims, nothing at all.
const std::vector<std::pair<Dims, Dims>> kPairs = {
    {{3, 4}, {3, 4}},    {{3, 4}, {4}},    {{3, 1}, {1, 4}}, {{}, {5}},
    {{2, 1, 3}, {4, 1}}, {{0, 3}, {1, 3}}, {{}, {}},         {{37}, {37}}};

void add_unary(std::vector<Case>& c) {
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&, SourceLoc);
    double lo, hi;
    Types types;
  };
  // Ranges keep clear of kinks, poles and the edges of domains.
  const Row rows[] = {
      {"neg", neg, -2, 2, Types::Number},
      {"abs", abs, 0.1, 2, Types::Number},
      {"sign", sign, 0.1, 2, Types::Any},
      {"exp", exp, -2, 2, Types::Float},
      {"exp2", exp2, -2, 2, Types::Float},
      {"expm1", expm1, -1, 1, Types::Float},
      {"log", log, 0.2, 3, Types::Float},
      {"log2", log2, 0.2, 3, Types::Float},
      {"log10", log10, 0.2, 3, Types::Float},
      {"log1p", log1p, -0.5, 2, Types::Float},
      {"sqrt", sqrt, 0.2, 3, Types::Float},
      {"rsqrt", rsqrt, 0.2, 3, Types::Float},
      {"reciprocal", reciprocal, 0.3, 2, Types::Float},
      {"square", square, -2, 2, Types::Number},
      {"sin", sin, -3, 3, Types::Float},
      {"cos", cos, -3, 3, Types::Float},
      {"tan", tan, -1, 1, Types::Float},
      {"asin", asin, -0.9, 0.9, Types::Float},
      {"acos", acos, -0.9, 0.9, Types::Float},
      {"atan", atan, -2, 2, Types::Float},
      {"sinh", sinh, -2, 2, Types::Float},
      {"cosh", cosh, -2, 2, Types::Float},
      {"tanh", tanh, -2, 2, Types::Float},
      {"erf", erf, -2, 2, Types::Float},
      {"erfc", erfc, -2, 2, Types::Float},
      {"sigmoid", sigmoid, -3, 3, Types::Float},
      {"relu", relu, 0.1, 2, Types::Number},
      {"floor", floor, 0.1, 0.9, Types::Float},
      {"ceil", ceil, 0.1, 0.9, Types::Float},
      {"round", round, 0.6, 1.4, Types::Float},
      {"trunc", trunc, 0.1, 0.9, Types::Float},
      {"isnan", isnan, -2, 2, Types::Any},
      {"isinf", isinf, -2, 2, Types::Any},
      {"isfinite", isfinite, -2, 2, Types::Any},
      {"logical_not", logical_not, -2, 2, Types::Any},
      {"bitwise_not", bitwise_not, -4, 5, Types::Bits},
  };
  for (const Row& r : rows) {
    auto f = [fn = r.f](const Tensor& x) { return fn(x, SourceLoc::current()); };
    bool grad = r.types != Types::Bits;
    for (const Dims& shape : {Dims{3, 5}, Dims{}, Dims{0, 2}, Dims{1, 1, 7}})
      c.push_back({r.name + to_string(shape), {{shape, r.lo, r.hi}}, one(f), r.types, grad});
  }
  c.push_back({"relu negative",
               {{{3, 5}, -2, -0.1}},
               one([](const Tensor& x) { return relu(x); }),
               Types::Float});
  c.push_back({"abs negative",
               {{{3, 5}, -2, -0.1}},
               one([](const Tensor& x) { return abs(x); }),
               Types::Float});
}

void add_binary(std::vector<Case>& c) {
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&, const Operand&, SourceLoc);
    double lo, hi;
    Types types;
    bool grad;
  };
  const Row rows[] = {
      {"add", add, -2, 2, Types::Any, true},
      {"sub", sub, -2, 2, Types::Number, true},
      {"mul", mul, -2, 2, Types::Any, true},
      {"div", div, 0.5, 2, Types::Float, true},
      {"pow", pow, 0.5, 2, Types::Float, true},
      {"maximum", maximum, -2, 2, Types::Any, true},
      {"minimum", minimum, -2, 2, Types::Any, true},
      {"atan2", atan2, 0.3, 2, Types::Float, true},
      {"fmod", fmod, 0.7, 2, Types::Number, true},
      {"remainder", remainder, 0.7, 2, Types::Number, true},
      {"floor_divide", floor_divide, 0.7, 2, Types::Number, true},
      {"eq", eq, -2, 2, Types::Any, false},
      {"ne", ne, -2, 2, Types::Any, false},
      {"lt", lt, -2, 2, Types::Any, false},
      {"le", le, -2, 2, Types::Any, false},
      {"gt", gt, -2, 2, Types::Any, false},
      {"ge", ge, -2, 2, Types::Any, false},
      {"bitwise_and", bitwise_and, 0, 5, Types::Bits, false},
      {"bitwise_or", bitwise_or, 0, 5, Types::Bits, false},
      {"bitwise_xor", bitwise_xor, 0, 5, Types::Bits, false},
      {"bitwise_left_shift", bitwise_left_shift, 1, 4, Types::Int, false},
      {"bitwise_right_shift", bitwise_right_shift, 1, 4, Types::Int, false},
      {"logical_and", logical_and, -2, 2, Types::Any, false},
      {"logical_or", logical_or, -2, 2, Types::Any, false},
      {"logical_xor", logical_xor, -2, 2, Types::Any, false},
  };
  for (const Row& r : rows) {
    auto f = [fn = r.f](const Tensor& a, const Tensor& b) {
      return fn(a, b, SourceLoc::current());
    };
    for (const auto& [sa, sb] : kPairs)
      c.push_back({std::string(r.name) + to_string(sa) + to_string(sb),
                   {{sa, r.lo, r.hi}, {sb, r.lo, r.hi}},
                   two(f),
                   r.types,
                   r.grad});
  }
  c.push_back({"maximum of equals", {{{2, 3}}}, one([](const Tensor& x) {
                 return maximum(x, x.clone()) + minimum(x, x * 1.0);
               })});
  c.push_back({"numbers", {{{2, 3}, 0.5, 2}}, one([](const Tensor& x) {
                 return (2.0 / x - 1.0) * 3.0 + (1.0 - x) / 4.0;
               })});
  c.push_back({"pow 2", {{{2, 3}}}, one([](const Tensor& x) { return pow(x, 2) + pow(x, 3); })});
  c.push_back({"pow -0.5", {{{2, 3}, 0.5, 2}}, one([](const Tensor& x) {
                 return pow(x, -0.5) + pow(x, 1.7) + pow(2.0, x);
               })});
}

void add_choice(std::vector<Case>& c) {
  c.push_back({"where",
               {{{3, 4}, 0, 1, bool_}, {{4}}, {{3, 1}}},
               [](const List& x) { return List{where(x[0], x[1], x[2])}; },
               Types::Any});
  c.push_back({"where numbers", {{{3, 4}, 0, 1, bool_}, {{4}}}, [](const List& x) {
                 return List{where(x[0], x[1], 0.5), where(x[0], -1.0, x[1])};
               }});
  c.push_back({"clamp", {{{4, 4}}}, one([](const Tensor& x) { return clamp(x, -0.7, 0.8); })});
  c.push_back({"clamp_min", {{{4, 4}}}, one([](const Tensor& x) {
                 return clamp_min(x, 0.1) + clamp_max(x, 0.3);
               })});
  c.push_back({"masked_fill", {{{3, 4}, 0, 1, bool_}, {{3, 4}}}, [](const List& x) {
                 return List{masked_fill(x[1], x[0], -3.0)};
               }});
  c.push_back(
      {"gelu", {{{3, 5}}}, one([](const Tensor& x) { return gelu(x); }), Types::Float, true, 4});
  c.push_back({"gelu tanh",
               {{{3, 5}}},
               one([](const Tensor& x) { return gelu(x, "tanh"); }),
               Types::Float,
               true,
               4});
  c.push_back({"silu", {{{3, 5}}}, one([](const Tensor& x) { return silu(x); })});
  c.push_back({"softplus", {{{3, 5}}}, one([](const Tensor& x) { return softplus(x); })});
  c.push_back({"leaky_relu", {{{3, 5}}}, one([](const Tensor& x) { return leaky_relu(x, 0.1); })});
  c.push_back({"cast",
               {{{3, 5}}},
               one([](const Tensor& x) { return x.to(float32).to(float64) * 2.0; }),
               Types::Any,
               false});
  c.push_back({"cast to int",
               {{{3, 5}, 0.1, 3.9}},
               one([](const Tensor& x) { return x.to(int32) + x.to(uint8).to(int32); }),
               Types::Any,
               false});
}

// A view of x reads in another order than row-major: transposed, strided, reversed, repeated.
const std::vector<std::pair<const char*, Unary>> kViews = {
    {"reshape",
     [](const Tensor& x) {
       return x.reshape({4, 6});
     }},
    {"flatten", [](const Tensor& x) { return x.flatten(); }},
    {"permute",
     [](const Tensor& x) {
       return x.permute({2, 0, 1});
     }},
    {"transpose", [](const Tensor& x) { return x.transpose(0, 2); }},
    {"reshape of transpose",
     [](const Tensor& x) {
       return x.transpose(0, 1).reshape({6, 4});
     }},
    {"expand",
     [](const Tensor& x) {
       return x.unsqueeze(1).expand({2, 5, 3, 4});
     }},
    {"expand with new dims",
     [](const Tensor& x) {
       return x.expand({3, 2, 3, 4});
     }},
    {"slice",
     [](const Tensor& x) {
       return x[{Slice{}, Slice{1, 3}, Slice{0, 3}}];
     }},
    {"slice step",
     [](const Tensor& x) {
       return x[{Slice{}, Slice{0, 3, 2}, Slice{1, 4, 2}}];
     }},
    {"slice back",
     [](const Tensor& x) {
       return x[{Slice{{}, {}, -1}, Slice{}, Slice{3, 0, -2}}];
     }},
    {"empty slice",
     [](const Tensor& x) {
       return x[{Slice{}, Slice{3, 3}, Slice{}}];
     }},
    {"select",
     [](const Tensor& x) {
       return x[{1, Ellipsis, 2}];
     }},
    {"new axis",
     [](const Tensor& x) {
       return x[{NewAxis, Ellipsis, NewAxis}];
     }},
    {"flip",
     [](const Tensor& x) {
       return x.flip({0, 2});
     }},
    {"pad",
     [](const Tensor& x) {
       return pad(x, {1, 2, 0, 1}, 0.5);
     }},
    {"pad cut",
     [](const Tensor& x) {
       return pad(x, {-1, 2}, 0.0);
     }},
    {"repeat",
     [](const Tensor& x) {
       return x.repeat({2, 1, 3});
     }},
    {"roll", [](const Tensor& x) { return roll(x, 1, 2); }},
    {"narrow", [](const Tensor& x) { return x.narrow(2, 1, 2); }},
    {"tril", [](const Tensor& x) { return x.tril() + x.triu(1) * 2.0; }},
};

void add_movement(std::vector<Case>& c) {
  for (const auto& [name, f] : kViews) c.push_back({name, {{{2, 3, 4}}}, one(f), Types::Number});
  // The same views under arithmetic, and as operands of a reduction and a product.
  for (const auto& [name, f] : kViews) {
    Unary view = f;
    c.push_back({std::string(name) + " used", {{{2, 3, 4}}}, one([view](const Tensor& x) {
                   return view(x * 2.0) * view(x) + 1.0;
                 })});
    if (std::string(name) != "empty slice")
      c.push_back({std::string(name) + " reduced",
                   {{{2, 3, 4}}},
                   one([view](const Tensor& x) { return view(x).sum(-1) + amax(view(x), -1); }),
                   Types::Float,
                   true,
                   4});
  }
  c.push_back({"cat",
               {{{2, 3}}, {{2, 1}}, {{2, 4}}},
               [](const List& x) {
                 return List{cat({x[0], x[1], x[2]}, 1)};
               },
               Types::Number});
  c.push_back({"stack",
               {{{2, 3}}, {{2, 3}}},
               [](const List& x) {
                 return List{stack({x[0], x[1]}, 1)};
               },
               Types::Number});
  c.push_back({"split", {{{5, 3}}}, [](const List& x) { return x[0].split(2); }, Types::Number});
  c.push_back({"chunk", {{{5, 3}}}, [](const List& x) { return x[0].chunk(2); }, Types::Number});
  c.push_back({"squeeze", {{{1, 3, 1}}}, one([](const Tensor& x) {
                 return x.squeeze() + x.squeeze(0).flatten();
               })});
  c.push_back({"eight dims", {{{2, 1, 2, 1, 2, 1, 2, 3}}}, one([](const Tensor& x) {
                 return x.permute({7, 6, 5, 4, 3, 2, 1, 0}) * 2.0;
               })});
  c.push_back({"in place", {{{3, 4}}, {{4}}}, [](const List& x) {
                 Tensor y = x[0] * 1.0;
                 y[1] = x[1];
                 y[{Slice{}, Slice{0, 4, 2}}] *= 3.0;
                 y.view(-1)[0] = 7.0;
                 return List{y, y * x[1]};
               }});
}

void add_reductions(std::vector<Case>& c) {
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&, const Axes&, bool, SourceLoc);
    Types types;
    bool grad;
  };
  const Row rows[] = {
      {"sum", sum, Types::Any, true},   {"mean", mean, Types::Float, true},
      {"prod", prod, Types::Any, true}, {"amax", amax, Types::Any, true},
      {"amin", amin, Types::Any, true}, {"any", any, Types::Any, false},
      {"all", all, Types::Any, false},  {"logsumexp", logsumexp, Types::Float, true}};
  const std::vector<std::pair<Dims, Axes>> places = {
      {{3, 4}, {}},          {{3, 4}, {0}}, {{3, 4}, {1}}, {{2, 3, 4}, {0, 2}}, {{2, 3, 4}, {1}},
      {{2, 3, 4}, {-1, -2}}, {{}, {}},      {{1, 5}, {0}}, {{40}, {0}}};
  for (const Row& r : rows)
    for (bool keep : {false, true})
      for (const auto& [shape, axes] : places) {
        if (std::string(r.name) == "logsumexp" && axes.all()) continue;
        auto f = [fn = r.f, axes = axes, keep](const Tensor& x) {
          return fn(x, axes, keep, SourceLoc::current());
        };
        c.push_back({std::string(r.name) + to_string(shape) + to_string(axes.dims()) +
                         (keep ? " keepdim" : ""),
                     {{shape, -1.5, 1.5}},
                     one(f),
                     r.types,
                     r.grad,
                     4});
      }
  for (bool keep : {false, true}) {
    c.push_back({"var",
                 {{{3, 4}}},
                 one([keep](const Tensor& x) { return var(x, 1, 1, keep); }),
                 Types::Float,
                 true,
                 8});
    c.push_back({"std",
                 {{{3, 4}}},
                 one([keep](const Tensor& x) { return ingot::std(x, 0, 0, keep); }),
                 Types::Float,
                 true,
                 8});
    c.push_back({"argmax",
                 {{{3, 4}}},
                 one([keep](const Tensor& x) { return argmax(x, 1, keep); }),
                 Types::Number,
                 false});
    c.push_back({"argmin",
                 {{{3, 4}}},
                 one([keep](const Tensor& x) { return argmin(x, 0, keep); }),
                 Types::Number,
                 false});
    c.push_back({"max dim",
                 {{{3, 4}}},
                 [keep](const List& x) {
                   auto m = max(x[0], 1, keep);
                   return List{m.values, m.indices};
                 },
                 Types::Number});
  }
  c.push_back({"argmax of all",
               {{{3, 4}}},
               one([](const Tensor& x) { return argmax(x); }),
               Types::Number,
               false});
  c.push_back({"max of all",
               {{{3, 4}}},
               one([](const Tensor& x) { return max(x) + min(x); }),
               Types::Float});
  c.push_back({"amax of ties",
               {{{3, 4}, 0.2, 0.8}},
               one([](const Tensor& x) {
                 return amax(cat({x, x}, 1), 1);
               }),
               Types::Float});
  c.push_back({"sum over nothing",
               {{{0, 3}}},
               one([](const Tensor& x) { return sum(x, 0); }),
               Types::Number});
  c.push_back(
      {"norm", {{{3, 4}}}, one([](const Tensor& x) { return norm(x); }), Types::Float, true, 4});
  c.push_back({"sum of products",
               {{{6, 50}}, {{6, 50}}},
               two([](const Tensor& a, const Tensor& b) { return (a * b).sum(1) + (a - b).sum(); }),
               Types::Float,
               true,
               30});
  c.push_back({"prod with zeros",
               {{{3, 4}, 0, 1, bool_}, {{3, 4}}},
               [](const List& x) { return List{prod(x[1] * x[0].to(x[1].dtype()), 1)}; },
               Types::Float});
  c.push_back({"prod with one zero",
               {{{4}}},
               one([](const Tensor& x) {
                 return prod(cat({x - x, x}, 0)[{Slice{3, 8}}], 0);
               }),
               Types::Float});
}

void add_products(std::vector<Case>& c) {
  const std::vector<std::pair<Dims, Dims>> shapes = {{{3, 4}, {4, 5}},
                                                     {{4}, {4}},
                                                     {{3, 4}, {4}},
                                                     {{4}, {4, 5}},
                                                     {{2, 3, 4}, {4, 5}},
                                                     {{2, 3, 4}, {2, 4, 5}},
                                                     {{2, 1, 3, 4}, {3, 4, 2}},
                                                     {{3, 4}, {2, 4, 5}},
                                                     {{0, 4}, {4, 3}},
                                                     {{1, 1}, {1, 1}},
                                                     {{2, 3, 4}, {4}}};
  auto product = [](const Tensor& a, const Tensor& b) { return matmul(a, b); };
  for (const auto& [a, b] : shapes)
    c.push_back(
        {"matmul" + to_string(a) + to_string(b), {{a}, {b}}, two(product), Types::Float, true, 8});
  c.push_back({"matmul of integers", {{{3, 4}}, {{4, 2}}}, two(product), Types::Int, false});
  c.push_back({"matmul transposed",
               {{{4, 3}}, {{5, 4}}},
               two([](const Tensor& a, const Tensor& b) { return matmul(a.t(), b.t()); }),
               Types::Float,
               true,
               8});
  c.push_back({"matmul of slices",
               {{{6, 8}}, {{4, 5}}},
               two([](const Tensor& a, const Tensor& b) {
                 return matmul(a[{Slice{0, 6, 2}, Slice{2, 6}}], b);
               }),
               Types::Float,
               true,
               8});
  c.push_back({"linear",
               {{{2, 3, 4}}, {{5, 4}}, {{5}}},
               [](const List& x) {
                 return List{linear(x[0], x[1], x[2]), linear(x[0], x[1])};
               },
               Types::Float,
               true,
               8});
  c.push_back({"linear relu",
               {{{3, 4}}, {{5, 4}}, {{5}}},
               [](const List& x) { return List{relu(linear(x[0], x[1], x[2])) * 2.0}; },
               Types::Float,
               true,
               8});
  c.push_back({"attention grouped",
               {{{2, 4, 5, 4}}, {{2, 2, 3, 4}}, {{2, 2, 3, 4}}},
               [](const List& x) {
                 AttentionOptions o;
                 o.enable_gqa = true;
                 return List{scaled_dot_product_attention(x[0], x[1], x[2], o)};
               },
               Types::Float,
               true,
               8});
  c.push_back({"attention",
               {{{2, 2, 5, 4}}, {{2, 2, 5, 4}}, {{2, 2, 5, 4}}},
               [](const List& x) {
                 AttentionOptions o;
                 o.is_causal = true;
                 return List{scaled_dot_product_attention(x[0], x[1], x[2], o),
                             scaled_dot_product_attention(x[0], x[1], x[2])};
               },
               Types::Float,
               true,
               8});
}

void add_index(std::vector<Case>& c) {
  c.push_back({"gather",
               {{{3, 4}}, {{3, 2}, 0, 4, int64}},
               two([](const Tensor& x, const Tensor& i) { return gather(x, 1, i); }),
               Types::Any});
  c.push_back({"gather rows",
               {{{3, 4}}, {{5, 4}, 0, 3, int32}},
               two([](const Tensor& x, const Tensor& i) { return gather(x, 0, i); }),
               Types::Number});
  c.push_back({"embedding",
               {{{7, 3}}, {{2, 5}, 0, 7, int64}},
               two([](const Tensor& w, const Tensor& i) { return embedding(w, i); }),
               Types::Number});
  c.push_back({"index_select",
               {{{3, 4}}, {{6}, 0, 4, int64}},
               two([](const Tensor& x, const Tensor& i) { return index_select(x, 1, i); }),
               Types::Number});
  c.push_back({"scatter_add_zeros",
               {{{3, 2}}, {{3, 2}, 0, 4, int64}},
               two([](const Tensor& x, const Tensor& i) {
                 return scatter_add_zeros({3, 4}, 1, i, x);
               }),
               Types::Number});
  c.push_back({"one_hot",
               {{{2, 3}, 0, 4, int64}},
               one([](const Tensor& i) { return one_hot(i, 4); }),
               Types::Float,
               false});
}

void add_networks(std::vector<Case>& c) {
  for (int64_t d : {0, 1, -1}) {
    c.push_back({"softmax",
                 {{{3, 5}}},
                 one([d](const Tensor& x) { return softmax(x, d); }),
                 Types::Float,
                 true,
                 4});
    c.push_back({"log_softmax",
                 {{{3, 5}}},
                 one([d](const Tensor& x) { return log_softmax(x, d); }),
                 Types::Float,
                 true,
                 4});
  }
  c.push_back({"layer_norm",
               {{{3, 6}}, {{6}}, {{6}}},
               [](const List& x) {
                 return List{layer_norm(x[0], {6}, x[1], x[2]), layer_norm(x[0], {6})};
               },
               Types::Float,
               true,
               8});
  c.push_back({"layer_norm of two dims",
               {{{2, 3, 4}}, {{3, 4}}, {{3, 4}}},
               [](const List& x) {
                 return List{layer_norm(x[0], {3, 4}, x[1], x[2])};
               },
               Types::Float,
               true,
               8});
  c.push_back({"rms_norm",
               {{{3, 6}}, {{6}}},
               [](const List& x) { return List{rms_norm(x[0], {6}, x[1])}; },
               Types::Float,
               true,
               8});
  for (const char* how : {"mean", "sum", "none"}) {
    CrossEntropyOptions o;
    o.reduction = how;
    c.push_back({std::string("cross_entropy ") + how,
                 {{{4, 5}}, {{4}, 0, 5, int64}},
                 two([o](const Tensor& x, const Tensor& t) { return cross_entropy(x, t, o); }),
                 Types::Float,
                 true,
                 8});
    o.label_smoothing = 0.1;
    o.ignore_index = 2;
    c.push_back({std::string("cross_entropy smoothed ") + how,
                 {{{6, 5}}, {{6}, 0, 5, int64}},
                 two([o](const Tensor& x, const Tensor& t) { return cross_entropy(x, t, o); }),
                 Types::Float,
                 true,
                 8});
    c.push_back({std::string("mse_loss ") + how,
                 {{{4, 5}}, {{4, 5}}},
                 two([how](const Tensor& x, const Tensor& y) { return mse_loss(x, y, how); }),
                 Types::Float,
                 true,
                 8});
  }
  c.push_back({"cross_entropy of images",
               {{{2, 3, 4}}, {{2, 4}, 0, 3, int64}},
               two([](const Tensor& x, const Tensor& t) { return cross_entropy(x, t); }),
               Types::Float,
               true,
               8});
  c.push_back({"nll_loss",
               {{{4, 5}}, {{4}, 0, 5, int64}},
               two([](const Tensor& x, const Tensor& t) { return nll_loss(x, t); }),
               Types::Float,
               true,
               4});
  c.push_back({"dropout", {{{4, 9}}}, one([](const Tensor& x) {
                 Generator g(5);
                 return dropout(x, 0.4, true, g);
               })});
}

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> c;
    add_unary(c);
    add_binary(c);
    add_choice(c);
    add_movement(c);
    add_reductions(c);
    add_products(c);
    add_index(c);
    add_index_cases(c);
    add_networks(c);
    add_elementwise(c);
    add_arrangement(c);
    add_algebra(c);
    return c;
  }();
  return all;
}

}  // namespace ingot::check
