// Batch normalisation: checks, running statistics and the evaluation form. The gradient of the
// training form is in ops/batch_norm_grad.cpp.
#include "graph/thread_state.h"
#include "ops/autocast.h"
#include "ops/composed.h"
#include "ops/norm.h"

namespace ingot {

Tensor channels(const Tensor& v, int rank, DType t) {
  Dims s = Dims::filled(rank, 1);
  s[1] = v.numel();
  return v.to(t).reshape(s);
}

Axes all_but_channels(int rank) {
  Dims axes;
  for (int d = 0; d < rank; ++d)
    if (d != 1) axes.push_back(d);
  return axes;
}

namespace {

Node* checked(const Tensor& input, const Tensor& mean, const Tensor& var, const Tensor& weight,
              const Tensor& bias, const char* op, const SourceLoc& loc) {
  NodeRef x = node_of(input, op, loc);
  if (x->rank() < 2)
    fail(ErrorKind::Shape, op, "expects [batch, channels, ...], not " + describe(*x), loc,
         "add a dim: x.unsqueeze(0)");
  if (!is_float(x->dtype))
    fail(ErrorKind::DType, op, "needs a floating type, not " + describe(*x), loc,
         "convert with x.to(float32)");
  const std::pair<const char*, const Tensor*> given[] = {
      {"running_mean", &mean}, {"running_var", &var}, {"weight", &weight}, {"bias", &bias}};
  for (const auto& [name, t] : given)
    if (t->defined() && !(t->dim() == 1 && t->size(0) == x->shape[1]))
      fail(ErrorKind::Shape, op,
           std::string(name) + " must be [" + std::to_string(x->shape[1]) + "] for input " +
               describe(*x) + ", not " + describe(*t),
           loc);
  if (mean.defined() != var.defined())
    fail(ErrorKind::Value, op, "takes running_mean and running_var together, or neither", loc);
  return x;
}

Tensor by_running_statistics(const CompositeArgs& a) {
  const int rank = a[0].dim();
  const DType wide = compute_type(a[0].dtype());
  Tensor scale = rsqrt(channels(a[2], rank, wide) + a.f(0));
  if (a.flag(1)) scale = scale * channels(a[3], rank, wide);
  Tensor y = (a[0].to(wide) - channels(a[1], rank, wide)) * scale;
  if (a.flag(2)) y = y + channels(a.in.back(), rank, wide);
  return y.to(a.result);
}

}  // namespace

// old + momentum * (now - old), in place and outside of any gradient.
void move_towards(const Tensor& running, const Tensor& now, double momentum, const char* op,
                  const SourceLoc& loc) {
  if (this_thread.recomputing) return;
  Tensor old = running.to(now.dtype());
  Tensor next = (old * (1.0 - momentum) + now.detach().reshape(running.shape()) * momentum)
                    .to(running.dtype());
  write_through(running, node_of(next, op, loc), op, loc);
}

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, bool training, double momentum,
                  double eps, SourceLoc place) {
  const char* op = "batch_norm";
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Node* x = checked(input, running_mean, running_var, weight, bias, op, loc);
  const DType t = x->dtype;
  if (!training && running_mean.defined())
    return composite(op, {eps, weight.defined(), bias.defined()},
                     {input, running_mean, running_var, weight, bias}, x->shape, t,
                     by_running_statistics, loc);
  const int64_t c = x->shape[1], n = c ? x->numel() / c : 0;
  if (training && n <= 1 && x->numel() > 0)
    fail(ErrorKind::Value, op, "has one value per channel in training: " + describe(*x), loc,
         "use a larger batch, or evaluation mode");
  Tensor y = normalised_batch(input, weight, bias, eps, loc);
  if (training && running_mean.defined() && x->numel() > 0) {
    const ChannelStats s = channel_stats(input.detach().to(compute_type(t)), eps);
    move_towards(running_mean, s.mean, momentum, op, loc);
    move_towards(running_var, s.var * (static_cast<double>(n) / static_cast<double>(n - 1)),
                 momentum, op, loc);
  }
  return y;
}

}  // namespace ingot
