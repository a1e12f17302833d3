// Batch normalisation in training: one pass for the statistics, one for the result; the backward is
// one pass for two sums and one for the input's gradient. The backward is written with
// differentiable functions of the input, so a second derivative is there when it is asked for.
#include "graph/lift.h"
#include "ingot/autograd.h"
#include "ops/norm.h"

namespace ingot {
namespace {

struct Stats {
  Tensor mean, var, rstd;
};

// Sums of deviations from one value of each channel: as one pass, and without the cancellation of
// E[x^2] - E[x]^2.
Stats stats_of(const Tensor& x, double eps) {
  const Axes axes = all_but_channels(x.dim());
  Tensor first = x.detach();
  for (int d = 0; d < x.dim(); ++d)
    if (d != 1) first = first.narrow(d, 0, 1);
  Tensor off = x - first;
  Tensor mean = off.mean(axes, true);
  Tensor var = clamp_min((off * off).mean(axes, true) - mean * mean, 0.0);
  return {mean + first, var, rsqrt(var + eps)};
}

}  // namespace

NormResult normalised_batch(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                            const SourceLoc& loc) {
  const int rank = x.dim();
  const DType t = x.dtype(), wide = is_half(t) ? DType::Float32 : t;
  if (x.numel() == 0) return {x * 1.0, {}, {}};
  NormResult r;
  auto forward = [&](const Tensor& in, const Tensor& w, const Tensor& b) {
    Tensor f = in.to(wide);
    Stats s = stats_of(f, eps);
    r.mean = s.mean.detach();
    r.var = s.var.detach();
    Tensor y = (f - s.mean) * (w.defined() ? s.rstd * channels(w, rank, wide) : s.rstd);
    if (b.defined()) y = y + channels(b, rank, wide);
    return y.to(t);
  };
  std::vector<Tensor> inputs{x};
  if (weight.defined()) inputs.push_back(weight);
  if (bias.defined()) inputs.push_back(bias);
  const bool has_weight = weight.defined(), has_bias = bias.defined();
  CustomFunction norm(
      [&](FunctionContext& ctx, const std::vector<Tensor>& in) {
        ctx.save_for_backward(in);
        return std::vector<Tensor>{
            forward(in[0], has_weight ? in[1] : Tensor(), has_bias ? in.back() : Tensor())};
      },
      [=](FunctionContext& ctx, const std::vector<Tensor>& grads) {
        const std::vector<Tensor>& in = ctx.saved();
        const Axes axes = all_but_channels(rank);
        const double n = static_cast<double>(in[0].numel()) / static_cast<double>(in[0].size(1));
        Tensor f = in[0].to(wide), g = grads[0].to(wide);
        Stats s = stats_of(f, eps);
        Tensor centred = f - s.mean;
        Tensor sum_g = g.sum(axes, true), sum_gx = (g * centred).sum(axes, true) * s.rstd;
        Tensor scale = has_weight ? s.rstd * channels(in[1], rank, wide) : s.rstd;
        Tensor dx = (g - sum_g * (1.0 / n) - centred * (s.rstd * sum_gx * (1.0 / n))) * scale;
        std::vector<Tensor> out{dx.to(t)};
        if (has_weight) out.push_back(sum_gx.reshape(in[1].shape()).to(in[1].dtype()));
        if (has_bias) out.push_back(sum_g.reshape(in.back().shape()).to(in.back().dtype()));
        return out;
      },
      "batch_norm");
  r.y = norm(inputs, loc)[0];
  return r;
}

}  // namespace ingot
