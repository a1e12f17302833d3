#include <algorithm>
#include <memory>

#include "autograd/leaves.h"
#include "ingot/amp.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "ingot/runtime.h"
#include "optim/update.h"

namespace ingot::amp {

using optim::Optimizer;

struct GradScaler::State {
  GradScalerOptions o;
  Tensor scale, streak;  // 0-d float32: the scale, and the good steps since it last changed
  std::vector<std::pair<Optimizer*, Tensor>>
      unscaled;  // optimisers whose gradients are unscaled already: all finite?
  std::vector<std::shared_ptr<Optimizer::Update>> recorded;
  Tensor good;  // of all steps since update(); undefined: none yet

  void judge(const Tensor& finite) { good = good.defined() ? good & finite : finite; }
};

GradScaler::GradScaler(const GradScalerOptions& options, SourceLoc loc)
    : s_(std::make_unique<State>()) {
  loc = user_loc(loc);
  LocScope scope(loc);
  if (!(options.init_scale > 0) || !(options.growth_factor >= 1) ||
      !(options.backoff_factor > 0 && options.backoff_factor <= 1) || options.growth_interval < 1)
    throw Error(ErrorKind::Value, "GradScaler",
                "scale and factors must be positive, growth at least 1, backoff at most 1", loc);
  s_->o = options;
  s_->scale = full({}, options.init_scale, float32);
  s_->streak = zeros({}, float32);
  eval({s_->scale, s_->streak}, loc);
}

GradScaler::~GradScaler() = default;

Tensor GradScaler::scale(const Tensor& loss, SourceLoc loc) {
  LocScope scope(user_loc(loc));
  if (!s_->o.enabled) return loss;
  Tensor scale = tensor_of(NodeRef(s_->scale.cell()->current()));
  return loss * scale.to(loss.device(loc)).to(loss.dtype());
}

// Are all gradients finite? A 0-d bool on the scale's device.
static Tensor all_finite(const std::vector<Tensor>& params, const Device& device) {
  Tensor result;
  for (const Tensor& p : params) {
    Tensor g = p.grad();
    if (!g.defined()) continue;
    Tensor finite = isfinite(g).all().to(device);
    result = result.defined() ? result & finite : finite;
  }
  return result;
}

void GradScaler::unscale_(Optimizer& optimizer, SourceLoc loc) {
  loc = user_loc(loc);
  LocScope scope(loc);
  NoGrad guard;
  if (!s_->o.enabled) return;
  for (auto& [other, finite] : s_->unscaled)
    if (other == &optimizer)
      throw Error(ErrorKind::State, "unscale_", "this optimiser's gradients are unscaled already",
                  loc, "call update() after each step");
  std::vector<Tensor> params = optimizer.params();
  Tensor finite = all_finite(params, s_->scale.device()), inverse = reciprocal(s_->scale);
  for (const Tensor& p : params)
    if (Tensor g = p.grad(); g.defined())
      p.set_grad((g.to(optim::compute_type(p)) * optim::as_scalar_of(inverse, p)).to(g.dtype()));
  s_->unscaled.emplace_back(&optimizer, finite);
}

void GradScaler::step(Optimizer& optimizer, bool keep_gradients, SourceLoc loc) {
  loc = user_loc(loc);
  LocScope scope(loc);
  NoGrad guard;
  if (!s_->o.enabled) return optimizer.step(keep_gradients, loc);
  const auto unscaled = [&] {
    return std::any_of(s_->unscaled.begin(), s_->unscaled.end(),
                       [&](const auto& u) { return u.first == &optimizer; });
  };
  if (keep_gradients && !unscaled())
    unscale_(optimizer, loc);  // gradients that stay are the unscaled ones
  Tensor finite, factor;
  for (auto& [other, verdict] : s_->unscaled)
    if (other == &optimizer) finite = verdict;
  if (!finite.defined()) {
    finite = all_finite(optimizer.params(), s_->scale.device());
    factor = reciprocal(s_->scale);
  }
  if (!finite.defined()) return;  // no gradients at all
  s_->judge(finite);
  s_->recorded.push_back(optimizer.record(finite, factor, loc));
  s_->recorded.back()->keep_gradients = keep_gradients;
}

void GradScaler::update(SourceLoc loc) {
  loc = user_loc(loc);
  LocScope scope(loc);
  NoGrad guard;
  if (!s_->o.enabled || !s_->good.defined()) return;
  const GradScalerOptions& o = s_->o;
  Tensor streak = s_->streak + 1.0;
  Tensor grown = where(streak >= static_cast<double>(o.growth_interval),
                       s_->scale * o.growth_factor, s_->scale);
  Tensor next_streak =
      where(s_->good & (streak < static_cast<double>(o.growth_interval)), streak, 0.0);
  auto own = std::make_unique<Optimizer::Update>();
  own->loc = loc;
  own->assign(s_->scale, where(s_->good, grown, s_->scale * o.backoff_factor), false);
  own->assign(s_->streak, next_streak, false);
  for (auto& c : own->changes) c.cell->rebind(c.after);

  std::vector<std::shared_ptr<Optimizer::Update>> recorded = std::move(s_->recorded);
  recorded.push_back(std::move(own));
  std::vector<Optimizer::Update*> updates;
  for (auto& u : recorded) updates.push_back(u.get());
  s_->recorded.clear();
  s_->unscaled.clear();
  s_->good = Tensor();
  grown = next_streak = streak = Tensor();
  Optimizer::run(updates, false, loc);
}

Tensor GradScaler::get_scale() const { return tensor_of(NodeRef(s_->scale.cell()->current())); }

StateDict GradScaler::state_dict(SourceLoc loc) const {
  if (!s_->recorded.empty())
    throw Error(ErrorKind::State, "state_dict", "a step is recorded but has not run", user_loc(loc),
                "call update() first");
  StateDict d;
  d.tensors = {{"scale", s_->scale}, {"streak", s_->streak}};
  return d;
}

void GradScaler::load_state_dict(const StateDict& d, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  assign_all({{s_->scale, d.tensor("scale", loc)}, {s_->streak, d.tensor("streak", loc)}}, loc);
}

}  // namespace ingot::amp
