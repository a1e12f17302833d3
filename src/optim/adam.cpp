// The Adam family: AdamW, Adamax, NAdam, RAdam, Lion. What depends on the step count or the rate is
// computed once per count of a group, on 0-d float64 tensors; every parameter's update is then the
// same few elementwise ops, which are fused into one kernel.
#include <cmath>

#include "ingot/ops.h"
#include "optim/update.h"

namespace ingot::optim {
namespace {

using Momentum = Optimizer::Momentum;
using Parameter = Optimizer::Parameter;

// 1 - momentum^t, for a momentum that may be an argument.
Tensor first_correction(const Momentum& m, const Tensor& t) {
  return m.argument.defined() ? 1.0 - m.power(t) : bias_correction(m.number, t);
}

// Both kinds of weight decay, and the gradient's sign, applied to what an update starts from.
template <class O>
void start(const O& o, bool decoupled, const Tensor& decay, Parameter& p) {
  if (o.maximize) p.gradient = -p.gradient;
  if (o.weight_decay == 0) return;
  if (decoupled)
    p.weight = p.weight * p.scalar(decay);
  else
    p.gradient = p.gradient + p.weight * o.weight_decay;
}
template <class O>
Tensor decay_of(const O& o, bool decoupled, const Tensor& lr) {
  return decoupled && o.weight_decay != 0 ? 1.0 - lr * o.weight_decay : Tensor();
}

Tensor moved(const Tensor& average, const Tensor& g, const Momentum& m) {
  return average + m.rest_times(g - average);
}
Tensor squares(const Tensor& before, const Tensor& g, double beta) {
  return before * beta + g * g * (1 - beta);
}

}  // namespace

Adam::Adam(const std::vector<ParamGroup<AdamOptions>>& groups, const char* name, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse(name, common_mistake(o), loc);
    add_group(params,
              {.lr = o.lr,
               .states = o.amsgrad ? 3 : 2,
               .momentum = o.betas.first,
               .master_weights = o.master_weights},
              o, loc);
  }
}

Adam::Adam(const std::vector<ParamGroup<AdamOptions>>& groups, SourceLoc loc)
    : Adam(groups, "Adam", loc) {}
Adam::Adam(const std::vector<Tensor>& params, const AdamOptions& options, SourceLoc loc)
    : Adam(std::vector<ParamGroup<AdamOptions>>{{params, options}}, "Adam", loc) {}

static std::vector<ParamGroup<AdamOptions>> as_adam(
    const std::vector<ParamGroup<AdamWOptions>>& groups) {
  std::vector<ParamGroup<AdamOptions>> result;
  for (const auto& [params, o] : groups)
    result.push_back(
        {params,
         {o.lr, o.betas, o.eps, o.weight_decay, o.amsgrad, o.maximize, true, o.master_weights}});
  return result;
}

AdamW::AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups, SourceLoc loc)
    : Adam(as_adam(groups), "AdamW", loc) {}
AdamW::AdamW(const std::vector<Tensor>& params, const AdamWOptions& options, SourceLoc loc)
    : AdamW(std::vector<ParamGroup<AdamWOptions>>{{params, options}}, loc) {}

void Adam::update(Step& step) const {
  const auto& o = step.options<AdamOptions>();
  const Tensor step_size = step.lr / first_correction(step.momentum, step.count);
  const Tensor root_correction = rsqrt(bias_correction(o.betas.second, step.count));
  const Tensor decay = decay_of(o, o.decoupled_weight_decay, step.lr);
  for (Parameter& p : step.parameters) {
    start(o, o.decoupled_weight_decay, decay, p);
    p.state[0] = moved(p.state[0], p.gradient, step.momentum);
    p.state[1] = squares(p.state[1], p.gradient, o.betas.second);
    if (o.amsgrad) p.state[2] = maximum(p.state[2], p.state[1]);
    const Tensor& second = p.state[o.amsgrad ? 2 : 1];
    const Tensor denominator = sqrt(second) * p.scalar(root_correction) + o.eps;
    p.weight = p.weight - p.scalar(step_size) * (p.state[0] / denominator);
  }
}

Adamax::Adamax(const std::vector<ParamGroup<AdamaxOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("Adamax", common_mistake(o), loc);
    add_group(
        params,
        {.lr = o.lr, .states = 2, .momentum = o.betas.first, .master_weights = o.master_weights}, o,
        loc);
  }
}

void Adamax::update(Step& step) const {
  const auto& o = step.options<AdamaxOptions>();
  const Tensor step_size = step.lr / first_correction(step.momentum, step.count);
  for (Parameter& p : step.parameters) {
    start(o, false, {}, p);
    p.state[0] = moved(p.state[0], p.gradient, step.momentum);
    p.state[1] = maximum(p.state[1] * o.betas.second, abs(p.gradient) + o.eps);
    p.weight = p.weight - p.scalar(step_size) * (p.state[0] / p.state[1]);
  }
}

NAdam::NAdam(const std::vector<ParamGroup<NAdamOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("NAdam", common_mistake(o), loc);
    refuse("NAdam", o.momentum_decay >= 0 ? nullptr : "momentum_decay is negative", loc);
    add_group(params,
              {.lr = o.lr,
               .states = 2,
               .momentum = o.betas.first,
               .master_weights = o.master_weights,
               .product = true},
              o, loc);
  }
}

void NAdam::update(Step& step) const {
  const auto& o = step.options<NAdamOptions>();
  const Tensor first = step.momentum.on(step.count.device());
  const auto mu = [&](const Tensor& t) {
    return first * (1.0 - 0.5 * exp(t * (o.momentum_decay * std::log(0.96))));
  };
  const Tensor now = mu(step.count), next = mu(step.count + 1.0);
  step.product = step.product * now;
  const Tensor of_gradient = step.lr * (1.0 - now) / (1.0 - step.product);
  const Tensor of_average = step.lr * next / (1.0 - step.product * next);
  const Tensor correction = bias_correction(o.betas.second, step.count);
  const Tensor decay = decay_of(o, o.decoupled_weight_decay, step.lr);
  for (Parameter& p : step.parameters) {
    start(o, o.decoupled_weight_decay, decay, p);
    p.state[0] = moved(p.state[0], p.gradient, step.momentum);
    p.state[1] = squares(p.state[1], p.gradient, o.betas.second);
    const Tensor denominator = sqrt(p.state[1] / p.scalar(correction)) + o.eps;
    p.weight = p.weight - p.scalar(of_gradient) * (p.gradient / denominator) -
               p.scalar(of_average) * (p.state[0] / denominator);
  }
}

RAdam::RAdam(const std::vector<ParamGroup<RAdamOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("RAdam", common_mistake(o), loc);
    add_group(
        params,
        {.lr = o.lr, .states = 2, .momentum = o.betas.first, .master_weights = o.master_weights}, o,
        loc);
  }
}

void RAdam::update(Step& step) const {
  const auto& o = step.options<RAdamOptions>();
  const double limit = 2 / (1 - o.betas.second) - 1;
  const Tensor correction = bias_correction(o.betas.second, step.count);
  const Tensor rho = limit - 2.0 * step.count * (1.0 - correction) / correction;
  const Tensor safe = maximum(rho, 5.0);
  const Tensor rectified =
      sqrt((safe - 4.0) * (safe - 2.0) * limit / ((limit - 4) * (limit - 2) * safe)) *
      sqrt(correction);
  const Tensor is_adaptive = rho > 5.0;
  const Tensor step_size = step.lr / first_correction(step.momentum, step.count);
  const Tensor decay = decay_of(o, o.decoupled_weight_decay, step.lr);
  for (Parameter& p : step.parameters) {
    start(o, o.decoupled_weight_decay, decay, p);
    p.state[0] = moved(p.state[0], p.gradient, step.momentum);
    p.state[1] = squares(p.state[1], p.gradient, o.betas.second);
    const Tensor factor = where(is_adaptive, p.scalar(rectified) / (sqrt(p.state[1]) + o.eps), 1.0);
    p.weight = p.weight - p.scalar(step_size) * (p.state[0] * factor);
  }
}

Lion::Lion(const std::vector<ParamGroup<LionOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("Lion", common_mistake(o), loc);
    add_group(
        params,
        {.lr = o.lr, .states = 1, .momentum = o.betas.first, .master_weights = o.master_weights}, o,
        loc);
  }
}

void Lion::update(Step& step) const {
  const auto& o = step.options<LionOptions>();
  const Tensor decay = decay_of(o, true, step.lr);
  for (Parameter& p : step.parameters) {
    start(o, true, decay, p);
    const Tensor direction = sign(moved(p.state[0], p.gradient, step.momentum));
    p.weight = p.weight - p.scalar(step.lr) * direction;
    p.state[0] = p.state[0] + (p.gradient - p.state[0]) * (1 - o.betas.second);
  }
}

}  // namespace ingot::optim
