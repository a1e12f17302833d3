// The part all optimisers share: groups, recording a step, running it, taking it back.
#include <algorithm>

#include "autograd/leaves.h"
#include "graph/leaf.h"
#include "graph/recorder.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "ingot/runtime.h"
#include "optim/update.h"

namespace ingot::optim {
namespace {

Node* node_of(const Tensor& t) { return t.cell()->node.get(); }

void bind(const Optimizer::Update::Change& c, const NodeRef& n) {
  if (c.parameter) autograd::rebind_leaf(*c.cell, n);
  else c.cell->rebind(n);
}

void check_parameter(const Tensor& p, size_t number, const std::vector<Tensor>& before, const SourceLoc& loc) {
  if (!p.defined()) throw Error(ErrorKind::State, "optimizer", "parameter " + std::to_string(number) + " is undefined", loc);
  Node* n = node_of(p);
  if (!p.cell()->meta || !n->leaf)
    throw Error(ErrorKind::Autograd, "optimizer",
                "parameter " + std::to_string(number) + ", " + describe(*n) + ", is not a leaf that requires a gradient", loc,
                "call requires_grad_() on the tensor itself, not on the result of an operation");
  for (const Tensor& other : before)
    if (other.cell() == p.cell())
      throw Error(ErrorKind::Autograd, "optimizer", describe(*n) + " is named twice", loc, "give each parameter once");
}

}  // namespace

Optimizer::Optimizer() = default;
Optimizer::~Optimizer() = default;

DType compute_type(const Tensor& p) { return is_half(p.dtype()) ? float32 : p.dtype(); }

Tensor as_scalar_of(const Tensor& value, const Tensor& p) {
  Tensor v = value.dtype() == compute_type(p) ? value : value.to(compute_type(p));
  return v.device() == p.device() ? v : v.to(p.device());
}

Tensor& Optimizer::Group::count_on(const Device& d) {
  for (Tensor& c : counts)
    if (c.device() == d) return c;
  return counts.emplace_back(zeros({}, {float64, d}));
}

Tensor Optimizer::Group::lr_on(const Device& d) const {
  Attrs at;
  at.f = *lr;
  at.dtype = float64;
  at.device = d;
  at.arg_source = lr;
  return tensor_of(ingot::record(Op::Arg, {}, at, user_loc(SourceLoc::current())));
}

void Optimizer::add_group(const std::vector<Tensor>& params, double lr, int states, bool third_state, SourceLoc loc) {
  loc = user_loc(loc);
  LocScope scope(loc);
  NoGrad guard;
  if (params.empty())
    throw Error(ErrorKind::Value, "optimizer", "there are no parameters", loc, "pass model.parameters()");
  std::vector<Tensor> before = this->params(), fresh;
  auto group = std::make_unique<Group>();
  *group->lr = lr;
  for (const Tensor& p : params) {
    check_parameter(p, before.size(), before, loc);
    before.push_back(p);
    Slot slot{p, {}};
    for (int s = 0; s < states + (third_state ? 1 : 0); ++s)
      fresh.push_back(slot.state.emplace_back(zeros(p.shape(), {compute_type(p), p.device()})));
    group->count_on(p.device());
    fresh.push_back(p);
    group->slots.push_back(std::move(slot));
  }
  for (const Tensor& c : group->counts) fresh.push_back(c);
  eval(fresh, loc);
  groups_.push_back(std::move(group));
}

void Optimizer::Update::assign(Tensor& target, const Tensor& value, bool parameter) {
  Tensor v = value;
  if (good.defined()) v = where(good.to(target.device()), value, target.to(value.dtype()));
  if (v.dtype() != target.dtype()) v = v.to(target.dtype());
  NodeRef after = ingot::record(Op::Assign, {node_of(target), node_of(v)}, {}, loc);
  changes.push_back({CellRef(target.cell()), after, parameter});
}

void Optimizer::Update::consume_gradients() {
  for (Gradient& g : gradients) {
    Cell* cell = g.param.cell()->meta->grad.get();
    if (cell && cell->refs.load() > 1) g.cell = CellRef(cell);
    g.param.set_grad({});
  }
}

void Optimizer::Update::take_back() {
  // After a launch the new nodes have their values, which are the old ones, and what they were computed from is gone.
  bool launched = false;
  for (const Change& c : changes) launched = launched || c.after->computed;
  if (launched) return;
  for (const Gradient& g : gradients)
    if (!g.param.cell()->meta->grad) g.param.set_grad(g.cell ? tensor_of(g.cell) : tensor_of(NodeRef(g.grad)));
  for (const Change& c : changes)
    if (c.after->n_inputs > 0) bind(c, NodeRef(c.after->in[0]));
}

Tensor gradient_for_update(Optimizer::Update& update, const Tensor& p) {
  Tensor g = p.grad();
  if (!g.defined()) return {};
  update.gradients.push_back({p, node_of(g), {}});
  if (g.dtype() != compute_type(p)) g = g.to(compute_type(p));
  return update.factor.defined() ? g * as_scalar_of(update.factor, p) : g;
}

std::unique_ptr<Optimizer::Update> Optimizer::record(const Tensor& good, const Tensor& factor, SourceLoc loc) {
  loc = user_loc(loc);
  LocScope scope(loc);
  NoGrad guard;
  auto update = std::make_unique<Update>();
  update->good = good;
  update->factor = factor;
  update->loc = loc;
  for (size_t i = 0; i < groups_.size(); ++i) update_group(i, *groups_[i], *update);
  // Only now, with everything recorded, do the cells name the new values: an error on the way changes nothing.
  for (const Update::Change& c : update->changes) bind(c, c.after);
  return update;
}

void Optimizer::run(const std::vector<Update*>& updates, bool keep_gradients, SourceLoc loc) {
  std::vector<Node*> nodes;
  for (Update* u : updates) {
    u->good = u->factor = Tensor();
    for (Update::Change& c : u->changes) nodes.push_back(c.after.get());
    if (!keep_gradients) u->consume_gradients();
  }
  Recorder::current().segment_open = false;
  try {
    materialise(nodes, user_loc(loc));
  } catch (...) {
    for (Update* u : updates) u->take_back();
    throw;
  }
}

void Optimizer::step(bool keep_gradients, SourceLoc loc) {
  std::unique_ptr<Update> update = record({}, {}, loc);
  if (!update->changes.empty()) run({update.get()}, keep_gradients, loc);
}

void Optimizer::zero_grad(SourceLoc loc) {
  for (auto& g : groups_)
    for (Slot& s : g->slots) s.param.zero_grad(loc);
}

size_t Optimizer::group_count() const { return groups_.size(); }

static void check_group(size_t group, size_t count, const char* op, const SourceLoc& loc) {
  if (group < count) return;
  throw Error(ErrorKind::Index, op, "there is no group " + std::to_string(group) + ", only " + std::to_string(count), user_loc(loc));
}

double Optimizer::lr(size_t group, SourceLoc loc) const {
  check_group(group, groups_.size(), "lr", loc);
  return *groups_[group]->lr;
}

void Optimizer::set_lr(double lr, size_t group, SourceLoc loc) {
  check_group(group, groups_.size(), "set_lr", loc);
  *groups_[group]->lr = lr;
}

void Optimizer::set_lr(double lr, SourceLoc) {
  for (auto& g : groups_) *g->lr = lr;
}

void Optimizer::scale_lr(double factor) {
  for (auto& g : groups_) *g->lr *= factor;
}

std::vector<Tensor> Optimizer::params() const {
  std::vector<Tensor> result;
  for (auto& g : groups_)
    for (Slot& s : g->slots) result.push_back(s.param);
  return result;
}

std::vector<Tensor> Optimizer::state() const {
  std::vector<Tensor> result;
  for (auto& g : groups_) {
    for (Slot& s : g->slots) result.insert(result.end(), s.state.begin(), s.state.end());
    result.insert(result.end(), g->counts.begin(), g->counts.end());
  }
  return result;
}

}  // namespace ingot::optim
