// checkpoint(): a CustomBackward that records the function once more when its gradient is needed.
#include <functional>
#include <memory>

#include "autograd/engine.h"
#include "graph/leaf.h"
#include "graph/lift.h"
#include "graph/thread_state.h"
#include "ingot/amp.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "ops/autocast.h"
#include "ops/custom_function.h"

namespace ingot {
namespace {

// Tensors with the same values without history, each with a new cell.
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

  // Records fn once more, below fences that wait for a gradient, and lets the walk continue
  // through that graph: the fences lead it back to the inputs.
  std::vector<std::pair<NodeRef, Tensor>> backward(const std::vector<Tensor>& grads) override {
    EnableGrad on;
    SameRandom random(seed, offset);
    amp::Autocast types(autocast_to, autocast);
    const ThreadScope<&ThreadState::recomputing> again_now(true);
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
  // Separate cells: an in-place call on an input must not reach the recomputation.
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
