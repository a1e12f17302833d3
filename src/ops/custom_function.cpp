// CustomFunction: a CustomBackward on Alias nodes of what the forward computed.
#include "ops/custom_function.h"

#include <memory>

#include "graph/lift.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"

namespace ingot {

void add_output(const std::shared_ptr<CustomBackward>& custom, Node& n) {
  if (is_float(n.dtype)) {
    n.requires_grad = true;
    n.extra().custom = custom;
  }
  custom->outputs.push_back(&n);
  custom->output_seqs.push_back(n.seq);
  custom->output_shapes.push_back(n.shape);
  custom->output_types.emplace_back(n.dtype, n.device);
}

std::vector<Tensor> outputs_of(const std::shared_ptr<CustomBackward>& custom,
                               const std::vector<Tensor>& results, const SourceLoc& loc) {
  NoGrad guard;
  std::vector<Tensor> outputs;
  for (const Tensor& r : results) {
    NodeRef n = record(Op::Alias, {node_of(r)}, {}, loc);
    add_output(custom, *n);
    outputs.push_back(lift(std::move(n)));
  }
  return outputs;
}

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

void FunctionContext::save_for_backward(std::vector<Tensor> tensors) {
  // Separate cells: an in-place call after the forward must not reach the backward.
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

}  // namespace ingot
