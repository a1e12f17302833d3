// What happens to parameters and gradients between two steps: parameters that are
// converted or moved, that step apart from their group, or move to another optimiser;
// gradients that the program still reads.
#include <map>
#include <tuple>
#include <unordered_map>

#include "autograd/leaves.h"
#include "graph/leaf.h"
#include "ingot/autograd.h"
#include "ingot/capture.h"
#include "ingot/ops.h"
#include "ingot/runtime.h"
#include "optim/update.h"

namespace ingot::optim {
namespace {

// 0-d, and computed immediately: a run for its sake would split forward and backward from the
// step's plan.
Tensor number_on(double value, const Device& d) {
  return from_data(&value, float64, {}, {float64, d});
}

// A separate count with the same values.
Count copy_of(const Count& c, const Device& d) {
  Count copy{number_on(c.moved ? c.steps.item() : 0, d), {}, c.moved};
  if (c.product.defined()) copy.product = number_on(c.moved ? c.product.item() : 1, d);
  return copy;
}

bool is_like(const Tensor& t, DType dtype, const Device& d) {
  NodeRef n = t.cell()->current();
  return n->dtype == dtype && n->device == d;
}

// Converts or moves a tensor of the optimiser's; false: nothing to do.
bool convert(Tensor& t, DType dtype, const Device& d) {
  if (is_like(t, dtype, d)) return false;
  t = t.to(dtype).to(d);
  return true;
}

bool has_gradient(const Tensor& p) {
  const LeafMeta* meta = p.cell()->meta.get();
  if (!meta) return false;
  std::lock_guard lock(side_mutex(meta));
  return static_cast<bool>(meta->grad);
}

// Is there one, or was there, until a step took it?
bool had_gradient(const Tensor& p) {
  const LeafMeta* meta = p.cell()->meta.get();
  if (!meta) return false;
  std::lock_guard lock(side_mutex(meta));
  return meta->taken || meta->grad;
}

// State in the types and on the devices of its parameters.
void convert_state(Optimizer::Group& group, std::vector<Tensor>& fresh) {
  std::map<std::pair<size_t, std::string>, size_t> moved;  // counts on other devices
  for (Slot& s : group.slots) {
    NodeRef n = s.param.cell()->current();
    const Device d = n->device;
    const DType type = is_half(n->dtype) ? float32 : n->dtype;
    for (Tensor& t : s.state)
      if (convert(t, type, d)) fresh.push_back(t);
    if (!is_half(n->dtype)) {
      s.master = Tensor();
    } else if (s.master.defined()) {
      if (convert(s.master, float32, d)) fresh.push_back(s.master);
    } else if (group.masters) {
      fresh.push_back(s.master = s.param.detach().to(float32));
    }
    if (group.counts[s.count].steps.cell()->current()->device == d) continue;
    auto [at, first] = moved.try_emplace({s.count, d.name()}, group.counts.size());
    if (first) group.counts.push_back(copy_of(group.counts[s.count], d));
    s.count = at->second;
  }
}

// Where only some of the parameters of a count have a gradient, those continue with a separate
// count.
bool split_counts(Optimizer::Group& group) {
  const size_t n = group.counts.size();
  std::vector<size_t> with(n), all(n);
  std::vector<bool> has(group.slots.size());
  for (size_t i = 0; i < has.size(); ++i) {
    has[i] = has_gradient(group.slots[i].param);
    ++all[group.slots[i].count];
    with[group.slots[i].count] += has[i];
  }
  for (size_t k = 0; k < n; ++k) {
    size_t own = k;
    // Tensors created in a captured function are created again in each run, so a count cannot begin
    // there.
    if (with[k] > 0 && with[k] < all[k] && !is_capturing()) {
      own = group.counts.size();
      group.counts.push_back(copy_of(group.counts[k], group.counts[k].steps.device()));
      for (size_t i = 0; i < has.size(); ++i)
        if (has[i] && group.slots[i].count == k) group.slots[i].count = own;
    }
    if (with[k] > 0) group.counts[own].moved = true;
  }
  return group.counts.size() > n;
}

// Counts that no parameter uses any more are removed.
void drop_unused(Optimizer::Group& group) {
  std::vector<size_t> to(group.counts.size(), SIZE_MAX);
  std::vector<Count> kept;
  for (Slot& s : group.slots) {
    if (to[s.count] == SIZE_MAX) {
      to[s.count] = kept.size();
      kept.push_back(group.counts[s.count]);
    }
    s.count = to[s.count];
  }
  group.counts = std::move(kept);
}

}  // namespace

size_t Optimizer::Group::count_on(const Device& d) {
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i].steps.device() == d) return i;
  Count& c = counts.emplace_back();
  c.steps = zeros({}, {float64, d});
  if (product) c.product = ones({}, {float64, d});
  return counts.size() - 1;
}

bool Optimizer::Group::on_one_device() const {
  for (const Count& c : counts)
    if (c.steps.cell()->current()->device != counts[0].steps.cell()->current()->device)
      return false;
  return true;
}

void Optimizer::Group::follow_parameters() {
  std::vector<Tensor> fresh;
  const size_t before = counts.size();
  convert_state(*this, fresh);
  if (split_counts(*this) || counts.size() > before) drop_unused(*this);
  if (!fresh.empty() && !is_capturing()) eval(fresh);
}

// ---- For code that wraps this optimiser in its own

std::vector<Optimizer::ParameterState> Optimizer::parameter_states() const {
  std::vector<ParameterState> all;
  for (const auto& g : groups_)
    for (const Slot& s : g->slots)
      all.push_back(
          {s.param, s.state, s.master, g->counts[s.count].steps, g->counts[s.count].product});
  return all;
}

void Optimizer::set_steps(const std::vector<double>& steps, const std::vector<double>& products,
                          SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  if (steps.size() != params().size() || products.size() != steps.size())
    throw Error(ErrorKind::State, "load_state_dict",
                std::to_string(steps.size()) + " counts of steps for " +
                    std::to_string(params().size()) + " parameters",
                loc);
  size_t i = 0;
  for (const auto& g : groups_) {
    std::map<std::tuple<std::string, double, double>, size_t> known;
    g->counts.clear();
    for (Slot& s : g->slots) {
      const Device d = s.param.device();
      const double product = g->product ? products[i] : 0;
      auto [at, first] = known.try_emplace({d.name(), steps[i], product}, g->counts.size());
      if (first) {
        Count& c = g->counts.emplace_back();
        c.steps = number_on(steps[i], d);
        if (g->product) c.product = number_on(product, d);
        c.moved = steps[i] != 0;
      }
      s.count = at->second;
      ++i;
    }
  }
}

void Optimizer::adopt(const Optimizer& other) {
  std::unordered_map<const Cell*, std::pair<const Group*, const Slot*>> known;
  for (const auto& g : other.groups_)
    for (const Slot& s : g->slots) known[s.param.cell()] = {g.get(), &s};
  for (const auto& g : groups_) {
    std::map<const Count*, size_t> taken;
    for (Slot& s : g->slots) {
      const auto at = known.find(s.param.cell());
      if (at == known.end()) continue;
      const auto& [from, slot] = at->second;
      for (size_t i = 0; i < std::min(s.state.size(), slot->state.size()); ++i)
        s.state[i] = slot->state[i];
      if (s.master.defined() && slot->master.defined()) s.master = slot->master;
      const Count* count = &from->counts[slot->count];
      auto [index, first] = taken.try_emplace(count, g->counts.size());
      if (first) {
        g->counts.push_back(*count);
        if (g->product != from->product) g->counts.back().product = Tensor();
      }
      s.count = index->second;
    }
    drop_unused(*g);
  }
  for (size_t i = 0; i < std::min(groups_.size(), other.groups_.size()); ++i) {
    groups_[i]->momentum_moves = groups_[i]->momentum && other.groups_[i]->momentum_moves;
    groups_[i]->initial_lr = other.groups_[i]->initial_lr;
  }
  averages_ = other.averages_;
  kept_steps_ = other.kept_steps_;
  keep_ = other.keep_;
}

// ---- Gradients after a step

bool Optimizer::keeps_gradients(SourceLoc loc) {
  constexpr int kFirst = 2;
  if (is_capturing()) return false;  // its plan is for all runs
  bool lost = false;
  for (const auto& g : groups_)
    for (const Slot& s : g->slots) {
      LeafMeta* meta = s.param.cell()->meta.get();
      if (!meta) continue;
      std::lock_guard lock(side_mutex(meta));
      lost = lost || meta->taken;
      keep_ = keep_ || meta->used_after || (meta->stepped && meta->grad);
      meta->used_after = false;
    }
  if (lost)
    throw Error(
        ErrorKind::State, "step",
        "the previous step consumed the gradients, and they were not cleared since: PyTorch would "
        "add to them, or apply them again",
        user_loc(loc),
        "call zero_grad() before each backward(), or step(keep_gradients=True) in every step");
  return keep_ || kept_steps_++ < kFirst;
}

void zero_gradients(const std::vector<Tensor>& params, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  for (const Tensor& p : params) {
    if (p.defined() && had_gradient(p)) p.set_grad(zeros_like(p), loc);
  }
}

Tensor gradient_of(const Tensor& leaf, SourceLoc loc) {
  if (LeafMeta* meta = leaf.defined() ? leaf.cell()->meta.get() : nullptr) {
    std::lock_guard lock(side_mutex(meta));
    if (meta->stepped && meta->grad) meta->used_after = true;
    if (meta->taken && !meta->grad)
      throw Error(ErrorKind::Autograd, "grad", "optimizer.step() consumed this gradient",
                  user_loc(loc),
                  "read it before step(), or keep it with step(keep_gradients=True)");
  }
  return leaf.grad(loc);
}

}  // namespace ingot::optim
