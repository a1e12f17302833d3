// Running averages of parameters. The optimiser moves them inside its own step
// (Update::set_weight).
#include <memory>

#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "ingot/runtime.h"
#include "optim/update.h"

namespace ingot::optim {

EMA::EMA(Optimizer& optimizer, const EMAOptions& options, SourceLoc where)
    : average_(std::make_shared<Optimizer::Average>()) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  if (!(options.decay >= 0 && options.decay <= 1))
    throw Error(ErrorKind::Value, "EMA", "decay must be in [0, 1]", loc);
  average_->decay = options.decay;
  average_->params = optimizer.params();
  // A product, not clone(), which would share the parameter's memory until one of the two is
  // written.
  for (const Tensor& p : average_->params)
    average_->averages.push_back(p.detach().to(compute_type(p)) * 1.0);
  eval(average_->averages, loc);
  optimizer.follow(average_);
}

std::vector<Tensor> EMA::averages() const { return average_->averages; }

void EMA::swap(SourceLoc where) {
  SourceLoc loc = user_loc(where);
  Optimizer::Average& a = *average_;
  std::vector<std::pair<Tensor, Tensor>> changes;
  if (a.saved.empty()) {
    // The averages themselves are kept: a 16-bit parameter could not restore them exactly.
    for (const Tensor& p : a.params) a.saved.push_back(p.detach().clone());
    eval(a.saved, loc);
    for (size_t i = 0; i < a.params.size(); ++i) changes.emplace_back(a.params[i], a.averages[i]);
  } else {
    for (size_t i = 0; i < a.params.size(); ++i) changes.emplace_back(a.params[i], a.saved[i]);
    a.saved.clear();
  }
  assign_all(changes, loc);
}

StateDict EMA::state_dict() const {
  StateDict d;
  for (size_t i = 0; i < average_->averages.size(); ++i)
    d.tensors.emplace_back("average." + std::to_string(i), average_->averages[i]);
  return d;
}

void EMA::load_state_dict(const StateDict& d, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  std::vector<std::pair<Tensor, Tensor>> changes;
  for (size_t i = 0; i < average_->averages.size(); ++i)
    changes.emplace_back(average_->averages[i], d.tensor("average." + std::to_string(i), loc));
  assign_all(changes, loc);
}

}  // namespace ingot::optim
