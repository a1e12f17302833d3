// What an optimiser's formula sees of its parameters, and what becomes of what it returns.
#include <cmath>
#include <utility>

#include "ingot/ops.h"
#include "optim/update.h"

namespace ingot::optim {
namespace {

// A separate handle: what the formula writes to it in place changes neither the parameter nor the
// optimiser's state before the step has run.
Tensor handle_on(const Tensor& t) { return tensor_of(t.cell()->current()); }

bool is_replaced(const Tensor& now, const NodeRef& before) {
  return !now.defined() || now.cell()->current().get() != before.get();
}

[[noreturn]] void refuse_value(ErrorKind kind, const std::string& what, const Tensor& param,
                               const std::string& wrong, const SourceLoc& loc) {
  throw Error(kind, "step",
              "the formula's " + what + " of " + describe(param.cell()->current()) + " " + wrong,
              loc);
}

void check_value(const Tensor& value, const Node& target, const std::string& what,
                 const Tensor& param, const SourceLoc& loc) {
  if (!value.defined()) refuse_value(ErrorKind::State, what, param, "is undefined", loc);
  const NodeRef n = value.cell()->current();
  if (!(n->shape == target.shape))
    refuse_value(ErrorKind::Shape, what, param,
                 "has shape " + to_string(n->shape) + " instead of " + to_string(target.shape),
                 loc);
  if (n->device != target.device)
    refuse_value(ErrorKind::Device, what, param,
                 "is on " + n->device.name() + " instead of " + target.device.name(), loc);
}

// A formula's parameter with what it was given, to find what it replaced.
struct Given {
  Slot* slot;
  NodeRef weight;
  std::vector<NodeRef> state;
};

}  // namespace

Tensor Optimizer::Momentum::times(const Tensor& x) const {
  return argument.defined() ? x * argument.to(x.dtype()) : x * number;
}
Tensor Optimizer::Momentum::rest_times(const Tensor& x) const {
  return argument.defined() ? x * (1.0 - argument).to(x.dtype()) : x * (1 - number);
}
Tensor Optimizer::Momentum::power(const Tensor& count) const {
  return argument.defined() ? exp(count * log(argument)) : exp(count * std::log(number));
}
Tensor Optimizer::Momentum::on(const Device& device) const {
  return argument.defined() ? argument : full({}, number, {float64, device});
}

const Tensor& Optimizer::States::operator[](size_t i) const {
  if (i < tensors_.size()) return tensors_[i];
  throw Error(ErrorKind::Index, "step",
              "the formula uses state " + std::to_string(i) + " of a parameter that has " +
                  std::to_string(tensors_.size()),
              user_loc(SourceLoc::current()), "ask for it in add_group(): states, or make_state");
}
Tensor& Optimizer::States::operator[](size_t i) {
  return const_cast<Tensor&>(std::as_const(*this)[i]);
}

Tensor Optimizer::Parameter::scalar(const Tensor& value) const {
  return as_scalar_of(value, weight);
}

void Optimizer::Step::refuse_options() const {
  throw Error(ErrorKind::State, "options",
              options_ && options_->has_value()
                  ? "group " + std::to_string(group) + " was added with options of another type"
                  : "group " + std::to_string(group) + " was added without options",
              user_loc(SourceLoc::current()), "pass them to add_group()");
}

void Optimizer::formula_changed() {
  for (const auto& g : groups_) g->step = nullptr;
}

void Optimizer::record_formula(size_t number, Update& update) const {
  Group& group = *groups_[number];
  for (size_t k = 0; k < group.counts.size(); ++k) {
    Count& count = group.counts[k];
    Step step;
    std::vector<Given> given;
    for (Slot& s : group.slots) {
      if (s.count != k) continue;
      const Tensor g = gradient_for_update(update, s.param);
      if (!g.defined()) continue;
      Parameter& p = step.parameters.emplace_back();
      p.gradient = handle_on(g);
      p.weight = handle_on(weight_of(s));
      Given& before = given.emplace_back(Given{&s, p.weight.cell()->current(), {}});
      for (const Tensor& t : s.state) {
        p.state.tensors_.push_back(handle_on(t));
        before.state.push_back(p.state.tensors_.back().cell()->current());
      }
    }
    if (given.empty()) continue;
    const Device device = count.steps.device();
    const Tensor after = count.steps + 1.0;
    step.group = number;
    step.options_ = &group.options;
    step.count = handle_on(after);
    step.lr = argument_on(group.lr, device);
    if (group.momentum) step.momentum.number = *group.momentum;
    if (group.momentum_moves) step.momentum.argument = argument_on(group.momentum, device);
    NodeRef product;
    if (group.product) {
      step.product = handle_on(count.product);
      product = step.product.cell()->current();
    }
    this->update(step);
    if (step.parameters.size() != given.size())
      throw Error(ErrorKind::State, "step", "the formula changed the list of parameters",
                  update.loc);
    for (size_t i = 0; i < given.size(); ++i) {
      const Parameter& p = step.parameters[i];
      Slot& s = *given[i].slot;
      if (is_replaced(p.weight, given[i].weight)) {
        check_value(p.weight, *given[i].weight, "weight", s.param, update.loc);
        update.set_weight(s, p.weight);
      }
      for (size_t t = 0; t < s.state.size(); ++t) {
        if (!is_replaced(p.state[t], given[i].state[t])) continue;
        check_value(p.state[t], *given[i].state[t], "state " + std::to_string(t), s.param,
                    update.loc);
        update.assign(s.state[t], p.state[t], false);
      }
    }
    if (product && is_replaced(step.product, product)) {
      check_value(step.product, *product, "product", given[0].slot->param, update.loc);
      update.assign(count.product, step.product, false);
    }
    update.assign(count.steps, after, false);
  }
}

}  // namespace ingot::optim
