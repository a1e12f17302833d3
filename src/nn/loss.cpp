// Losses as modules, and the activations with parameters.
#include "ingot/nn/loss.h"

#include "ingot/nn/activation.h"
#include "nn/layer_common.h"

namespace ingot::nn {
namespace {

Tensor reduced(const Tensor& each, const std::string& reduction) {
  if (reduction == "mean") return each.mean();
  if (reduction == "sum") return each.sum();
  if (reduction == "batchmean") return each.sum() / static_cast<double>(each.size(0));
  if (reduction != "none")
    fail(ErrorKind::Value, "loss", "reduction is \"" + reduction + "\"", user_loc(SourceLoc::current()),
         "use \"mean\", \"sum\" or \"none\"");
  return each;
}

}  // namespace

Tensor CrossEntropyLoss::forward(Tensor input, Tensor target) {
  return cross_entropy(
      input, target,
      {.ignore_index = o_.ignore_index, .reduction = o_.reduction, .label_smoothing = o_.label_smoothing});
}
Tensor NLLLoss::forward(Tensor input, Tensor target) {
  return nll_loss(input, target, {.ignore_index = o_.ignore_index, .reduction = o_.reduction});
}
Tensor MSELoss::forward(Tensor input, Tensor target) { return mse_loss(input, target, o_.reduction); }
Tensor L1Loss::forward(Tensor input, Tensor target) { return reduced(abs(input - target), o_.reduction); }

Tensor BCELoss::forward(Tensor input, Tensor target) {
  const Tensor yes = clamp_min(log(input), -100.0), no = clamp_min(log1p(-input), -100.0);
  return reduced(-(target * yes + (1.0 - target) * no), o_.reduction);
}

Tensor BCEWithLogitsLoss::forward(Tensor x, Tensor target) {
  // -t log s(x) - (1 - t) log(1 - s(x)), with log s(x) = -softplus(-x) = min(x, 0) - log1p(exp(-|x|)).
  const Tensor tail = log1p(exp(-abs(x)));
  if (!o_.pos_weight.defined()) return reduced(relu(x) - x * target + tail, o_.reduction);
  const Tensor weight = (o_.pos_weight - 1.0) * target + 1.0;
  return reduced((1.0 - target) * x + weight * (tail + relu(-x)), o_.reduction);
}

Tensor SmoothL1Loss::forward(Tensor input, Tensor target) {
  const Tensor d = abs(input - target);
  if (o_.beta <= 0) return reduced(d, o_.reduction);
  return reduced(where(d < o_.beta, d * d * (0.5 / o_.beta), d - 0.5 * o_.beta), o_.reduction);
}
Tensor HuberLoss::forward(Tensor input, Tensor target) {
  const Tensor d = abs(input - target);
  return reduced(where(d <= o_.delta, d * d * 0.5, (d - 0.5 * o_.delta) * o_.delta), o_.reduction);
}
Tensor KLDivLoss::forward(Tensor input, Tensor target) {
  if (o_.log_target) return reduced(exp(target) * (target - input), o_.reduction);
  const Tensor some = target > 0.0;  // 0 log 0 is 0
  return reduced(where(some, target * (log(where(some, target, 1.0)) - input), 0.0), o_.reduction);
}

Tensor GLU::forward(Tensor x) {
  if (x.size(dim_) % 2 != 0)
    fail(ErrorKind::Shape, "GLU", "dim " + std::to_string(dim_) + " of " + describe(x) + " is odd",
         user_loc(SourceLoc::current()));
  const std::vector<Tensor> halves = x.chunk(2, dim_);
  return halves[0] * sigmoid(halves[1]);
}

PReLU::PReLU(const PReLUOptions& o, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_size(o.num_parameters, "num_parameters", "PReLU", loc);
  register_parameter("weight", full({o.num_parameters}, o.init, where_of(o)), loc);
}

Tensor PReLU::forward(Tensor x) {
  Tensor slope = own(0);
  if (slope.numel() > 1) {
    if (x.dim() < 2 || x.size(1) != slope.numel())
      fail(ErrorKind::Shape, "PReLU",
           "has " + std::to_string(slope.numel()) + " slopes, one per channel, for " + describe(x),
           user_loc(SourceLoc::current()));
    Dims shape = Dims::filled(x.dim(), 1);
    shape[1] = slope.numel();
    slope = slope.reshape(shape);
  }
  return where(x > 0.0, x, x * slope);
}

}  // namespace ingot::nn
