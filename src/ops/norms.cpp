// Group, instance and local response normalisation; dropout of channels.
#include <cmath>

#include "ops/autocast.h"
#include "ops/composed.h"
#include "ops/norm.h"
#include "ops/windows.h"

namespace ingot {
namespace {

Node* floating(const Tensor& x, int least, const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc);
  if (n->rank() < least)
    fail(ErrorKind::Shape, op, "expects [batch, channels, ...], not " + describe(*n), loc,
         "add a dim: x.unsqueeze(0)");
  if (!is_float(n->dtype))
    fail(ErrorKind::DType, op, "needs a floating type, not " + describe(*n), loc,
         "convert with x.to(float32)");
  return n;
}

void check_channels(const Tensor& p, const char* name, const Node* x, const char* op,
                    const SourceLoc& loc) {
  if (p.defined() && !(p.dim() == 1 && p.size(0) == x->shape[1]))
    fail(ErrorKind::Shape, op,
         std::string(name) + " must be [" + std::to_string(x->shape[1]) + "] for input " +
             describe(*x) + ", not " + describe(p),
         loc);
}

Axes behind_channels(int rank) {
  Dims axes;
  for (int d = 2; d < rank; ++d) axes.push_back(d);
  return axes;
}

// (x - mean) / sqrt(var + eps) over the axes.
Tensor centred_scaled(const Tensor& f, const Axes& axes, double eps) {
  Tensor centred = f - f.mean(axes, true);
  return centred * rsqrt((centred * centred).mean(axes, true) + eps);
}

// A composite's operands are x, then weight and bias, of which the flags say whether they are
// there.
Tensor scaled(Tensor y, const CompositeArgs& a, size_t flags) {
  const int rank = a[0].dim();
  if (a.flag(flags)) y = y * channels(a[1], rank, y.dtype());
  if (a.flag(flags + 1)) y = y + channels(a.in.back(), rank, y.dtype());
  return y;
}

Tensor channel_dropout(const Tensor& input, int dims, double p, bool training,
                       const Generator& generator, const char* op, const SourceLoc& loc) {
  LocScope scope(loc);
  Node* x = floating(input, 1, op, loc);
  if (x->rank() != dims + 1 && x->rank() != dims + 2)
    fail(ErrorKind::Shape, op,
         "expects [batch, channels and " + std::to_string(dims) + (dims == 1 ? " dim" : " dims") +
             "] or the same without batch, not " + describe(*x),
         loc);
  if (!(p >= 0 && p <= 1))
    fail(ErrorKind::Value, op, "p is a probability, between 0 and 1, not " + text_of(p), loc);
  if (!training || p == 0) return input;
  if (p == 1) return input * 0.0;
  Dims shape = x->shape;
  for (int d = x->rank() - dims; d < x->rank(); ++d) shape[d] = 1;
  Tensor u = rand(shape, {DType::Float32, x->device}, generator, loc);
  return where(u >= p, input * (1.0 / (1.0 - p)), 0.0);
}

}  // namespace

Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps, SourceLoc place) {
  const char* op = "group_norm";
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Node* x = floating(input, 2, op, loc);
  if (num_groups < 1 || x->shape[1] % num_groups)
    fail(ErrorKind::Value, op,
         std::to_string(num_groups) + " groups do not divide the channels of " + describe(*x), loc);
  check_channels(weight, "weight", x, op, loc);
  check_channels(bias, "bias", x, op, loc);
  if (x->numel() == 0) return input * 1.0;
  return composite(
      op, {num_groups, eps, weight.defined(), bias.defined()}, {input, weight, bias}, x->shape,
      raised(x->dtype),
      [](const CompositeArgs& a) {
        const Dims shape = a[0].shape();
        Tensor f = a[0].to(compute_type(a[0].dtype())).reshape({shape[0], a.i(0), -1});
        return scaled(centred_scaled(f, {2}, a.f(1)).reshape(shape), a, 2).to(a.result);
      },
      loc);
}

Tensor instance_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                     const Tensor& weight, const Tensor& bias, bool use_input_stats,
                     double momentum, double eps, SourceLoc place) {
  const char* op = "instance_norm";
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Node* x = floating(input, 3, op, loc);
  check_channels(weight, "weight", x, op, loc);
  check_channels(bias, "bias", x, op, loc);
  check_channels(running_mean, "running_mean", x, op, loc);
  check_channels(running_var, "running_var", x, op, loc);
  if (running_mean.defined() != running_var.defined())
    fail(ErrorKind::Value, op, "takes running_mean and running_var together, or neither", loc);
  if (!use_input_stats) {
    if (!running_mean.defined())
      fail(ErrorKind::Value, op,
           "without the input's statistics it needs running_mean and running_var", loc);
    return batch_norm(input, running_mean, running_var, weight, bias, false, momentum, eps, loc);
  }
  const int64_t n = x->shape[0] && x->shape[1] ? x->numel() / (x->shape[0] * x->shape[1]) : 0;
  if (x->numel() == 0) return input * 1.0;
  if (n <= 1)
    fail(ErrorKind::Value, op, "has one value per sample and channel: " + describe(*x), loc,
         "use a larger input");
  if (running_mean.defined()) {
    const Axes axes = behind_channels(x->rank());
    Tensor d = input.to(compute_type(x->dtype)).detach();
    move_towards(running_mean, d.mean(axes).mean(0), momentum, op, loc);
    move_towards(running_var, var(d, axes, 1).mean(0), momentum, op, loc);
  }
  return composite(
      op, {eps, weight.defined(), bias.defined()}, {input, weight, bias}, x->shape,
      raised(x->dtype),
      [](const CompositeArgs& a) {
        Tensor f = a[0].to(compute_type(a[0].dtype()));
        return scaled(centred_scaled(f, behind_channels(f.dim()), a.f(0)), a, 1).to(a.result);
      },
      loc);
}

Tensor local_response_norm(const Tensor& input, int64_t size, double alpha, double beta, double k,
                           SourceLoc place) {
  const char* op = "local_response_norm";
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Node* x = floating(input, 3, op, loc);
  if (size < 1)
    fail(ErrorKind::Value, op, "size is " + std::to_string(size), loc, "use 1 or more channels");
  if (x->numel() == 0) return input * 1.0;
  return composite(
      op, {size, alpha, beta, k}, {input}, x->shape, raised(x->dtype),
      [](const CompositeArgs& a) {
        const int64_t width = a.i(0);
        Tensor f = a[0].to(compute_type(a[0].dtype()));
        Windows w;  // of channels, which come last for this
        w.kernel = {width};
        w.stride = w.dilation = {1};
        w.front = {width / 2};
        w.behind = {(width - 1) / 2};
        Tensor view = window_view((f * f).transpose(1, -1), w, user_loc(SourceLoc::current()));
        Tensor mean = (view.sum(-1) * (1.0 / static_cast<double>(width))).transpose(1, -1);
        return (f / pow(mean * a.f(1) + a.f(3), a.f(2))).to(a.result);
      },
      loc);
}

#define INGOT_DROPOUT(N)                                                                         \
  Tensor dropout##N##d(const Tensor& input, double p, bool training, const Generator& generator, \
                       SourceLoc loc) {                                                          \
    return channel_dropout(input, N, p, training, generator, "dropout" #N "d", user_loc(loc));   \
  }
INGOT_DROPOUT(1)
INGOT_DROPOUT(2)
INGOT_DROPOUT(3)
#undef INGOT_DROPOUT

Tensor alpha_dropout(const Tensor& input, double p, bool training, const Generator& generator,
                     SourceLoc place) {
  const char* op = "alpha_dropout";
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Node* x = floating(input, 0, op, loc);
  if (!(p >= 0 && p <= 1))
    fail(ErrorKind::Value, op, "p is a probability, between 0 and 1, not " + text_of(p), loc);
  if (!training || p == 0) return input;
  if (p == 1) return input * 0.0;
  // SELU's value far below zero takes the place of what is dropped; a and b bring mean and variance
  // back.
  const double low = -1.7580993408473766, a = 1.0 / std::sqrt((1 - p) * (1 + p * low * low)),
               b = -a * low * p;
  Tensor u = rand(x->shape, {DType::Float32, x->device}, generator, loc);
  return where(u >= p, input * a + b, low * a + b);
}

}  // namespace ingot
