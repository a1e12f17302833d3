// SGD, RMSprop, Adagrad, Adadelta: what depends on the step count or the rate is computed once per
// count of a group, on 0-d tensors; every parameter's update is then the same few elementwise ops,
// which are fused into one kernel.
#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "optim/update.h"

namespace ingot::optim {
namespace {

template <class O>
Tensor decayed(const O& o, const Tensor& gradient, const Tensor& p) {
  Tensor g = o.maximize ? -gradient : gradient;
  return o.weight_decay != 0 ? g + p * o.weight_decay : g;
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
    add_group(
        params,
        {o.lr, o.momentum != 0 ? 1 : 0, o.momentum != 0 ? &o.momentum : nullptr, o.master_weights},
        loc)
        .options = o;
  }
}

void SGD::update_group(Group& group, Update& update) {
  const auto& o = std::any_cast<const SGDOptions&>(group.options);
  struct Numbers {
    Tensor lr,
        part;  // part: the share of a gradient that enters the average; the first gradient starts
               // it undamped
    Momentum momentum;
  };
  update_on_each_count(
      group, update,
      [&](const Tensor& count, const Tensor& lr, Count& c) {
        Tensor part;
        if (o.momentum != 0 && o.dampening != 0)
          part = where(count == 1.0, ones_like(count), 1.0 - o.dampening);
        return Numbers{lr, part, Momentum(group, c.steps.device())};
      },
      [&](const Numbers& n, Slot& s, const Tensor& gradient) {
        Tensor p = weight_of(s), g = decayed(o, gradient, p);
        if (o.momentum != 0) {
          Tensor average = n.momentum.times(s.state[0], s.param) +
                           (n.part.defined() ? g * as_scalar_of(n.part, s.param) : g);
          update.assign(s.state[0], average, false);
          g = o.nesterov ? g + n.momentum.times(average, s.param) : average;
        }
        update.set_weight(s, p - g * as_scalar_of(n.lr, s.param));
      });
}

RMSprop::RMSprop(const std::vector<ParamGroup<RMSpropOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("RMSprop", common_mistake(o), loc);
    refuse("RMSprop", o.alpha >= 0 ? nullptr : "alpha is negative", loc);
    const int states = 1 + (o.momentum != 0) + o.centered;
    add_group(params, {o.lr, states, o.momentum != 0 ? &o.momentum : nullptr, o.master_weights},
              loc)
        .options = o;
  }
}

void RMSprop::update_group(Group& group, Update& update) {
  const auto& o = std::any_cast<const RMSpropOptions&>(group.options);
  struct Numbers {
    Tensor lr;
    Momentum momentum;
  };
  update_on_each_count(
      group, update,
      [&](const Tensor&, const Tensor& lr, Count& c) {
        return Numbers{lr, Momentum(group, c.steps.device())};
      },
      [&](const Numbers& n, Slot& s, const Tensor& gradient) {
        Tensor p = weight_of(s), g = decayed(o, gradient, p);
        Tensor square = s.state[0] * o.alpha + g * g * (1 - o.alpha);
        Tensor spread = square;
        size_t next = 1;
        update.assign(s.state[0], square, false);
        if (o.centered) {
          Tensor mean = s.state[next] + (g - s.state[next]) * (1 - o.alpha);
          update.assign(s.state[next++], mean, false);
          spread = square - mean * mean;
        }
        Tensor step = g / (sqrt(spread) + o.eps);
        if (o.momentum != 0) {
          step = n.momentum.times(s.state[next], s.param) + step;
          update.assign(s.state[next], step, false);
        }
        update.set_weight(s, p - step * as_scalar_of(n.lr, s.param));
      });
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
               .master_weights = o.master_weights,
               .first = o.initial_accumulator_value},
              loc)
        .options = o;
  }
}

void Adagrad::update_group(Group& group, Update& update) {
  const auto& o = std::any_cast<const AdagradOptions&>(group.options);
  update_on_each_count(
      group, update,
      [&](const Tensor& count, const Tensor& lr, Count&) {
        return o.lr_decay != 0 ? lr / ((count - 1.0) * o.lr_decay + 1.0) : lr;
      },
      [&](const Tensor& lr, Slot& s, const Tensor& gradient) {
        Tensor p = weight_of(s), g = decayed(o, gradient, p);
        Tensor sum = s.state[0] + g * g;
        update.assign(s.state[0], sum, false);
        update.set_weight(s, p - as_scalar_of(lr, s.param) * (g / (sqrt(sum) + o.eps)));
      });
}

Adadelta::Adadelta(const std::vector<ParamGroup<AdadeltaOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("Adadelta", common_mistake(o), loc);
    refuse("Adadelta", o.rho >= 0 && o.rho <= 1 ? nullptr : "rho must be in [0, 1]", loc);
    add_group(params, {.lr = o.lr, .states = 2, .master_weights = o.master_weights}, loc).options =
        o;
  }
}

void Adadelta::update_group(Group& group, Update& update) {
  const auto& o = std::any_cast<const AdadeltaOptions&>(group.options);
  update_on_each_count(
      group, update, [&](const Tensor&, const Tensor& lr, Count&) { return lr; },
      [&](const Tensor& lr, Slot& s, const Tensor& gradient) {
        Tensor p = weight_of(s), g = decayed(o, gradient, p);
        Tensor square = s.state[0] * o.rho + g * g * (1 - o.rho);
        Tensor delta = sqrt(s.state[1] + o.eps) / sqrt(square + o.eps) * g;
        update.assign(s.state[0], square, false);
        update.assign(s.state[1], s.state[1] * o.rho + delta * delta * (1 - o.rho), false);
        update.set_weight(s, p - delta * as_scalar_of(lr, s.param));
      });
}

}  // namespace ingot::optim
