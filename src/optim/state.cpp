// What an optimiser must remember, under names, for checkpoints.
#include "ingot/state.h"

#include <sstream>

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

void append(std::vector<Tensor>& to, const std::vector<Count>& counts) {
  for (const Count& c : counts)
    if (c.product.defined()) to.push_back(c.product);
  for (const Count& c : counts) to.push_back(c.steps);
}

// "0 0 1": which count each parameter has.
std::string text_of(const std::vector<Slot>& slots) {
  std::string text;
  for (const Slot& s : slots) text += (text.empty() ? "" : " ") + std::to_string(s.count);
  return text;
}

// Counts as a saved text deals them out, with values to be filled in; empty: the text does not fit.
std::vector<Count> dealt(const std::string& text, const Optimizer::Group& group, std::vector<size_t>& which) {
  std::istringstream in(text);
  std::vector<Count> counts;
  for (size_t k = 0; in >> k;) {
    if (which.size() == group.slots.size() || k > counts.size()) return {};
    const Device d = group.slots[which.size()].param.device();
    if (k == counts.size())
      counts.push_back({zeros({}, {float64, d}), group.product ? zeros({}, {float64, d}) : Tensor(), true});
    if (counts[k].steps.device() != d) return {};
    which.push_back(k);
  }
  return which.size() == group.slots.size() && in.eof() ? counts : std::vector<Count>();
}

}  // namespace

std::vector<Tensor> Optimizer::state() const {
  std::vector<Tensor> result;
  for (const auto& g : groups_) {
    append(result, g->slots);
    append(result, g->counts);
  }
  return result;
}

StateDict Optimizer::state_dict() const {
  StateDict d;
  std::vector<Tensor> all = state();
  for (size_t i = 0; i < all.size(); ++i) d.tensors.emplace_back("state." + std::to_string(i), all[i]);
  d.set("groups", group_count());
  for (size_t g = 0; g < group_count(); ++g) {
    d.set("lr." + std::to_string(g), lr(g));
    d.set("counts." + std::to_string(g), text_of(groups_[g]->slots));
  }
  return d;
}

void Optimizer::load_state_dict(const StateDict& d, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  std::vector<Tensor> all;
  std::vector<std::vector<Count>> counts(group_count());
  std::vector<std::vector<size_t>> which(group_count());
  bool fits = d.unsigned_integer("groups", loc) == group_count();
  for (size_t g = 0; fits && g < group_count(); ++g) {
    counts[g] = dealt(d.text("counts." + std::to_string(g), loc), *groups_[g], which[g]);
    fits = !counts[g].empty();
    append(all, groups_[g]->slots);
    append(all, counts[g]);
  }
  if (!fits || d.tensors.size() != all.size())
    throw Error(
        ErrorKind::State, "load_state_dict",
        "the state has " + std::to_string(d.tensors.size()) + " tensors in " + d.text("groups", loc) +
            " groups, this optimiser " + std::to_string(state().size()) + " in " +
            std::to_string(group_count()) + (fits ? "" : ", or it counts the steps of other parameters"),
        loc, "make the optimiser over the same parameters with the same options as the one that was saved");
  std::vector<std::pair<Tensor, Tensor>> pairs;
  for (size_t i = 0; i < all.size(); ++i)
    pairs.emplace_back(all[i], d.tensor("state." + std::to_string(i), loc));
  std::vector<double> rates;
  for (size_t g = 0; g < group_count(); ++g) rates.push_back(d.number("lr." + std::to_string(g), loc));
  assign_all(pairs, loc);
  for (size_t g = 0; g < group_count(); ++g) {
    groups_[g]->counts = std::move(counts[g]);
    for (size_t i = 0; i < which[g].size(); ++i) groups_[g]->slots[i].count = which[g][i];
    set_lr(rates[g], g, loc);
  }
}

}  // namespace ingot::optim
