// Activations, composed from primitives so that they fuse and differentiate by composition. Where a
// branch would make a NaN of a gradient (0 * inf), the other branch's argument is replaced before
// the function is applied.
#include "ingot/activation.h"

#include <limits>

#include "ingot/random.h"
#include "ops/composed.h"

namespace ingot {
namespace {

// No gradient at the bounds, unlike clamp.
Tensor between(const Tensor& f, double lo, double hi) {
  return where(f <= lo, lo, where(f >= hi, hi, f));
}

Tensor softplus_of(const Tensor& f) {
  Tensor straight = f > 20.0;
  return where(straight, f, log1p(exp(where(straight, 0.0, f))));
}

// alpha * (exp(f / scale) - 1) below 0, f above.
Tensor elu_of(const Tensor& f, double alpha, double scale) {
  Tensor up = f > 0.0, below = where(up, 0.0, f);
  return where(up, f, expm1(scale == 1 ? below : below / scale) * alpha);
}

}  // namespace

Tensor hardtanh(const Tensor& x, double min_val, double max_val, SourceLoc loc) {
  if (!(min_val <= max_val))
    fail(ErrorKind::Value, "hardtanh",
         "min_val " + text_of(min_val) + " is above max_val " + text_of(max_val), user_loc(loc));
  return in_wide(x, "hardtanh", loc, [&](const Tensor& f) { return between(f, min_val, max_val); });
}
Tensor relu6(const Tensor& x, SourceLoc loc) {
  return in_wide(x, "relu6", loc, [](const Tensor& f) { return between(f, 0, 6); });
}

Tensor prelu(const Tensor& x, const Tensor& weight, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = floating_node(x, "prelu", loc), w = floating_node(weight, "prelu", loc);
  int64_t channels = n->rank() >= 2 ? n->shape[1] : 1;
  if (w->rank() > 1 || (w->numel() != 1 && w->numel() != channels))
    fail(ErrorKind::Shape, "prelu",
         "the weight must have one element or " + std::to_string(channels) +
             ", the channels (dim 1) of " + describe(x) + ", not " + describe(weight),
         loc);
  Dims line = Dims::filled(w->numel() == 1 ? 0 : n->rank(), 1);
  if (w->numel() != 1) line[1] = channels;
  return where(x > 0.0, x, x * weight.reshape(line));
}

Tensor rrelu(const Tensor& x, double lower, double upper, bool training, const Generator& generator,
             SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = floating_node(x, "rrelu", loc);
  if (!(lower <= upper))
    fail(ErrorKind::Value, "rrelu", "lower " + text_of(lower) + " is above upper " + text_of(upper),
         loc);
  if (!training) return leaky_relu(x, (lower + upper) / 2);
  DType w = compute_type(n->dtype);
  Tensor f = x.to(w), slope = rand(n->shape, {w, n->device}, generator) * (upper - lower) + lower;
  return where(f > 0.0, f, f * slope).to(n->dtype);
}

Tensor elu(const Tensor& x, double alpha, SourceLoc loc) {
  return in_wide(x, "elu", loc, [&](const Tensor& f) { return elu_of(f, alpha, 1); });
}
Tensor selu(const Tensor& x, SourceLoc loc) {
  return in_wide(x, "selu", loc, [](const Tensor& f) {
    return elu_of(f, 1.6732632423543772, 1) * 1.0507009873554805;
  });
}
Tensor celu(const Tensor& x, double alpha, SourceLoc loc) {
  if (alpha == 0) fail(ErrorKind::Value, "celu", "alpha cannot be 0", user_loc(loc));
  return in_wide(x, "celu", loc, [&](const Tensor& f) { return elu_of(f, alpha, alpha); });
}
Tensor mish(const Tensor& x, SourceLoc loc) {
  return in_wide(x, "mish", loc, [](const Tensor& f) { return f * tanh(softplus_of(f)); });
}
Tensor softsign(const Tensor& x, SourceLoc loc) {
  return in_wide(x, "softsign", loc, [](const Tensor& f) { return f / (abs(f) + 1.0); });
}
Tensor hardswish(const Tensor& x, SourceLoc loc) {
  return in_wide(x, "hardswish", loc,
                 [](const Tensor& f) { return f * clamp(f + 3.0, 0.0, 6.0) / 6.0; });
}
Tensor hardsigmoid(const Tensor& x, SourceLoc loc) {
  return in_wide(x, "hardsigmoid", loc,
                 [](const Tensor& f) { return between(f + 3.0, 0, 6) / 6.0; });
}
Tensor logsigmoid(const Tensor& x, SourceLoc loc) {
  return in_wide(x, "logsigmoid", loc,
                 [](const Tensor& f) { return minimum(f, 0.0) - log1p(exp(-abs(f))); });
}
Tensor tanhshrink(const Tensor& x, SourceLoc loc) {
  return in_wide(x, "tanhshrink", loc, [](const Tensor& f) { return f - tanh(f); });
}
Tensor hardshrink(const Tensor& x, double lambd, SourceLoc loc) {
  return in_wide(x, "hardshrink", loc,
                 [&](const Tensor& f) { return where((f >= -lambd) & (f <= lambd), 0.0, f); });
}
Tensor softshrink(const Tensor& x, double lambd, SourceLoc loc) {
  if (!(lambd >= 0))
    fail(ErrorKind::Value, "softshrink", "lambd cannot be negative: " + text_of(lambd),
         user_loc(loc));
  // f * 0 keeps a NaN.
  return in_wide(x, "softshrink", loc, [&](const Tensor& f) {
    return where(f > lambd, f - lambd, where(f < -lambd, f + lambd, f.detach() * 0.0));
  });
}
Tensor threshold(const Tensor& x, double threshold, double value, SourceLoc loc) {
  return in_wide(x, "threshold", loc,
                 [&](const Tensor& f) { return where(f <= threshold, value, f); });
}

// ---- Gates

namespace {

template <class F>
Tensor gated(const Tensor& x, int64_t dim, const char* op, const SourceLoc& place, F f) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = floating_node(x, op, loc);
  if (n->rank() == 0)
    fail(ErrorKind::Dim, op, "a 0-d tensor cannot be halved: " + describe(x), loc);
  int d = wrap_dim(dim, n, op, loc);
  int64_t half = n->shape[d] / 2;
  if (n->shape[d] % 2)
    fail(ErrorKind::Shape, op,
         "dim " + std::to_string(d) + " of " + describe(x) + " has " + std::to_string(n->shape[d]) +
             " elements, which is no even number",
         loc);
  DType w = compute_type(n->dtype);
  return f(x.narrow(d, 0, half).to(w), x.narrow(d, half, half).to(w)).to(n->dtype);
}

}  // namespace

Tensor glu(const Tensor& x, int64_t dim, SourceLoc loc) {
  return gated(x, dim, "glu", loc, [](const Tensor& a, const Tensor& b) { return a * sigmoid(b); });
}
Tensor swiglu(const Tensor& x, int64_t dim, SourceLoc loc) {
  return gated(x, dim, "swiglu", loc,
               [](const Tensor& a, const Tensor& b) { return a * sigmoid(a) * b; });
}
Tensor swiglu(const Tensor& gate, const Tensor& up, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  DType t = promote(floating_node(gate, "swiglu", loc)->dtype,
                    floating_node(up, "swiglu", loc)->dtype),
        w = compute_type(t);
  Tensor a = gate.to(w);
  return (a * sigmoid(a) * up.to(w)).to(t);
}

Tensor softmin(const Tensor& x, int64_t dim, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  floating_node(x, "softmin", loc);
  return softmax(-x, dim, loc);
}

Tensor gumbel_softmax(const Tensor& x, double tau, bool hard, int64_t dim,
                      const Generator& generator, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = floating_node(x, "gumbel_softmax", loc);
  if (!(tau > 0))
    fail(ErrorKind::Value, "gumbel_softmax", "tau must be positive, not " + text_of(tau), loc);
  int d = wrap_dim(dim, n, "gumbel_softmax", loc);
  DType w = compute_type(n->dtype);
  // 1 - u is in (0, 1]: the inner logarithm is finite, and the outer one of at least the smallest
  // number.
  Tensor u = rand(n->shape, {w, n->device}, generator);
  Tensor noise =
      -log(clamp_min(-log(1.0 - u), static_cast<double>(std::numeric_limits<float>::min())));
  Tensor soft = softmax((x.to(w) + noise) / tau, d).to(n->dtype);
  if (!hard) return soft;
  Tensor place_of = argmax(soft.detach(), d, true);
  Tensor index = tensor_of(iota_along(n->rank() ? n->shape[d] : 1, 0, 1, n->device, loc));
  Dims line = Dims::filled(n->rank(), 1);
  if (n->rank()) line[d] = n->shape[d];
  Tensor one = (place_of == index.reshape(line)).to(n->dtype);
  return one - soft.detach() + soft;
}

}  // namespace ingot
