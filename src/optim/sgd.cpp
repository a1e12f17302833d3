// SGD, RMSprop, Adagrad, Adadelta: what depends on the step count or the rate is computed once per
// count of a group, on 0-d tensors; every parameter's update is then the same few elementwise ops,
// which are fused into one kernel.
#include "ingot/ops.h"
#include "optim/update.h"

namespace ingot::optim {
namespace {

template <class O>
Tensor decayed(const O& o, const Tensor& gradient, const Tensor& weight) {
  Tensor g = o.maximize ? -gradient : gradient;
  return o.weight_decay != 0 ? g + weight * o.weight_decay : g;
}

// Of an optimiser whose momentum may be 0, which then has none.
template <class O>
std::optional<double> momentum_of(const O& o) {
  return o.momentum != 0 ? std::optional(o.momentum) : std::nullopt;
}

}  // namespace

SGD::SGD(const std::vector<ParamGroup<SGDOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("SGD", common_mistake(o), loc);
    refuse("SGD",
           o.nesterov && (o.momentum == 0 || o.dampening != 0)
               ? "nesterov needs momentum and no dampening"
               : nullptr,
           loc);
    add_group(params,
              {.lr = o.lr,
               .states = o.momentum != 0 ? 1 : 0,
               .momentum = momentum_of(o),
               .master_weights = o.master_weights},
              o, loc);
  }
}

void SGD::update(Step& step) const {
  const auto& o = step.options<SGDOptions>();
  // The share of a gradient that enters the average; the first gradient starts it undamped.
  Tensor part;
  if (o.momentum != 0 && o.dampening != 0)
    part = where(step.count == 1.0, ones_like(step.count), 1.0 - o.dampening);
  for (Parameter& p : step.parameters) {
    Tensor g = decayed(o, p.gradient, p.weight);
    if (o.momentum != 0) {
      p.state[0] = step.momentum.times(p.state[0]) + (part.defined() ? g * p.scalar(part) : g);
      g = o.nesterov ? g + step.momentum.times(p.state[0]) : p.state[0];
    }
    p.weight = p.weight - g * p.scalar(step.lr);
  }
}

RMSprop::RMSprop(const std::vector<ParamGroup<RMSpropOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("RMSprop", common_mistake(o), loc);
    refuse("RMSprop", o.alpha >= 0 ? nullptr : "alpha is negative", loc);
    const int states = 1 + (o.momentum != 0) + o.centered;
    add_group(params,
              {.lr = o.lr,
               .states = states,
               .momentum = momentum_of(o),
               .master_weights = o.master_weights},
              o, loc);
  }
}

void RMSprop::update(Step& step) const {
  const auto& o = step.options<RMSpropOptions>();
  for (Parameter& p : step.parameters) {
    const Tensor g = decayed(o, p.gradient, p.weight);
    p.state[0] = p.state[0] * o.alpha + g * g * (1 - o.alpha);
    Tensor spread = p.state[0];
    size_t next = 1;
    if (o.centered) {
      p.state[1] = p.state[1] + (g - p.state[1]) * (1 - o.alpha);
      spread = p.state[0] - p.state[1] * p.state[1];
      next = 2;
    }
    Tensor change = g / (sqrt(spread) + o.eps);
    if (o.momentum != 0) change = p.state[next] = step.momentum.times(p.state[next]) + change;
    p.weight = p.weight - change * p.scalar(step.lr);
  }
}

Adagrad::Adagrad(const std::vector<ParamGroup<AdagradOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("Adagrad", common_mistake(o), loc);
    refuse("Adagrad",
           !(o.lr_decay >= 0)                    ? "lr_decay is negative"
           : !(o.initial_accumulator_value >= 0) ? "initial_accumulator_value is negative"
                                                 : nullptr,
           loc);
    add_group(params,
              {.lr = o.lr,
               .states = 1,
               .initial_state = o.initial_accumulator_value,
               .master_weights = o.master_weights},
              o, loc);
  }
}

void Adagrad::update(Step& step) const {
  const auto& o = step.options<AdagradOptions>();
  const Tensor lr = o.lr_decay != 0 ? step.lr / ((step.count - 1.0) * o.lr_decay + 1.0) : step.lr;
  for (Parameter& p : step.parameters) {
    const Tensor g = decayed(o, p.gradient, p.weight);
    p.state[0] = p.state[0] + g * g;
    p.weight = p.weight - p.scalar(lr) * (g / (sqrt(p.state[0]) + o.eps));
  }
}

Adadelta::Adadelta(const std::vector<ParamGroup<AdadeltaOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("Adadelta", common_mistake(o), loc);
    refuse("Adadelta", o.rho >= 0 && o.rho <= 1 ? nullptr : "rho must be in [0, 1]", loc);
    add_group(params, {.lr = o.lr, .states = 2, .master_weights = o.master_weights}, o, loc);
  }
}

void Adadelta::update(Step& step) const {
  const auto& o = step.options<AdadeltaOptions>();
  for (Parameter& p : step.parameters) {
    const Tensor g = decayed(o, p.gradient, p.weight);
    const Tensor square = p.state[0] * o.rho + g * g * (1 - o.rho);
    const Tensor delta = sqrt(p.state[1] + o.eps) / sqrt(square + o.eps) * g;
    p.state[0] = square;
    p.state[1] = p.state[1] * o.rho + delta * delta * (1 - o.rho);
    p.weight = p.weight - delta * p.scalar(step.lr);
  }
}

}  // namespace ingot::optim
