// backward(), grad() and what a Tensor says about its own gradient.
#include "autograd/engine.h"
#include "autograd/hooks.h"
#include "autograd/leaves.h"
#include "graph/leaf.h"
#include "graph/lift.h"
#include "graph/recorder.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"

namespace ingot {
namespace {

// The gradient a walk starts with: the given one, or 1 for a single element.
Tensor start_gradient(const NodeRef& root, const Tensor& given, const char* op,
                      const SourceLoc& loc) {
  if (!root->requires_grad)
    throw Error(ErrorKind::Autograd, op,
                describe(*root) + " does not depend on anything that requires a gradient",
                user_loc(loc),
                "call requires_grad_() on the parameters before the forward, outside of NoGrad and "
                "detach()");
  if (!given.defined()) {
    if (root->numel() != 1)
      throw Error(
          ErrorKind::Autograd, op,
          describe(*root) + " has more than one element, so its gradient must be given",
          user_loc(loc),
          "reduce it with sum() or mean(), or pass a gradient of shape " + to_string(root->shape));
    return full(root->shape, 1.0, {root->dtype, root->device});
  }
  NodeRef g = node_of(given);
  if (!(g->shape == root->shape))
    throw Error(ErrorKind::Shape, op,
                "the gradient is " + describe(*g) + ", but the result is " + describe(*root),
                user_loc(loc), "pass a gradient of shape " + to_string(root->shape));
  if (g->device != root->device)
    throw Error(ErrorKind::Device, op,
                "the gradient is " + describe(*g) + ", but the result is " + describe(*root),
                user_loc(loc), "move it with gradient.to(\"" + root->device.name() + "\")");
  return g->dtype == root->dtype ? given : given.to(root->dtype);
}

}  // namespace

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph,
                      SourceLoc loc) const {
  NodeRef root = ingot::node_of(*this, "backward", loc);
  LocScope scope(user_loc(loc));
  std::pair<NodeRef, Tensor> start{root, start_gradient(root, gradient, "backward", loc)};
  autograd::WalkOptions o;
  o.retain_graph = retain_graph || create_graph;
  o.create_graph = create_graph;
  autograd::walk({&start, 1}, o, user_loc(loc));
  if (!create_graph) Recorder::current().segment_open = true;
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs, std::optional<bool> retain_graph,
                         bool create_graph, bool allow_unused, SourceLoc loc) {
  LocScope scope(user_loc(loc));
  if (!grad_outputs.empty() && grad_outputs.size() != outputs.size())
    throw Error(ErrorKind::Autograd, "grad",
                std::to_string(grad_outputs.size()) + " grad_outputs for " +
                    std::to_string(outputs.size()) + " outputs",
                user_loc(loc), "pass one per output, or none");
  std::vector<std::pair<NodeRef, Tensor>> roots;
  for (size_t i = 0; i < outputs.size(); ++i) {
    NodeRef n = ingot::node_of(outputs[i], "grad", loc);
    roots.emplace_back(
        n, start_gradient(n, grad_outputs.empty() ? Tensor() : grad_outputs[i], "grad", loc));
  }
  std::vector<NodeRef> wanted;
  for (const Tensor& t : inputs) {
    wanted.push_back(ingot::node_of(t, "grad", loc));
    if (!wanted.back()->requires_grad)
      throw Error(ErrorKind::Autograd, "grad",
                  "input " + std::to_string(wanted.size() - 1) + ", " + describe(*wanted.back()) +
                      ", does not require a gradient",
                  user_loc(loc), "call requires_grad_() on it before the forward");
  }
  if (wanted.empty()) return {};
  autograd::WalkOptions o;
  o.retain_graph = retain_graph.value_or(create_graph);
  o.create_graph = create_graph;
  o.accumulate = false;
  o.wanted = pointers(wanted);
  std::vector<Tensor> grads = autograd::walk(roots, o, user_loc(loc));
  for (size_t i = 0; i < grads.size(); ++i)
    if (!grads[i].defined() && !allow_unused)
      throw Error(ErrorKind::Autograd, "grad",
                  "input " + std::to_string(i) + ", " + describe(*wanted[i]) +
                      ", was not used for the outputs",
                  user_loc(loc),
                  "leave it out, or pass allow_unused=true to get an undefined Tensor for it");
  return grads;
}

Tensor& Tensor::requires_grad_(bool on, SourceLoc loc) {
  NodeRef n = ingot::node_of(*this, "requires_grad_", loc);
  if (on && !is_float(n->dtype))
    throw Error(ErrorKind::DType, "requires_grad_",
                describe(*n) + " is not floating, so it has no gradient", user_loc(loc),
                "convert it with .to(float32)");
  if (n->requires_grad && !n->leaf) {
    if (on) return *this;
    throw Error(ErrorKind::Autograd, "requires_grad_",
                describe(*n) + " is the result of an operation", user_loc(loc),
                "use detach() for a tensor without history");
  }
  n = NodeRef();  // a node that has other uses would not become the leaf
  autograd::set_requires_grad(*cell_, on, user_loc(loc));
  return *this;
}

Tensor Tensor::grad(SourceLoc loc) const {
  NodeRef n = ingot::node_of(*this, "grad", loc);
  if (LeafMeta* meta = cell_->meta.get()) {
    std::lock_guard lock(side_mutex(meta));
    return tensor_of(meta->grad);
  }
  if (auto kept = autograd::retained_gradient(n)) return tensor_of(std::move(*kept));
  if (n->requires_grad)
    throw Error(ErrorKind::Autograd, "grad",
                describe(*n) + " is the result of an operation, which keeps no gradient",
                user_loc(loc),
                "call retain_grad() on it before backward(), or use grad(outputs, inputs)");
  return {};
}

void Tensor::set_grad(const Tensor& gradient, SourceLoc loc) const {
  NodeRef n = ingot::node_of(*this, "set_grad", loc);
  LeafMeta* meta = cell_->meta.get();
  if (!meta) {
    if (!gradient.defined()) return;
    throw Error(ErrorKind::Autograd, "set_grad", describe(*n) + " does not require a gradient",
                user_loc(loc), "call requires_grad_() on it first");
  }
  if (gradient.defined()) {
    NodeRef g = node_of(gradient);
    if (!(g->shape == n->shape) || g->dtype != n->dtype || g->device != n->device)
      throw Error(g->shape == n->shape ? ErrorKind::DType : ErrorKind::Shape, "set_grad",
                  "the gradient is " + describe(*g) + ", but the tensor is " + describe(*n),
                  user_loc(loc), "pass a gradient of the same shape, type and device");
  }
  CellRef now(gradient.cell());  // and then what was there, released when the lock is
  std::lock_guard lock(side_mutex(meta));
  std::swap(meta->grad, now);
  meta->stepped = meta->taken = false;
}

void Tensor::retain_grad(SourceLoc loc) const {
  NodeRef n = ingot::node_of(*this, "retain_grad", loc);
  if (!n->requires_grad)
    throw Error(ErrorKind::Autograd, "retain_grad", describe(*n) + " does not require a gradient",
                user_loc(loc), "call requires_grad_() on a parameter it depends on");
  if (!n->leaf) autograd::retain_grad(n);
}

}  // namespace ingot
