// An optimiser's state, by name, for checkpoints.
#include "ingot/state.h"

#include <algorithm>
#include <cmath>

#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "ingot/optim.h"
#include "optim/update.h"

namespace ingot::optim {
namespace {

void append(std::vector<Tensor>& to, const std::vector<Slot>& slots) {
  for (const Slot& s : slots) {
    to.insert(to.end(), s.state.begin(), s.state.end());
    if (s.master.defined()) to.push_back(s.master);
  }
}

// One number per parameter, however many share a count.
Tensor per_parameter(const Optimizer::Group& group, Tensor Count::*which) {
  const Device d = group.slots[0].param.device();
  std::vector<Tensor> runs;
  for (size_t i = 0, end = 0; i < group.slots.size(); i = end) {
    while (end < group.slots.size() && group.slots[end].count == group.slots[i].count) ++end;
    const Tensor value = group.counts[group.slots[i].count].*which;
    runs.push_back(value.to(d).reshape({1}).expand({static_cast<int64_t>(end - i)}));
  }
  return runs.size() == 1 ? runs[0] : cat(runs);
}

// Counts of steps are integers, and neither they nor products are NaN: parameters are grouped by
// them.
void check_counts(const std::vector<double>& steps, const std::vector<double>& products,
                  const SourceLoc& loc) {
  const auto count = [](double v) { return !std::signbit(v) && v <= 0x1p53 && std::floor(v) == v; };
  const auto number = [](double v) { return !std::isnan(v); };
  if (std::all_of(steps.begin(), steps.end(), count) &&
      std::all_of(products.begin(), products.end(), number))
    return;
  throw Error(ErrorKind::State, "load_state_dict", "the state has invalid counts of steps", loc);
}

}  // namespace

std::vector<Tensor> Optimizer::state() const {
  std::vector<Tensor> result;
  for (const auto& g : groups_) {
    append(result, g->slots);
    for (const Count& c : g->counts)
      if (c.product.defined()) result.push_back(c.product);
    for (const Count& c : g->counts) result.push_back(c.steps);
  }
  return result;
}

StateDict Optimizer::state_dict() const {
  NoGrad guard;
  StateDict d;
  std::vector<Tensor> all;
  for (const auto& g : groups_) append(all, g->slots);
  for (size_t i = 0; i < all.size(); ++i)
    d.tensors.emplace_back("state." + std::to_string(i), all[i]);
  d.set("groups", group_count());
  for (size_t g = 0; g < group_count(); ++g) {
    const std::string number = std::to_string(g);
    d.set("lr." + number, lr(g));
    d.tensors.emplace_back("steps." + number, per_parameter(*groups_[g], &Count::steps));
    if (groups_[g]->product)
      d.tensors.emplace_back("products." + number, per_parameter(*groups_[g], &Count::product));
  }
  return d;
}

void Optimizer::load_state_dict(const StateDict& d, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  std::vector<Tensor> all;
  size_t tensors = 0;
  for (const auto& g : groups_) {
    append(all, g->slots);
    tensors += g->product ? 2 : 1;
  }
  tensors += all.size();
  if (d.tensors.size() != tensors || d.unsigned_integer("groups", loc) != group_count())
    throw Error(ErrorKind::State, "load_state_dict",
                "the state has " + std::to_string(d.tensors.size()) + " tensors in " +
                    d.text("groups", loc) + " groups, this optimiser " + std::to_string(tensors) +
                    " in " + std::to_string(group_count()),
                loc,
                "create the optimiser over the same parameters with the same options as the one "
                "that was saved");
  std::vector<std::pair<Tensor, Tensor>> pairs;
  for (size_t i = 0; i < all.size(); ++i)
    pairs.emplace_back(all[i], d.tensor("state." + std::to_string(i), loc));
  std::vector<double> rates, steps, products;
  for (size_t g = 0; g < group_count(); ++g) {
    const std::string number = std::to_string(g);
    rates.push_back(d.number("lr." + number, loc));
    const auto add = [&](std::vector<double>& to, const std::string& name) {
      const Tensor& t = d.tensor(name, loc);
      if (t.numel() != static_cast<int64_t>(groups_[g]->slots.size()))
        throw Error(ErrorKind::Shape, "load_state_dict",
                    "\"" + name + "\" has " + std::to_string(t.numel()) + " elements for " +
                        std::to_string(groups_[g]->slots.size()) + " parameters",
                    loc);
      const std::vector<double> values = t.to_vector<double>();
      to.insert(to.end(), values.begin(), values.end());
    };
    add(steps, "steps." + number);
    if (groups_[g]->product) add(products, "products." + number);
    check_counts(steps, products, loc);
    products.resize(steps.size());
  }
  assign_all(pairs, loc);
  set_steps(steps, products, loc);
  for (size_t g = 0; g < group_count(); ++g) set_lr(rates[g], g, loc);
}

}  // namespace ingot::optim
