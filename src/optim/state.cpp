// What an optimiser and a loss scaler must remember, under names, for checkpoints.
#include "ingot/state.h"
#include "ingot/optim.h"
#include "optim/update.h"

namespace ingot::optim {

StateDict Optimizer::state_dict() const {
  StateDict d;
  std::vector<Tensor> all = state();
  for (size_t i = 0; i < all.size(); ++i) d.tensors.emplace_back("state." + std::to_string(i), all[i]);
  d.set("groups", group_count());
  for (size_t g = 0; g < group_count(); ++g) d.set("lr." + std::to_string(g), lr(g));
  return d;
}

void Optimizer::load_state_dict(const StateDict& d, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  std::vector<Tensor> all = state();
  if (d.tensors.size() != all.size() || d.unsigned_integer("groups", loc) != group_count())
    throw Error(
        ErrorKind::State, "load_state_dict",
        "the state has " + std::to_string(d.tensors.size()) + " tensors in " + d.text("groups", loc) +
            " groups, this optimiser " + std::to_string(all.size()) + " in " + std::to_string(group_count()),
        loc, "make the optimiser over the same parameters with the same options as the one that was saved");
  std::vector<std::pair<Tensor, Tensor>> pairs;
  for (size_t i = 0; i < all.size(); ++i)
    pairs.emplace_back(all[i], d.tensor("state." + std::to_string(i), loc));
  std::vector<double> rates;
  for (size_t g = 0; g < group_count(); ++g) rates.push_back(d.number("lr." + std::to_string(g), loc));
  assign_all(pairs, loc);
  for (size_t g = 0; g < group_count(); ++g) set_lr(rates[g], g, loc);
}

}  // namespace ingot::optim
