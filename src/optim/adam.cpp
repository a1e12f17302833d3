// The Adam family: AdamW, Adamax, NAdam, RAdam, Lion. What depends on the step count or the rate is
// computed once per count of a group, on 0-d float64 tensors; every parameter's update is then the
// same few elementwise ops, which are fused into one kernel.
#include <cmath>

#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "optim/update.h"

namespace ingot::optim {
namespace {

// 1 - momentum^t, for a momentum that may be an argument.
Tensor first_correction(const Momentum& m, const Tensor& t) {
  return m.value.defined() ? 1.0 - m.power(t) : bias_correction(m.number, t);
}

// The parameter and gradient an update starts from, with either kind of weight decay applied.
struct Start {
  Tensor p, g;
};
template <class O>
Start start(const O& o, bool decoupled, const Tensor& decay, const Slot& s,
            const Tensor& gradient) {
  Start b{weight_of(s), o.maximize ? -gradient : gradient};
  if (o.weight_decay == 0) return b;
  if (decoupled)
    b.p = b.p * as_scalar_of(decay, s.param);
  else
    b.g = b.g + b.p * o.weight_decay;
  return b;
}
template <class O>
Tensor decay_of(const O& o, bool decoupled, const Tensor& lr) {
  return decoupled && o.weight_decay != 0 ? 1.0 - lr * o.weight_decay : Tensor();
}

Tensor moved(const Tensor& average, const Tensor& g, const Momentum& m, const Tensor& p) {
  return average + m.rest_times(g - average, p);
}
Tensor squares(const Tensor& before, const Tensor& g, double beta) {
  return before * beta + g * g * (1 - beta);
}

}  // namespace

Adam::Adam(const std::vector<ParamGroup<AdamOptions>>& groups, const char* name, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse(name, common_mistake(o), loc);
    add_group(params, {o.lr, o.amsgrad ? 3 : 2, &o.betas.first, o.master_weights}, loc).options = o;
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

void Adam::update_group(Group& group, Update& update) {
  const auto& o = std::any_cast<const AdamOptions&>(group.options);
  struct Numbers {
    Momentum beta;
    Tensor step_size, root_correction, decay;
  };
  update_on_each_count(
      group, update,
      [&](const Tensor& count, const Tensor& lr, Count& c) {
        Momentum beta(group, c.steps.device());
        return Numbers{beta, lr / first_correction(beta, count),
                       rsqrt(bias_correction(o.betas.second, count)),
                       decay_of(o, o.decoupled_weight_decay, lr)};
      },
      [&](const Numbers& n, Slot& s, const Tensor& gradient) {
        auto [p, g] = start(o, o.decoupled_weight_decay, n.decay, s, gradient);
        Tensor m = moved(s.state[0], g, n.beta, s.param),
               v = squares(s.state[1], g, o.betas.second);
        Tensor second = o.amsgrad ? maximum(s.state[2], v) : v;
        Tensor denominator = sqrt(second) * as_scalar_of(n.root_correction, s.param) + o.eps;
        update.set_weight(s, p - as_scalar_of(n.step_size, s.param) * (m / denominator));
        update.assign(s.state[0], m, false);
        update.assign(s.state[1], v, false);
        if (o.amsgrad) update.assign(s.state[2], second, false);
      });
}

Adamax::Adamax(const std::vector<ParamGroup<AdamaxOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("Adamax", common_mistake(o), loc);
    add_group(params, {o.lr, 2, &o.betas.first, o.master_weights}, loc).options = o;
  }
}

void Adamax::update_group(Group& group, Update& update) {
  const auto& o = std::any_cast<const AdamaxOptions&>(group.options);
  struct Numbers {
    Momentum beta;
    Tensor step_size;
  };
  update_on_each_count(
      group, update,
      [&](const Tensor& count, const Tensor& lr, Count& c) {
        Momentum beta(group, c.steps.device());
        return Numbers{beta, lr / first_correction(beta, count)};
      },
      [&](const Numbers& n, Slot& s, const Tensor& gradient) {
        auto [p, g] = start(o, false, {}, s, gradient);
        Tensor m = moved(s.state[0], g, n.beta, s.param),
               u = maximum(s.state[1] * o.betas.second, abs(g) + o.eps);
        update.set_weight(s, p - as_scalar_of(n.step_size, s.param) * (m / u));
        update.assign(s.state[0], m, false);
        update.assign(s.state[1], u, false);
      });
}

NAdam::NAdam(const std::vector<ParamGroup<NAdamOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("NAdam", common_mistake(o), loc);
    refuse("NAdam", o.momentum_decay >= 0 ? nullptr : "momentum_decay is negative", loc);
    add_group(params,
              {.lr = o.lr,
               .states = 2,
               .momentum = &o.betas.first,
               .master_weights = o.master_weights,
               .product = true},
              loc)
        .options = o;
  }
}

void NAdam::update_group(Group& group, Update& update) {
  const auto& o = std::any_cast<const NAdamOptions&>(group.options);
  struct Numbers {
    Momentum beta;
    Tensor of_gradient, of_average, correction, decay;
  };
  update_on_each_count(
      group, update,
      [&](const Tensor& count, const Tensor& lr, Count& c) {
        Momentum beta(group, c.steps.device());
        const Tensor first =
            beta.value.defined() ? beta.value : full({}, beta.number, {float64, count.device()});
        const auto mu = [&](const Tensor& t) {
          return first * (1.0 - 0.5 * exp(t * (o.momentum_decay * std::log(0.96))));
        };
        Tensor now = mu(count), next = mu(count + 1.0), product = c.product * now;
        Numbers n{beta, lr * (1.0 - now) / (1.0 - product), lr * next / (1.0 - product * next),
                  bias_correction(o.betas.second, count),
                  decay_of(o, o.decoupled_weight_decay, lr)};
        update.assign(c.product, product, false);
        return n;
      },
      [&](const Numbers& n, Slot& s, const Tensor& gradient) {
        auto [p, g] = start(o, o.decoupled_weight_decay, n.decay, s, gradient);
        Tensor m = moved(s.state[0], g, n.beta, s.param),
               v = squares(s.state[1], g, o.betas.second);
        Tensor denominator = sqrt(v / as_scalar_of(n.correction, s.param)) + o.eps;
        update.set_weight(s, p - as_scalar_of(n.of_gradient, s.param) * (g / denominator) -
                                 as_scalar_of(n.of_average, s.param) * (m / denominator));
        update.assign(s.state[0], m, false);
        update.assign(s.state[1], v, false);
      });
}

RAdam::RAdam(const std::vector<ParamGroup<RAdamOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("RAdam", common_mistake(o), loc);
    add_group(params, {o.lr, 2, &o.betas.first, o.master_weights}, loc).options = o;
  }
}

void RAdam::update_group(Group& group, Update& update) {
  const auto& o = std::any_cast<const RAdamOptions&>(group.options);
  struct Numbers {
    Momentum beta;
    Tensor step_size, rectified, adaptive,
        decay;  // rectified: the factor in the adaptive form; adaptive: 1 or 0
  };
  update_on_each_count(
      group, update,
      [&](const Tensor& count, const Tensor& lr, Count& c) {
        Momentum beta(group, c.steps.device());
        const double limit = 2 / (1 - o.betas.second) - 1;
        Tensor correction = bias_correction(o.betas.second, count);
        Tensor rho = limit - 2.0 * count * (1.0 - correction) / correction;
        Tensor safe = maximum(rho, 5.0);
        Tensor rectified =
            sqrt((safe - 4.0) * (safe - 2.0) * limit / ((limit - 4) * (limit - 2) * safe)) *
            sqrt(correction);
        return Numbers{beta, lr / first_correction(beta, count), rectified, rho > 5.0,
                       decay_of(o, o.decoupled_weight_decay, lr)};
      },
      [&](const Numbers& n, Slot& s, const Tensor& gradient) {
        auto [p, g] = start(o, o.decoupled_weight_decay, n.decay, s, gradient);
        Tensor m = moved(s.state[0], g, n.beta, s.param),
               v = squares(s.state[1], g, o.betas.second);
        Tensor factor = where(n.adaptive.to(s.param.device()),
                              as_scalar_of(n.rectified, s.param) / (sqrt(v) + o.eps), 1.0);
        update.set_weight(s, p - as_scalar_of(n.step_size, s.param) * (m * factor));
        update.assign(s.state[0], m, false);
        update.assign(s.state[1], v, false);
      });
}

Lion::Lion(const std::vector<ParamGroup<LionOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("Lion", common_mistake(o), loc);
    add_group(params, {o.lr, 1, &o.betas.first, o.master_weights}, loc).options = o;
  }
}

void Lion::update_group(Group& group, Update& update) {
  const auto& o = std::any_cast<const LionOptions&>(group.options);
  struct Numbers {
    Momentum beta;
    Tensor lr, decay;
  };
  update_on_each_count(
      group, update,
      [&](const Tensor&, const Tensor& lr, Count& c) {
        return Numbers{Momentum(group, c.steps.device()), lr, decay_of(o, true, lr)};
      },
      [&](const Numbers& n, Slot& s, const Tensor& gradient) {
        auto [p, g] = start(o, true, n.decay, s, gradient);
        update.set_weight(
            s, p - as_scalar_of(n.lr, s.param) * sign(moved(s.state[0], g, n.beta, s.param)));
        update.assign(s.state[0], s.state[0] + (g - s.state[0]) * (1 - o.betas.second), false);
      });
}

}  // namespace ingot::optim
