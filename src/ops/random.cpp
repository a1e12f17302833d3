// Random numbers: each call takes a stretch of its generator's counter when it is recorded, so the
// numbers do not depend on when, where or how it is computed.
#include "ingot/random.h"

#include <algorithm>
#include <cmath>

#include "ops/common.h"

namespace ingot {

namespace {

NodeRef bits(const Dims& shape, Device device, const Generator& g, const char* op,
             const SourceLoc& loc) {
  check_new_shape(shape, op, loc);
  RandomAttrs a;
  a.offset = static_cast<int64_t>(g.take((static_cast<uint64_t>(shape.numel()) + 3) / 4, &a.seed));
  return record(Op::Random, {}, {.attrs = a, .shape = shape, .device = device}, loc);
}

NodeRef uniform(const Dims& shape, DType dtype, Device device, const Generator& g, const char* op,
                const SourceLoc& loc) {
  NodeRef b = bits(shape, device, g, op, loc);
  const DType made = dtype == DType::Float64 ? DType::Float64 : DType::Float32;
  return record(Op::Uniform, {b.get()}, {.dtype = made}, loc);
}

DType floating(const Options& o, const char* op, const SourceLoc& loc) {
  DType t = dtype_or(o, DType::Float32);
  if (!is_float(t))
    fail(ErrorKind::DType, op, "makes floating numbers, not " + std::string(name_of(t)), loc,
         "use randint() for integers");
  return t;
}

}  // namespace

Tensor rand(const Dims& shape, const Options& o, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  DType t = floating(o, "rand", loc);
  Device d = device_or_default(o);
  if (!is_half(t)) return tensor_of(uniform(shape, t, d, g, "rand", loc));
  // As many bits as the type holds below 1, so that rounding never reaches 1.
  NodeRef u = uniform(shape, t, d, g, "rand", loc);
  NodeRef scale = constant(t == DType::Float16 ? 2048.0 : 256.0, DType::Float32, d, loc);
  NodeRef scaled = record2(Op::Mul, u.get(), scale.get(), loc);
  NodeRef whole = record1(Op::Floor, scaled.get(), loc);
  NodeRef r = record2(Op::Div, whole.get(), scale.get(), loc);
  return tensor_of(cast_to(r.get(), t, loc));
}

// Box and Muller's cosine half, one normal from two uniforms: 1 - u is in (0, 1], so the logarithm
// is finite.
Tensor randn(const Dims& shape, const Options& o, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  DType t = floating(o, "randn", loc);
  Device d = device_or_default(o);
  Tensor u = tensor_of(uniform(shape, t, d, g, "randn", loc)),
         v = tensor_of(uniform(shape, t, d, g, "randn", loc));
  return (sqrt(log(1.0 - u) * -2.0) * cos(v * 6.283185307179586)).to(t);
}

Tensor randint(int64_t low, int64_t high, const Dims& shape, const Options& o, const Generator& g,
               SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  if (low >= high || static_cast<uint64_t>(high) - static_cast<uint64_t>(low) > (uint64_t{1} << 32))
    fail(ErrorKind::Value, "randint",
         "needs low < high and at most 2^32 numbers between, not " + std::to_string(low) + " and " +
             std::to_string(high),
         loc);
  check_fits(low, dtype_or(o, DType::Int64), "randint", loc);
  check_fits(high - 1, dtype_or(o, DType::Int64), "randint", loc);
  // The high word of bits * n; past 2^31 numbers the product would leave int64.
  Device d = device_or_default(o);
  Tensor b = tensor_of(bits(shape, d, g, "randint", loc)).to(DType::Int64);
  Tensor u = bitwise_and(b, int64_t{0xffffffff});
  int64_t n = high - low;
  Tensor k = n <= (int64_t{1} << 31) ? bitwise_right_shift(u * n, 32) : remainder(u, n);
  return (low ? k + low : k).to(dtype_or(o, DType::Int64));
}

Tensor bernoulli(const Dims& shape, double p, const Options& o, const Generator& g,
                 SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  if (!(p >= 0 && p <= 1))
    fail(ErrorKind::Value, "bernoulli", "p is a probability, between 0 and 1, not " + text_of(p),
         loc);
  Tensor u = tensor_of(uniform(shape, DType::Float32, device_or_default(o), g, "bernoulli", loc));
  return (u < p).to(dtype_or(o, DType::Float32));
}

Tensor bernoulli(const Tensor& p, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NodeRef n = node_of(p, "bernoulli", loc);
  if (!is_float(n->dtype))
    fail(ErrorKind::DType, "bernoulli", "probabilities must be floating, not " + describe(p), loc,
         "convert with .to(float32)");
  Tensor u = tensor_of(uniform(n->shape, n->dtype, n->device, g, "bernoulli", loc));
  const Tensor given = p.detach(), sound = logical_and(given >= 0.0, given <= 1.0);
  return (u < checked(given, sound, Check::Bernoulli, loc)).to(n->dtype);
}

Tensor rand_like(const Tensor& x, const Options& o, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "rand_like", loc);
  return rand(n->shape, {dtype_or(o, n->dtype), o.device ? *o.device : n->device}, g, loc);
}
Tensor randn_like(const Tensor& x, const Options& o, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "randn_like", loc);
  return randn(n->shape, {dtype_or(o, n->dtype), o.device ? *o.device : n->device}, g, loc);
}

}  // namespace ingot
