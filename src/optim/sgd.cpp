#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "optim/update.h"

namespace ingot::optim {

static void check(const SGDOptions& o, const SourceLoc& loc) {
  const char* wrong = o.lr < 0             ? "lr is negative"
                      : o.momentum < 0     ? "momentum is negative"
                      : o.weight_decay < 0 ? "weight_decay is negative"
                      : o.nesterov && (o.momentum == 0 || o.dampening != 0) ? "nesterov needs momentum and no dampening"
                                                                            : nullptr;
  if (wrong) throw Error(ErrorKind::Value, "SGD", wrong, user_loc(loc));
}

SGD::SGD(const std::vector<ParamGroup<SGDOptions>>& groups, SourceLoc loc) {
  for (const auto& g : groups) {
    check(g.options, loc);
    options_.push_back(g.options);
    add_group(g.params, g.options.lr, g.options.momentum != 0 ? 1 : 0, false, loc);
  }
}

SGD::SGD(const std::vector<Tensor>& params, const SGDOptions& options, SourceLoc loc)
    : SGD(std::vector<ParamGroup<SGDOptions>>{{params, options}}, loc) {}

void SGD::update_group(size_t index, Group& group, Update& update) {
  const SGDOptions& o = options_[index];
  Tensor lr = group.lr_on(group.slots[0].param.device());
  bool any = false;
  for (Slot& s : group.slots) {
    Tensor g = gradient_for_update(update, s.param);
    if (!g.defined()) continue;
    any = true;
    Tensor p = s.param.to(compute_type(s.param));
    if (o.maximize) g = -g;
    if (o.weight_decay != 0) g = g + p * o.weight_decay;
    if (o.momentum != 0) {
      Tensor part = g;
      if (o.dampening != 0) {  // the first gradient starts the average undamped
        const Tensor& count = group.count_on(s.param.device());
        part = g * as_scalar_of(where(count == 0.0, ones_like(count), 1.0 - o.dampening), s.param);
      }
      Tensor average = s.state[0] * o.momentum + part;
      update.assign(s.state[0], average, false);
      g = o.nesterov ? g + average * o.momentum : average;
    }
    update.assign(s.param, p - g * as_scalar_of(lr, s.param), true);
  }
  if (any && o.dampening != 0)
    for (Tensor& count : group.counts) update.assign(count, count + 1.0, false);
}

}  // namespace ingot::optim
