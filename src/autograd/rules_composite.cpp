// Gradients of composites. One node stands for the gradient of a call, too: its decomposition is
// what a walk through the call's own decomposition records, and what the two have in common is
// computed once. Where the gradient shall have a history itself, that walk is recorded as it is.
#include "autograd/decompositions.h"
#include "autograd/engine.h"
#include "autograd/rules.h"
#include "graph/composite.h"
#include "graph/lift.h"
#include "graph/thread_state.h"
#include "ingot/ops.h"

namespace ingot::autograd {
namespace {

/// The gradients of results, walked through a decomposition of the call: of the operands that are
/// wanted, in their order.
std::vector<Tensor> through_decomposition(Op op, const OpSpec& call,
                                          const std::vector<Tensor>& operands,
                                          std::span<const Tensor> gradients, uint32_t wanted) {
  const SourceLoc loc = user_loc(SourceLoc::current());
  ThreadScope<&ThreadState::autocast> no_autocast(false);
  const bool create = grad_enabled();
  std::vector<NodeRef> marked;
  std::vector<std::pair<NodeRef, Tensor>> roots;
  {
    ThreadScope<&ThreadState::grad> on(true);
    // Other names for the operands, so that the walk ends there.
    std::vector<Tensor> named = operands;
    for (size_t k = 0; k < named.size(); ++k) {
      if (!(wanted >> k & 1)) continue;
      NodeRef alias = record(Op::Alias, {node_of(operands[k])}, {}, loc);
      alias->requires_grad = true;
      marked.push_back(alias);
      named[k] = lift(std::move(alias));
    }
    const std::vector<Tensor> results = decomposition_of(op)(op, call, named);
    for (size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].defined()) roots.emplace_back(node_of(results[i]), gradients[i]);
  }
  return walk(roots,
              {.retain_graph = create,
               .create_graph = create,
               .accumulate = false,
               .wanted = pointers(marked)},
              loc);
}

// An operand that a result does not depend on.
void fill_missing(std::vector<Tensor>& gradients, const std::vector<Tensor>& operands,
                  uint32_t wanted) {
  size_t i = 0;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!(wanted >> k & 1)) continue;
    if (!gradients[i].defined()) gradients[i] = zeros_like(operands[k]);
    ++i;
  }
}

}  // namespace

std::vector<Tensor> decompose_composite_grad(Op, const OpSpec& call,
                                             const std::vector<Tensor>& operands) {
  const CompositeAttrs& a = call.attrs.as<CompositeAttrs>();
  const std::vector<Tensor> own(operands.begin(), operands.end() - 1);
  OpSpec of = call;
  of.attrs = CompositeAttrs{a.what};
  of.dtype = operands.back().dtype();
  of.shape = operands.back().shape();
  std::vector<Tensor> gradients =
      through_decomposition(Op::Composite, of, own, {&operands.back(), 1}, a.wanted);
  fill_missing(gradients, own, a.wanted);
  return gradients;
}

// q, k, v, o, gradient of o, log-sum-exp, (bias): the gradients of q, k and v.
std::vector<Tensor> decompose_attention_grad(Op, const OpSpec& call,
                                             const std::vector<Tensor>& operands) {
  std::vector<Tensor> own(operands.begin(), operands.begin() + 3);
  if (operands.size() > 6) own.push_back(operands[6]);
  OpSpec of = call;
  of.dtype = operands[3].dtype();
  of.shape = operands[3].shape();
  std::vector<Tensor> gradients =
      through_decomposition(Op::Attention, of, own, {&operands[4], 1}, 7);
  fill_missing(gradients, own, 7);
  return gradients;
}

namespace gradient {

void composite(const RuleCall& c) {
  const Composite* what = c.attrs<CompositeAttrs>().what;
  std::vector<Tensor> gradients;
  if (grad_enabled() || is_eager()) {
    std::vector<Tensor> operands;
    for (Node* n : c.in) operands.push_back(lift(n));
    const OpSpec call{c.n.attrs, c.n.shape, c.n.dtype, c.n.device};
    gradients = through_decomposition(Op::Composite, call, operands, {&c.g, 1}, c.wanted);
  } else {
    std::vector<NodeRef> operands(c.in.begin(), c.in.end());
    operands.push_back(node_of(c.g));
    NodeRef call =
        record_taking(Op::CompositeGrad, operands, {CompositeAttrs{what, c.wanted}}, c.n.loc);
    const int count = __builtin_popcount(c.wanted);
    for (int i = 1; i < count; ++i) gradients.push_back(result_of(call, i, c.n.loc));
    gradients.insert(gradients.begin(), lift(std::move(call)));
  }
  size_t i = 0;
  for (int k = 0; k < kMaxGrads; ++k)
    if (c.wants(k)) c.out[static_cast<size_t>(k)] = gradients[i++];
}

}  // namespace gradient
}  // namespace ingot::autograd
