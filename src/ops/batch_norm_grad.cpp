// Batch normalisation in training: one pass for the statistics, one for the result; the backward is
// one pass for two sums and one for the input's gradient. The backward is written with
// differentiable functions of the input, so a second derivative is there when it is asked for.
#include "ingot/autograd.h"
#include "ops/composed.h"
#include "ops/norm.h"

namespace ingot {
namespace {

// The composite's operands are x, then weight and bias, if they are there.
struct Given {
  CompositeArgs a;
  double eps() const { return a.f(0); }
  bool has_weight() const { return a.flag(1); }
  bool has_bias() const { return a.flag(2); }
  DType wide() const { return compute_type(a[0].dtype()); }
};

Tensor forward(const Given& of, const std::vector<Tensor>& in) {
  const int rank = in[0].dim();
  Tensor f = in[0].to(of.wide());
  ChannelStats s = channel_stats(f, of.eps());
  Tensor y = (f - s.mean) * (of.has_weight() ? s.rstd * channels(in[1], rank, of.wide()) : s.rstd);
  if (of.has_bias()) y = y + channels(in.back(), rank, of.wide());
  return y.to(in[0].dtype());
}

std::vector<Tensor> backward(const Given& of, const std::vector<Tensor>& in, const Tensor& grad) {
  const Axes axes = all_but_channels(in[0].dim());
  const double n = static_cast<double>(in[0].numel()) / static_cast<double>(in[0].size(1));
  Tensor f = in[0].to(of.wide()), g = grad.to(of.wide());
  ChannelStats s = channel_stats(f, of.eps());
  Tensor centred = f - s.mean;
  Tensor sum_g = g.sum(axes, true), sum_gx = (g * centred).sum(axes, true) * s.rstd;
  Tensor scale = of.has_weight() ? s.rstd * channels(in[1], in[0].dim(), of.wide()) : s.rstd;
  Tensor dx = (g - sum_g * (1.0 / n) - centred * (s.rstd * sum_gx * (1.0 / n))) * scale;
  std::vector<Tensor> out{dx.to(in[0].dtype())};
  if (of.has_weight()) out.push_back(sum_gx.reshape(in[1].shape()).to(in[1].dtype()));
  if (of.has_bias()) out.push_back(sum_g.reshape(in.back().shape()).to(in.back().dtype()));
  return out;
}

Tensor body(const CompositeArgs& args) {
  // The gradient is asked for after this call, so it keeps the parameters, not a reference.
  const std::vector<int64_t> params(args.params.begin(), args.params.end());
  const DType result = args.result;
  CustomFunction norm(
      [&](FunctionContext& ctx, const std::vector<Tensor>& in) {
        ctx.save_for_backward(in);
        return std::vector<Tensor>{forward({args}, in)};
      },
      [=](FunctionContext& ctx, const std::vector<Tensor>& grads) {
        const std::vector<Tensor>& in = ctx.saved();
        return backward({{in, params, result}}, in, grads[0]);
      },
      "batch_norm");
  return norm(args.in, user_loc(SourceLoc::current()))[0];
}

}  // namespace

// Sums of deviations from one value of each channel: as one pass, and without the cancellation of
// E[x^2] - E[x]^2.
ChannelStats channel_stats(const Tensor& x, double eps) {
  const Axes axes = all_but_channels(x.dim());
  Tensor first = x.detach();
  for (int d = 0; d < x.dim(); ++d)
    if (d != 1) first = first.narrow(d, 0, 1);
  Tensor off = x - first;
  Tensor mean = off.mean(axes, true);
  Tensor var = clamp_min((off * off).mean(axes, true) - mean * mean, 0.0);
  return {mean + first, var, rsqrt(var + eps)};
}

Tensor normalised_batch(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                        const SourceLoc& loc) {
  if (x.numel() == 0) return x * 1.0;
  return composite("batch_norm", {eps, weight.defined(), bias.defined()}, {x, weight, bias},
                   x.shape(), x.dtype(), body, loc);
}

}  // namespace ingot
