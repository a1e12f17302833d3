// Initial values, after torch.nn.init. Each is computed immediately, so that the first training
// step has the same plan as all others.
#include <cmath>

#include "ingot/autograd.h"
#include "ingot/nn.h"
#include "ops/common.h"

namespace ingot::nn::init {
namespace {

Options like(const Tensor& t, const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(t, op, loc);
  if (!is_float(n->dtype))
    fail(ErrorKind::DType, op, "needs a floating type, not " + describe(t), loc,
         "make the tensor with float32");
  return {n->dtype, n->device};
}

Tensor write(Tensor t, const Tensor& value, const SourceLoc& loc) {
  t.copy_(value, loc);
  t.eval_(loc);
  return t;
}

struct Fans {
  double in, out;
};

// Rows are outputs, columns inputs; further dims are the kernel's extent.
Fans fans(const Tensor& t, const char* op, const SourceLoc& loc) {
  const Dims shape = node_of(t, op, loc)->shape;
  if (shape.size() < 2)
    fail(ErrorKind::Shape, op, "fan-in and fan-out need at least two dims, not " + describe(t), loc,
         "use uniform_() or normal_() for vectors");
  double extent = 1;
  for (int i = 2; i < shape.size(); ++i) extent *= static_cast<double>(shape[i]);
  return {static_cast<double>(shape[1]) * extent, static_cast<double>(shape[0]) * extent};
}

double kaiming_std(const Tensor& t, const KaimingOptions& o, const char* op, const SourceLoc& loc) {
  if (o.mode != "fan_in" && o.mode != "fan_out")
    fail(ErrorKind::Value, op, "mode is \"" + std::string(o.mode) + "\"", loc,
         "use \"fan_in\" or \"fan_out\"");
  const Fans f = fans(t, op, loc);
  return calculate_gain(o.nonlinearity, o.a, loc) /
         std::sqrt(std::max(1.0, o.mode == "fan_in" ? f.in : f.out));
}

}  // namespace

Tensor uniform_(Tensor t, double low, double high, const Generator& generator, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  return write(t, rand(t.shape(loc), like(t, "uniform_", loc), generator) * (high - low) + low,
               loc);
}

Tensor normal_(Tensor t, double mean, double std, const Generator& generator, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  return write(t, randn(t.shape(loc), like(t, "normal_", loc), generator) * std + mean, loc);
}

Tensor constant_(Tensor t, double value, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  like(t, "constant_", loc);
  t.fill_(value, loc);
  t.eval_(loc);
  return t;
}

Tensor zeros_(Tensor t, SourceLoc loc) { return constant_(std::move(t), 0, loc); }
Tensor ones_(Tensor t, SourceLoc loc) { return constant_(std::move(t), 1, loc); }

Tensor xavier_uniform_(Tensor t, double gain, const Generator& generator, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  const Fans f = fans(t, "xavier_uniform_", loc);
  const double bound = gain * std::sqrt(6 / std::max(1.0, f.in + f.out));
  return uniform_(std::move(t), -bound, bound, generator, loc);
}

Tensor xavier_normal_(Tensor t, double gain, const Generator& generator, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  const Fans f = fans(t, "xavier_normal_", loc);
  return normal_(std::move(t), 0, gain * std::sqrt(2 / std::max(1.0, f.in + f.out)), generator,
                 loc);
}

Tensor kaiming_uniform_(Tensor t, const KaimingOptions& options, const Generator& generator,
                        SourceLoc where) {
  SourceLoc loc = user_loc(where);
  const double bound = std::sqrt(3.0) * kaiming_std(t, options, "kaiming_uniform_", loc);
  return uniform_(std::move(t), -bound, bound, generator, loc);
}

Tensor kaiming_normal_(Tensor t, const KaimingOptions& options, const Generator& generator,
                       SourceLoc where) {
  SourceLoc loc = user_loc(where);
  const double std = kaiming_std(t, options, "kaiming_normal_", loc);
  return normal_(std::move(t), 0, std, generator, loc);
}

double calculate_gain(std::string_view nonlinearity, std::optional<double> param, SourceLoc loc) {
  if (nonlinearity == "linear" || nonlinearity == "sigmoid") return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "selu") return 0.75;
  if (nonlinearity == "leaky_relu") {
    const double slope = param.value_or(0.01);
    return std::sqrt(2 / (1 + slope * slope));
  }
  fail(ErrorKind::Value, "calculate_gain",
       "no gain is known for \"" + std::string(nonlinearity) + "\"", user_loc(loc),
       "use linear, sigmoid, tanh, relu, leaky_relu or selu");
}

}  // namespace ingot::nn::init
