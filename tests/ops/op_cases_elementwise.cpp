// Cases of elementwise.h and activation.h. Ranges keep clear of kinks, poles and the edges of
// domains.
#include <cmath>
#include <functional>

#include "ops/op_cases.h"

namespace ingot::check {
namespace {

using List = std::vector<Tensor>;

Function one(std::function<Tensor(const Tensor&)> f) {
  return [f](const List& x) { return List{f(x[0])}; };
}
Function two(std::function<Tensor(const Tensor&, const Tensor&)> f) {
  return [f](const List& x) { return List{f(x[0], x[1])}; };
}

void add_one_operand(std::vector<Case>& c) {
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&, SourceLoc);
    double lo, hi;
    Types types;
    double slack;
  };
  const Row rows[] = {
      {"asinh", asinh, -2, 2, Types::Float, 1},
      {"acosh", acosh, 1.2, 3, Types::Float, 1},
      {"atanh", atanh, -0.8, 0.8, Types::Float, 1},
      {"erfinv", erfinv, -0.9, 0.9, Types::Float, 1},
      {"lgamma", lgamma, 0.3, 4, Types::Float, 1},
      {"digamma", digamma, 0.4, 4, Types::Float, 1},
      {"frac", frac, 0.1, 0.9, Types::Float, 1},
      {"sinc", sinc, 0.1, 2, Types::Float, 2},
      {"signbit", signbit, -2, 2, Types::Any, 1},
      {"isposinf", isposinf, -2, 2, Types::Any, 1},
      {"isneginf", isneginf, -2, 2, Types::Any, 1},
      {"deg2rad", deg2rad, -90, 90, Types::Float, 1},
      {"rad2deg", rad2deg, -2, 2, Types::Float, 1},
      {"relu6", relu6, 0.1, 5.9, Types::Float, 1},
      {"selu", selu, -2, -0.1, Types::Float, 2},
      {"mish", mish, -2, 2, Types::Float, 4},
      {"softsign", softsign, 0.1, 2, Types::Float, 1},
      {"hardswish", hardswish, -2.9, 2.9, Types::Float, 2},
      {"hardsigmoid", hardsigmoid, -2.9, 2.9, Types::Float, 1},
      {"logsigmoid", logsigmoid, 0.1, 3, Types::Float, 2},
      {"tanhshrink", tanhshrink, 0.5, 2, Types::Float, 4},
  };
  for (const Row& r : rows) {
    auto f = [fn = r.f](const Tensor& x) { return fn(x, SourceLoc::current()); };
    for (const Dims& shape : {Dims{3, 5}, Dims{}, Dims{0, 2}, Dims{1, 1, 7}})
      c.push_back(
          {r.name + to_string(shape), {{shape, r.lo, r.hi}}, one(f), r.types, true, r.slack});
    // A view that is read in another order, reversed and strided.
    c.push_back({std::string(r.name) + " of a view",
                 {{{4, 6}, r.lo, r.hi}},
                 one([f](const Tensor& x) {
                   return f(x.t()[{Slice{{}, {}, -2}, Slice{1, 3}}]);
                 }),
                 Types::Float,
                 true,
                 r.slack});
  }
  c.push_back({"relu6 outside", {{{3, 5}, 6.1, 9}}, one([](const Tensor& x) {
                 return relu6(x) + relu6(-x);
               })});
  c.push_back({"hardswish outside",
               {{{3, 5}, 3.1, 9}},
               one([](const Tensor& x) {
                 return hardswish(x) + hardswish(-x) + hardsigmoid(x) + hardsigmoid(-x);
               }),
               Types::Float,
               true,
               2});
  c.push_back({"polygamma 1",
               {{{3, 5}, 0.4, 4}},
               one([](const Tensor& x) { return polygamma(1, x); }),
               Types::Float,
               true,
               2});
  c.push_back({"polygamma 3",
               {{{3, 5}, 1, 4}},
               one([](const Tensor& x) { return polygamma(3, x); }),
               Types::Float,
               true,
               2});
  c.push_back({"logit",
               {{{3, 5}, 0.1, 0.9}},
               one([](const Tensor& x) { return logit(x) + logit(x, 0.2); }),
               Types::Float,
               true,
               4});
  c.push_back({"round decimals", {{{3, 5}, 0.06, 0.14}}, one([](const Tensor& x) {
                 return round(x, 1) + round(x * 1000.0, -3);
               })});
  c.push_back({"nan_to_num",
               {{{3, 5}, 0.5, 2}},
               one([](const Tensor& x) {
                 return nan_to_num(cat({x, x / 0.0, -x / 0.0, (x - x) / 0.0}, 1), 0.25, 3.0, -4.0);
               }),
               Types::Float,
               false});
  // Constants that compare equal, or not at all, are still distinct.
  c.push_back({"NaN and zeros as numbers",
               {{{3, 5}}},
               one([](const Tensor& x) {
                 return cat({where(x < 0.0, NAN, x), 1.0 / where(x < 0.0, -0.0, 0.0),
                             where(x > 0.5, NAN, 0.5)},
                            1);
               }),
               Types::Float,
               false});
  c.push_back({"nan_to_num defaults",
               {{{3, 5}, 0.5, 2}},
               one([](const Tensor& x) {
                 return nan_to_num(cat({x, x / 0.0, (x - x) / 0.0}, 1));
               }),
               Types::Float,
               false});
}

void add_two_operands(std::vector<Case>& c) {
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&, const Operand&, SourceLoc);
    double lo, hi;
    Types types;
    double slack;
  };
  const Row rows[] = {
      {"hypot", hypot, 0.5, 2, Types::Float, 1},
      {"copysign", copysign, 0.5, 2, Types::Float, 1},
      {"fmax", fmax, -2, 2, Types::Number, 1},
      {"fmin", fmin, -2, 2, Types::Number, 1},
      {"logaddexp", logaddexp, -2, 2, Types::Float, 2},
      {"logaddexp2", logaddexp2, -2, 2, Types::Float, 2},
      {"xlogy", xlogy, 0.3, 2, Types::Float, 1},
      {"heaviside", heaviside, 0.3, 2, Types::Number, 1},
      {"float_power", float_power, 0.5, 2, Types::Number, 1},
      {"ldexp", ldexp, 0.3, 2, Types::Float, 1},
      {"true_divide", true_divide, 0.5, 2, Types::Float, 1},
  };
  const std::vector<std::pair<Dims, Dims>> pairs = {
      {{3, 4}, {3, 4}}, {{3, 4}, {4}}, {{3, 1}, {1, 4}}, {{}, {5}},
      {{0, 3}, {1, 3}}, {{}, {}},      {{37}, {1}}};
  for (const Row& r : rows) {
    auto f = [fn = r.f](const Tensor& a, const Tensor& b) {
      return fn(a, b, SourceLoc::current());
    };
    for (const auto& [sa, sb] : pairs)
      c.push_back({std::string(r.name) + to_string(sa) + to_string(sb),
                   {{sa, r.lo, r.hi}, {sb, r.lo, r.hi}},
                   two(f),
                   r.types,
                   true,
                   r.slack});
  }
  c.push_back({"hypot negative",
               {{{3, 4}, -2, -0.5}, {{3, 4}, 0.5, 2}},
               two([](const Tensor& a, const Tensor& b) {
                 return hypot(a, b) + copysign(a, b) + copysign(b, a);
               })});
  c.push_back({"add alpha",
               {{{3, 4}}, {{4}}},
               two([](const Tensor& a, const Tensor& b) {
                 return add(a, b, 2) + sub(a, b, 3) + rsub(a, b, 2);
               }),
               Types::Number});
  c.push_back({"div trunc",
               {{{3, 4}, 1.1, 1.9}, {{4}, 0.6, 0.9}},
               two([](const Tensor& a, const Tensor& b) { return div(a, b, "trunc"); }),
               Types::Number});
  c.push_back({"div floor",
               {{{3, 4}, 1.1, 1.9}, {{4}, 0.6, 0.9}},
               two([](const Tensor& a, const Tensor& b) { return div(-a, b, "floor"); }),
               Types::Float});
  c.push_back(
      {"isclose",
       {{{3, 4}, 0.5, 2}},
       one([](const Tensor& x) { return isclose(x, x * 1.000001) | isclose(x, x + 1.0, 0, 0.5); }),
       Types::Float,
       false});
  c.push_back(
      {"lerp",
       {{{3, 4}}, {{3, 4}}, {{4}, 0.1, 0.9}},
       [](const List& x) {
         return List{lerp(x[0], x[1], x[2]), lerp(x[0], x[1], 0.25), lerp(x[0], x[1], 0.75)};
       },
       Types::Float,
       true,
       2});
  c.push_back({"addcmul",
               {{{3, 4}}, {{3, 1}}, {{4}}},
               [](const List& x) {
                 return List{addcmul(x[0], x[1], x[2]), addcmul(x[0], x[1], x[2], 2)};
               },
               Types::Number});
  c.push_back({"addcdiv",
               {{{3, 4}}, {{3, 1}}, {{4}, 0.5, 2}},
               [](const List& x) {
                 return List{addcdiv(x[0], x[1], x[2]), addcdiv(x[0], x[1], x[2], 0.5)};
               },
               Types::Float,
               true,
               2});
}

void add_activations(std::vector<Case>& c) {
  for (double sign : {1.0, -1.0}) {
    auto push = [&](const char* name, std::function<Tensor(const Tensor&)> f, double slack = 2) {
      c.push_back({std::string(name) + (sign > 0 ? " positive" : " negative"),
                   {{{3, 5}, 0.1, 2}},
                   one([f, sign](const Tensor& x) { return f(x * sign); }),
                   Types::Float,
                   true,
                   slack});
    };
    push("elu", [](const Tensor& x) { return elu(x, 0.7); });
    push("celu", [](const Tensor& x) { return celu(x, 1.3); });
    push("selu", [](const Tensor& x) { return selu(x); });
    push("logsigmoid", [](const Tensor& x) { return logsigmoid(x); });
    push("softsign", [](const Tensor& x) { return softsign(x); });
    push("hardtanh", [](const Tensor& x) { return hardtanh(x, -0.97, 1.03); });
    push("hardshrink", [](const Tensor& x) { return hardshrink(x, 0.97); });
    push("softshrink", [](const Tensor& x) { return softshrink(x, 0.97); });
    push("threshold", [](const Tensor& x) { return threshold(x, 0.97, 0.5); });
    push("softplus", [](const Tensor& x) { return softplus(x, 2, 2.1); });
    push("rrelu", [](const Tensor& x) { return rrelu(x, 0.1, 0.3); });
  }
  c.push_back({"prelu", {{{2, 3, 4}, -2, -0.1}, {{3}}}, two([](const Tensor& x, const Tensor& w) {
                 return prelu(x, w) + prelu(-x, w);
               })});
  c.push_back({"prelu of one", {{{5}, -2, -0.1}, {{1}}}, two([](const Tensor& x, const Tensor& w) {
                 return prelu(x, w);
               })});
  c.push_back({"rrelu training",
               {{{3, 5}, -2, -0.1}},
               one([](const Tensor& x) { return rrelu(x, 0.1, 0.5, true, Generator(3)); }),
               Types::Float,
               true,
               2});
  c.push_back(
      {"glu", {{{3, 6}}}, one([](const Tensor& x) { return glu(x); }), Types::Float, true, 2});
  c.push_back({"glu of dim 0",
               {{{4, 3}}},
               one([](const Tensor& x) { return glu(x, 0); }),
               Types::Float,
               true,
               2});
  c.push_back({"swiglu",
               {{{3, 6}}},
               one([](const Tensor& x) { return swiglu(x); }),
               Types::Float,
               true,
               4});
  c.push_back({"swiglu of two",
               {{{3, 6}}, {{3, 6}}},
               two([](const Tensor& a, const Tensor& b) { return swiglu(a, b); }),
               Types::Float,
               true,
               4});
  c.push_back({"softmin",
               {{{3, 5}}},
               one([](const Tensor& x) { return softmin(x, 1); }),
               Types::Float,
               true,
               4});
  c.push_back({"gumbel_softmax",
               {{{3, 5}}},
               one([](const Tensor& x) { return gumbel_softmax(x, 0.7, false, 1, Generator(4)); }),
               Types::Float,
               true,
               8});
}

}  // namespace

void add_elementwise(std::vector<Case>& c) {
  add_one_operand(c);
  add_two_operands(c);
  add_activations(c);
}

}  // namespace ingot::check
