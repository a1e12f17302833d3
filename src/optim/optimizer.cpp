// Shared by all optimisers: groups, recording a step, running it, undoing it. What a formula of one
// parameter sees is in formula.cpp.
#include <algorithm>
#include <cmath>
#include <memory>

#include "autograd/leaves.h"
#include "base/host_wait.h"
#include "graph/leaf.h"
#include "graph/recorder.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "ingot/runtime.h"
#include "optim/update.h"

namespace ingot::optim {

// The identical part of every optimiser, kept out of the header, which many programs compile.
#define INGOT_OPTIMIZER(Name)                                                                \
  Name::Name(const std::vector<Tensor>& params, const Name##Options& options, SourceLoc loc) \
      : Name(std::vector<ParamGroup<Name##Options>>{{params, options}}, loc) {}
INGOT_OPTIMIZER(SGD)
INGOT_OPTIMIZER(RMSprop)
INGOT_OPTIMIZER(Adagrad)
INGOT_OPTIMIZER(Adadelta)
INGOT_OPTIMIZER(Adamax)
INGOT_OPTIMIZER(NAdam)
INGOT_OPTIMIZER(RAdam)
INGOT_OPTIMIZER(Lion)
INGOT_OPTIMIZER(Muon)
#undef INGOT_OPTIMIZER

namespace {

NodeRef node_of(const Tensor& t) { return t.cell()->current(); }

void bind(const Optimizer::Update::Change& c, const NodeRef& n) {
  if (c.parameter)
    rebind_leaf(*c.cell, n);
  else
    c.cell->rebind(n);
}

void check_parameter(const Tensor& p, size_t number, const std::vector<Tensor>& before,
                     const SourceLoc& loc) {
  if (!p.defined())
    throw Error(ErrorKind::State, "optimizer",
                "parameter " + std::to_string(number) + " is undefined", loc);
  NodeRef n = node_of(p);
  if (!p.cell()->meta || !n->leaf)
    throw Error(ErrorKind::Autograd, "optimizer",
                "parameter " + std::to_string(number) + ", " + describe(*n) +
                    ", is not a leaf that requires a gradient",
                loc,
                "call requires_grad_() on the tensor itself, not on the result of an operation");
  for (const Tensor& other : before)
    if (other.cell() == p.cell())
      throw Error(ErrorKind::Autograd, "optimizer", describe(*n) + " is given twice", loc,
                  "give each parameter once");
}

}  // namespace

Optimizer::Optimizer() = default;
Optimizer::~Optimizer() = default;

DType compute_type(const Tensor& p) { return is_half(p.dtype()) ? float32 : p.dtype(); }

Tensor as_scalar_of(const Tensor& value, const Tensor& p) {
  Tensor v = value.dtype() == compute_type(p) ? value : value.to(compute_type(p));
  return v.device() == p.device() ? v : v.to(p.device());
}

Tensor weight_of(const Slot& s) {
  return s.master.defined() ? s.master : s.param.to(compute_type(s.param));
}

Tensor bias_correction(double beta, const Tensor& t) {
  return beta == 0 ? ones_like(t) : -expm1(t * std::log(beta));
}

void refuse(const char* name, const char* wrong, const SourceLoc& loc) {
  if (wrong) throw Error(ErrorKind::Value, name, wrong, user_loc(loc));
}

Tensor argument_on(const std::shared_ptr<double>& source, const Device& d) {
  return tensor_of(record_argument(source, float64, d, user_loc(SourceLoc::current())));
}

// What a make_state() returned, as the optimiser's own tensor. A product, not clone(), which would
// share the parameter's memory until one of the two is written.
static Tensor own_state(const Tensor& t, const Tensor& param, size_t number, const SourceLoc& loc) {
  if (!t.defined())
    throw Error(ErrorKind::State, "optimizer",
                "make_state() returned an undefined tensor for parameter " + std::to_string(number),
                loc);
  return t.detach().to(compute_type(param)).to(param.device()) * 1.0;
}

void Optimizer::add_group(const std::vector<Tensor>& params, const GroupOptions& o,
                          std::any options, SourceLoc loc) {
  loc = user_loc(loc);
  LocScope scope(loc);
  NoGrad guard;
  if (params.empty())
    throw Error(ErrorKind::Value, "optimizer", "there are no parameters", loc,
                "pass model.parameters()");
  std::vector<Tensor> before = this->params(), fresh;
  auto group = std::make_shared<Group>();
  group->options = std::move(options);
  *group->lr = o.lr;
  group->product = o.product;
  group->masters = o.master_weights;
  if (o.momentum) group->momentum = std::make_shared<double>(*o.momentum);
  for (const Tensor& p : params) {
    check_parameter(p, before.size(), before, loc);
    before.push_back(p);
    Slot slot{p, {}, {}, 0};
    if (o.make_state) {
      for (const Tensor& t : o.make_state(p.detach()))
        slot.state.push_back(own_state(t, p, before.size() - 1, loc));
    } else {
      for (int s = 0; s < o.states; ++s)
        slot.state.push_back(full(p.shape(), o.initial_state, {compute_type(p), p.device()}));
    }
    fresh.insert(fresh.end(), slot.state.begin(), slot.state.end());
    if (o.master_weights && is_half(p.dtype()))
      fresh.push_back(slot.master = p.detach().to(float32));
    slot.count = group->count_on(p.device());
    fresh.push_back(p);
    group->slots.push_back(std::move(slot));
  }
  for (const Count& c : group->counts) {
    fresh.push_back(c.steps);
    if (c.product.defined()) fresh.push_back(c.product);
  }
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

void Optimizer::Update::set_weight(Slot& s, const Tensor& value) {
  for (const std::shared_ptr<Average>& a : averages)
    for (size_t i = 0; i < a->params.size(); ++i)
      if (a->params[i].cell() == s.param.cell())
        assign(
            a->averages[i],
            a->averages[i] + (value.to(a->averages[i].dtype()) - a->averages[i]) * (1 - a->decay),
            false);
  if (s.master.defined()) assign(s.master, value, false);
  assign(s.param, value, true);
}

static void mark_stepped(const Tensor& p, bool taken) {
  LeafMeta& meta = *p.cell()->meta;
  std::lock_guard lock(side_mutex(&meta));
  meta.stepped = true;
  meta.taken = taken;
}

void Optimizer::Update::consume_gradients() {
  for (Gradient& g : gradients) {
    const Tensor gradient = g.param.grad();  // the leaf has one reference, and this is another
    if (gradient.defined() && gradient.cell()->refs.load() > 2) g.cell = CellRef(gradient.cell());
    g.param.set_grad({});
    mark_stepped(g.param, true);
  }
}

void Optimizer::Update::take_back() {
  // After a launch the new nodes hold the values, which then count as the old ones, and
  // their inputs are released.
  bool launched = false;
  for (const Change& c : changes) launched = launched || c.after->computed;
  if (launched) return;
  for (const Gradient& g : gradients)
    if (!g.param.grad().defined())
      g.param.set_grad(g.cell ? tensor_of(g.cell) : tensor_of(NodeRef(g.grad)));
  for (const Change& c : changes)
    if (c.after->n_inputs > 0) bind(c, NodeRef(c.after->in[0]));
}

Tensor gradient_for_update(Optimizer::Update& update, const Tensor& p) {
  Tensor g = p.grad();
  if (!g.defined()) return {};
  update.gradients.push_back({p, node_of(g).get(), {}});
  if (g.dtype() != compute_type(p)) g = g.to(compute_type(p));
  return update.factor.defined() ? g * as_scalar_of(update.factor, p) : g;
}

std::shared_ptr<Optimizer::Update> Optimizer::record(const Tensor& good, const Tensor& factor,
                                                     SourceLoc loc) {
  loc = user_loc(loc);
  LocScope scope(loc);
  NoGrad guard;
  auto update = std::make_unique<Update>();
  update->good = good;
  update->factor = factor;
  update->loc = loc;
  std::erase_if(averages_, [](const auto& a) { return a.expired(); });
  for (const auto& a : averages_) {
    update->averages.push_back(a.lock());
    if (!update->averages.back()->saved.empty())
      throw Error(ErrorKind::State, "step", "the parameters are exchanged with their averages", loc,
                  "call swap() of the EMA again first");
  }
  for (size_t i = 0; i < groups_.size(); ++i)
    record_group(*groups_[i], *update, [&](Update& u) { record_formula(i, u); });
  // Only now, with everything recorded, do the cells refer to the new values: an error
  // on the way changes nothing.
  for (const Update::Change& c : update->changes) bind(c, c.after);
  return update;
}

void Optimizer::run(const std::vector<Update*>& updates, bool keep_gradients, SourceLoc loc) {
  std::vector<Node*> nodes;
  for (Update* u : updates) {
    u->good = u->factor = Tensor();
    for (Update::Change& c : u->changes) nodes.push_back(c.after.get());
    if (!keep_gradients && !u->keep_gradients) {
      u->consume_gradients();
    } else {
      for (const Update::Gradient& g : u->gradients) mark_stepped(g.param, false);
    }
  }
  Recorder::current().segment_open = false;
  try {
    HostWait wait;
    materialise(nodes, user_loc(loc));
  } catch (...) {
    for (Update* u : updates) u->take_back();
    throw;
  }
}

void Optimizer::step(bool keep_gradients, SourceLoc loc) {
  std::shared_ptr<Update> update = record({}, {}, loc);
  if (!update->changes.empty()) run({update.get()}, keep_gradients, loc);
}

void Optimizer::zero_grad(SourceLoc loc) {
  for (auto& g : groups_)
    for (Slot& s : g->slots) s.param.zero_grad(loc);
}

size_t Optimizer::group_count() const { return groups_.size(); }

static void check_group(size_t group, size_t count, const char* op, const SourceLoc& loc) {
  if (group < count) return;
  throw Error(ErrorKind::Index, op,
              "there is no group " + std::to_string(group) + ", only " + std::to_string(count),
              user_loc(loc));
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

double Optimizer::initial_lr(size_t group) {
  Group& g = *groups_.at(group);
  if (!g.initial_lr) g.initial_lr = *g.lr;
  return *g.initial_lr;
}

static void check_momentum(const Optimizer::Group& g, const char* op, const SourceLoc& loc) {
  if (!g.momentum)
    throw Error(ErrorKind::State, op, "this optimiser was created without momentum", user_loc(loc));
}

double Optimizer::momentum(size_t group, SourceLoc loc) const {
  check_group(group, groups_.size(), "momentum", loc);
  check_momentum(*groups_[group], "momentum", loc);
  return *groups_[group]->momentum;
}

void Optimizer::set_momentum(double momentum, size_t group, SourceLoc loc) {
  check_group(group, groups_.size(), "set_momentum", loc);
  check_momentum(*groups_[group], "set_momentum", loc);
  *groups_[group]->momentum = momentum;
  groups_[group]->momentum_moves = true;
}

void Optimizer::follow(const std::shared_ptr<Average>& average) { averages_.push_back(average); }

void Optimizer::scale_lr(double factor) {
  for (auto& g : groups_) *g->lr *= factor;
}

std::vector<Tensor> Optimizer::params() const {
  std::vector<Tensor> result;
  for (auto& g : groups_)
    for (Slot& s : g->slots) result.push_back(s.param);
  return result;
}

}  // namespace ingot::optim
