// Custom functions and checkpoints: both put a CustomBackward on Alias nodes of what their forward
// computed.
#include <functional>
#include <memory>

#include "autograd/engine.h"
#include "autograd/lift.h"
#include "graph/leaf.h"
#include "ingot/amp.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "ops/autocast.h"
#include "ops/recompute.h"

namespace ingot {
namespace {

using autograd::lift;
using autograd::node_of;

// Tensors on the same values without history, each with a cell of its own.
std::vector<Tensor> detached(const std::vector<Tensor>& tensors, const char* op,
                             const SourceLoc& loc) {
  std::vector<Tensor> result;
  for (const Tensor& t : tensors) {
    if (!t.defined())
      throw Error(ErrorKind::State, op, "an input is undefined", loc, "give it a value first");
    result.push_back(t.requires_grad() ? t.detach() : t);
  }
  return result;
}

// The results as outputs of a node with this gradient.
std::vector<Tensor> outputs_of(const std::shared_ptr<CustomBackward>& custom,
                               const std::vector<Tensor>& results, const SourceLoc& loc) {
  NoGrad guard;
  std::vector<Tensor> outputs;
  for (const Tensor& r : results) {
    NodeRef n = record(Op::Alias, {node_of(r)}, {}, loc);
    if (is_float(n->dtype)) {
      n->requires_grad = true;
      n->extra().custom = custom;
    }
    custom->outputs.push_back(n.get());
    custom->output_seqs.push_back(n->seq);
    custom->output_shapes.push_back(n->shape);
    custom->output_types.emplace_back(n->dtype, n->device);
    outputs.push_back(lift(std::move(n)));
  }
  return outputs;
}

}  // namespace

struct FunctionBackward final : CustomBackward {
  CustomFunction::Backward fn;
  std::shared_ptr<FunctionContext> context;
  SourceLoc loc;
  std::vector<int> saved_output;  // which output saved tensor i is, or -1

  // What the forward saved. An output has a history only in a graph that is differentiated again;
  // it is given it there, since a saved output that led back here would never be released.
  std::vector<Tensor> saved_with_history() const {
    std::vector<Tensor> saved = context->saved();
    auto again = std::make_shared<FunctionBackward>(*this);
    again->outputs.assign(outputs.size(), nullptr);
    for (size_t i = 0; i < saved.size(); ++i) {
      const int k = saved_output[i];
      if (k < 0 || !is_float(saved[i].dtype())) continue;
      NoGrad guard;
      NodeRef n = again->outputs[k] ? NodeRef(again->outputs[k])
                                    : record(Op::Alias, {node_of(saved[i])}, {}, loc);
      n->requires_grad = true;
      n->extra().custom = again;
      again->outputs[k] = n.get();
      again->output_seqs[k] = n->seq;
      saved[i] = lift(std::move(n));
    }
    return saved;
  }

  std::vector<Tensor> gradients(const std::vector<Tensor>& grads) const {
    bool own = false;
    for (int k : saved_output) own = own || k >= 0;
    if (!own || !grad_enabled()) return fn(*context, grads);
    FunctionContext now = *context;
    now.saved_ = saved_with_history();
    return fn(now, grads);
  }

  std::vector<std::pair<NodeRef, Tensor>> backward(const std::vector<Tensor>& grads) override {
    std::vector<Tensor> given = gradients(grads);
    if (given.size() != inputs.size())
      throw Error(ErrorKind::Autograd, name,
                  "the backward returned " + std::to_string(given.size()) + " gradients for " +
                      std::to_string(inputs.size()) + " inputs",
                  loc, "return one per input, an undefined Tensor for none");
    std::vector<std::pair<NodeRef, Tensor>> next;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i].defined() || !inputs[i]->requires_grad) continue;
      NodeRef g = node_of(given[i]);
      if (!(g->shape == inputs[i]->shape) || g->device != inputs[i]->device)
        throw Error(ErrorKind::Shape, name,
                    "the backward returned " + describe(*g) + " for input " + std::to_string(i) +
                        ", " + describe(*inputs[i]),
                    loc, "return a gradient of the input's shape, on its device");
      next.emplace_back(inputs[i],
                        g->dtype == inputs[i]->dtype ? given[i] : given[i].to(inputs[i]->dtype));
    }
    return next;
  }
};

namespace {

using ManyToMany = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Random numbers continue from where the forward began, and after the recomputation from where they
// were.
class SameRandom {
 public:
  SameRandom(uint64_t seed, uint64_t offset)
      : seed_(default_generator().seed()), offset_(default_generator().offset()) {
    set(seed, offset);
  }
  ~SameRandom() { set(seed_, offset_); }
  SameRandom(const SameRandom&) = delete;
  SameRandom& operator=(const SameRandom&) = delete;

 private:
  static void set(uint64_t seed, uint64_t offset) {
    default_generator().manual_seed(seed);
    default_generator().set_offset(offset);
  }
  uint64_t seed_, offset_;
};

struct CheckpointBackward final : CustomBackward {
  ManyToMany fn;
  std::vector<Tensor> originals;
  uint64_t seed = 0, offset = 0;
  bool autocast = false;
  DType autocast_to = DType::BFloat16;
  SourceLoc loc;

  // Records fn once more, below fences that wait for a gradient, and lets the walk go on through
  // that graph: the fences lead it back to the inputs.
  std::vector<std::pair<NodeRef, Tensor>> backward(const std::vector<Tensor>& grads) override {
    EnableGrad on;
    SameRandom random(seed, offset);
    amp::Autocast types(autocast_to, autocast);
    Recomputing again_now;
    std::vector<Tensor> fenced;
    for (const Tensor& t : originals)
      fenced.push_back(lift(record(Op::Fence, {node_of(t), node_of(grads[0])}, {}, loc)));
    std::vector<Tensor> again = fn(fenced);
    bool same = again.size() == grads.size();
    std::vector<std::pair<NodeRef, Tensor>> next;
    for (size_t i = 0; same && i < again.size(); ++i) {
      same = again[i].defined() && node_of(again[i])->shape == output_shapes[i];
      if (same && again[i].requires_grad()) next.emplace_back(NodeRef(node_of(again[i])), grads[i]);
    }
    if (!same)
      throw Error(ErrorKind::Autograd, "checkpoint",
                  "the function gave other results when it was computed again", loc,
                  "let it depend on its inputs only, and compute the same each time");
    return next;
  }
};

// What fn recorded since `since` loses its history: between its inputs and results nothing is kept.
// What it took a gradient from outside of its inputs (parameters) goes to `captured`.
void strip_history(const std::vector<Tensor>& results, uint64_t since,
                   std::vector<NodeRef>& captured) {
  std::vector<NodeRef> stack, next;
  for (const Tensor& r : results) stack.push_back(node_of(r));
  while (!stack.empty()) {
    const NodeRef n = std::move(stack.back());
    stack.pop_back();
    if (!n->requires_grad) continue;
    if (n->seq <= since || n->leaf) {
      captured.emplace_back(n);
      continue;
    }
    n->requires_grad = false;
    autograd::next_nodes(*n, next);
    for (NodeRef& i : next) stack.push_back(std::move(i));
    autograd::drop_custom(*n);  // what was saved for a backward that will not come
  }
}

}  // namespace

void FunctionContext::save_for_backward(std::vector<Tensor> tensors) {
  // Cells of their own: an in-place call after the forward must not reach the backward.
  for (Tensor& t : tensors)
    if (t.defined()) t = lift(node_of(t));
  saved_ = std::move(tensors);
}

CustomFunction::CustomFunction(Forward forward, Backward backward, std::string name)
    : forward_(std::move(forward)), backward_(std::move(backward)), name_(std::move(name)) {}

std::vector<Tensor> CustomFunction::operator()(const std::vector<Tensor>& inputs,
                                               SourceLoc loc) const {
  loc = user_loc(loc);
  LocScope scope(loc);
  auto context = std::make_shared<FunctionContext>();
  bool any = false;
  for (const Tensor& t : inputs) {
    context->needs_.push_back(grad_enabled() && t.defined() && t.requires_grad());
    any = any || context->needs_.back();
  }
  std::vector<Tensor> results = [&] {
    NoGrad guard;
    return forward_(*context, inputs);
  }();
  for (const Tensor& r : results)
    if (!r.defined())
      throw Error(ErrorKind::Autograd, name_, "the forward returned an undefined Tensor", loc,
                  "return values only");
  if (!any) return results;
  auto custom = std::make_shared<FunctionBackward>();
  custom->name = name_;
  custom->fn = backward_;
  custom->context = context;
  custom->loc = loc;
  for (const Tensor& t : inputs) custom->inputs.emplace_back(node_of(t));
  for (const Tensor& saved : context->saved_) {
    int which = -1;
    for (size_t k = 0; k < results.size() && saved.defined() && !saved.requires_grad(); ++k)
      if (node_of(saved) == node_of(results[k])) which = static_cast<int>(k);
    custom->saved_output.push_back(which);
  }
  return outputs_of(custom, results, loc);
}

std::vector<Tensor> checkpoint(const ManyToMany& fn, const std::vector<Tensor>& inputs,
                               SourceLoc loc) {
  loc = user_loc(loc);
  LocScope scope(loc);
  if (!grad_enabled()) return fn(inputs);
  auto custom = std::make_shared<CheckpointBackward>();
  custom->name = "checkpoint";
  custom->fn = fn;
  custom->seed = default_generator().seed();
  custom->offset = default_generator().offset();
  custom->autocast = autocasting();
  if (autocasting()) custom->autocast_to = autocast_type();
  custom->loc = loc;
  std::vector<Tensor> plain = detached(inputs, "checkpoint", loc);
  // Cells of their own: an in-place call on an input must not reach the recomputation.
  for (const Tensor& t : inputs) custom->originals.push_back(lift(node_of(t)));
  uint64_t since = record(Op::Const, {}, {ConstAttrs{}}, loc)->seq;
  std::vector<Tensor> results = fn(plain);
  for (const Tensor& r : results)
    if (!r.defined())
      throw Error(ErrorKind::Autograd, "checkpoint", "the function returned an undefined Tensor",
                  loc, "return values only");
  strip_history(results, since, custom->inputs);
  for (const Tensor& t : inputs)
    if (t.requires_grad()) custom->inputs.emplace_back(node_of(t));
  return custom->inputs.empty() ? results : outputs_of(custom, results, loc);
}

Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& fn,
                  const std::vector<Tensor>& inputs, SourceLoc loc) {
  ManyToMany many = [fn](const std::vector<Tensor>& in) { return std::vector<Tensor>{fn(in)}; };
  return checkpoint(many, inputs, loc)[0];
}

}  // namespace ingot
