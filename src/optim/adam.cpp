// Adam and AdamW. What depends on the step count or the rate is worked out once per group and device, on 0-d tensors;
// every parameter's update is then the same few elementwise ops, which merge into one kernel.
#include <cmath>

#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "optim/update.h"

namespace ingot::optim {
namespace {

void check(const AdamOptions& o, const char* name, const SourceLoc& loc) {
  auto inside = [](double b) { return b >= 0 && b < 1; };
  const char* wrong = o.lr < 0                                              ? "lr is negative"
                      : o.eps < 0                                           ? "eps is negative"
                      : o.weight_decay < 0                                  ? "weight_decay is negative"
                      : !inside(o.betas.first) || !inside(o.betas.second)   ? "betas must lie in [0, 1)"
                                                                            : nullptr;
  if (wrong) throw Error(ErrorKind::Value, name, wrong, user_loc(loc));
}

// 1 - beta^t, exact for small t too.
Tensor bias_correction(double beta, const Tensor& t) {
  return beta == 0 ? ones_like(t) : -expm1(t * std::log(beta));
}

// The numbers of one step on one device: float64, 0-d.
struct StepNumbers {
  Tensor count, step_size, root_correction, decay;

  StepNumbers(const AdamOptions& o, const Tensor& lr, const Tensor& before, bool decoupled) {
    count = before + 1.0;
    step_size = lr / bias_correction(o.betas.first, count);
    root_correction = rsqrt(bias_correction(o.betas.second, count));
    if (decoupled && o.weight_decay != 0) decay = 1.0 - lr * o.weight_decay;
  }
};

void update_slot(const AdamOptions& o, const StepNumbers& n, bool decoupled, Slot& s, const Tensor& gradient,
                 Optimizer::Update& update) {
  Tensor p = s.param.to(compute_type(s.param)), g = o.maximize ? -gradient : gradient;
  if (decoupled && o.weight_decay != 0) p = p * as_scalar_of(n.decay, s.param);
  if (!decoupled && o.weight_decay != 0) g = g + p * o.weight_decay;
  Tensor m = s.state[0] + (g - s.state[0]) * (1 - o.betas.first);
  Tensor v = s.state[1] * o.betas.second + g * g * (1 - o.betas.second);
  Tensor second = o.amsgrad ? maximum(s.state[2], v) : v;
  Tensor denominator = sqrt(second) * as_scalar_of(n.root_correction, s.param) + o.eps;
  update.assign(s.param, p - as_scalar_of(n.step_size, s.param) * (m / denominator), true);
  update.assign(s.state[0], m, false);
  update.assign(s.state[1], v, false);
  if (o.amsgrad) update.assign(s.state[2], second, false);
}

}  // namespace

Adam::Adam(const std::vector<ParamGroup<AdamOptions>>& groups, bool decoupled, SourceLoc loc) : decoupled_(decoupled) {
  for (const auto& g : groups) {
    check(g.options, decoupled ? "AdamW" : "Adam", loc);
    options_.push_back(g.options);
    add_group(g.params, g.options.lr, 2, g.options.amsgrad, loc);
  }
}

Adam::Adam(const std::vector<ParamGroup<AdamOptions>>& groups, SourceLoc loc) : Adam(groups, false, loc) {}

Adam::Adam(const std::vector<Tensor>& params, const AdamOptions& options, SourceLoc loc)
    : Adam(std::vector<ParamGroup<AdamOptions>>{{params, options}}, false, loc) {}

static std::vector<ParamGroup<AdamOptions>> as_adam(const std::vector<ParamGroup<AdamWOptions>>& groups) {
  std::vector<ParamGroup<AdamOptions>> result;
  for (const auto& [params, o] : groups)
    result.push_back({params, {o.lr, o.betas, o.eps, o.weight_decay, o.amsgrad, o.maximize}});
  return result;
}

AdamW::AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups, SourceLoc loc) : Adam(as_adam(groups), true, loc) {}

AdamW::AdamW(const std::vector<Tensor>& params, const AdamWOptions& options, SourceLoc loc)
    : AdamW(std::vector<ParamGroup<AdamWOptions>>{{params, options}}, loc) {}

void Adam::update_group(size_t index, Group& group, Update& update) {
  const AdamOptions& o = options_[index];
  for (Tensor& count : group.counts) {
    bool any = false;
    StepNumbers numbers(o, group.lr_on(count.device()), count, decoupled_);
    for (Slot& s : group.slots) {
      if (s.param.device() != count.device()) continue;
      Tensor g = gradient_for_update(update, s.param);
      if (!g.defined()) continue;
      any = true;
      update_slot(o, numbers, decoupled_, s, g, update);
    }
    if (any) update.assign(count, numbers.count, false);
  }
}

}  // namespace ingot::optim
