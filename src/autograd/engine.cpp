#include "autograd/engine.h"

#include <algorithm>
#include <memory>
#include <queue>
#include <unordered_set>

#include "autograd/assemble.h"
#include "autograd/hooks.h"
#include "autograd/leaves.h"
#include "autograd/rules.h"
#include "graph/leaf.h"
#include "graph/lift.h"
#include "graph/node_map.h"
#include "graph/recorder.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"

namespace ingot::autograd {
namespace {

bool is_sink(const Node& n) { return n.leaf && n.leaf->requires_grad; }

// One met node: its gradient so far, and later whether it was walked through.
struct Entry {
  NodeRef node;
  Tensor grad;
  bool walked = false;
  std::unique_ptr<Pieces> pieces;  // gradients of slices of it, where there are some
};

class Walk {
 public:
  Walk(const WalkOptions& o, const SourceLoc& loc) : o_(o), loc_(loc) {}

  std::vector<Tensor> run(std::span<const std::pair<NodeRef, Tensor>> roots) {
    EnableGradIf mode(o_.create_graph);
    for (Node* w : o_.wanted) wanted_.insert(w, 1);
    for (auto& [node, grad] : roots) find_useful(node.get());
    for (auto& [node, grad] : roots) deliver(node.get(), grad);
    while (!queue_.empty()) {
      uint32_t index = queue_.top().second;
      queue_.pop();
      if (!entries_[index].walked) visit(index);
    }
    return finish();
  }

 private:
  struct EnableGradIf {
    bool previous = grad_enabled();
    explicit EnableGradIf(bool on) { set_grad_enabled(on); }
    ~EnableGradIf() { set_grad_enabled(previous); }
  };

  void deliver(Node* n, const Tensor& grad) {
    uint32_t& index = found_.at_or_insert(n, kNone);
    if (index == kNone) {
      index = static_cast<uint32_t>(entries_.size());
      entries_.push_back({NodeRef(n), grad, false, nullptr});
      queue_.emplace(n->seq, index);
    } else {
      add(entries_[index], grad);
    }
  }

  // Sums as they come, but for many slices of one value (the steps of a loop over time): those are
  // put side by side once all are there.
  static void add(Entry& e, const Tensor& grad) {
    if (!e.pieces && is_piece(grad)) {
      e.pieces = std::make_unique<Pieces>();
      if (is_piece(e.grad))
        e.pieces->add(e.grad);
      else
        e.pieces->rest = e.grad;
    }
    if (e.pieces && !is_piece(grad))
      e.pieces->rest = e.pieces->rest.defined() ? e.pieces->rest + grad : grad;
    if (e.pieces && is_piece(grad)) e.pieces->add(grad);
    if (e.pieces && e.pieces->many())
      e.grad = Tensor();
    else
      e.grad = e.grad.defined() ? e.grad + grad : grad;
  }
  static void settle(Entry& e) {
    if (e.pieces && e.pieces->many()) e.grad = e.pieces->assembled();
    e.pieces.reset();
  }

  void visit(uint32_t index) {
    entries_[index].walked = true;
    Node* n = entries_[index].node.get();
    LocScope scope(n->loc);
    settle(entries_[index]);
    run_hooks(n, entries_[index].grad);
    if (is_sink(*n)) return;
    if (const auto custom = custom_of(*n)) return visit_custom(*custom, index);
    if (n->is_source()) return;
    check_history(*n);
    if (!hold_inputs(*n, inputs_)) throw_freed(*n);  // by another thread, just now
    if (n->op == Op::Cat) return visit_cat(index);
    RuleCall call{*n, entries_[index].grad, 0, grads_, pointers(inputs_)};
    const size_t count = std::min<size_t>(inputs_.size(), kMaxGrads);
    for (size_t k = 0; k < count; ++k)
      if (useful(inputs_[k])) call.wanted |= 1u << k;
    if (!call.wanted) return;
    apply_rule(call);
    // deliver() may move entries_: the rule's gradient is not used from here on.
    for (size_t k = 0; k < count; ++k)
      if (Tensor grad = std::exchange(grads_[k], Tensor()); grad.defined())
        deliver(inputs_[k], grad);
    forget(index);
  }

  // Each part's gradient is its slice.
  void visit_cat(uint32_t index) {
    Node* n = entries_[index].node.get();
    const Tensor grad = entries_[index].grad;
    forget(index);
    const int axis = n->attrs.as<CatAttrs>().axis;
    int64_t at = 0;
    for (const NodeRef& part : inputs_) {
      const int64_t size = part->shape[axis];
      if (useful(part)) deliver(part, slice_along(grad, axis, at, size));
      at += size;
    }
  }

  // All outputs of one custom node were recorded together, before anything that uses them: when the
  // first of them is met, the gradients of all are complete.
  void visit_custom(CustomBackward& custom, uint32_t index) {
    check_history(*entries_[index].node);
    std::vector<Tensor> grads(custom.outputs.size());
    for (size_t k = 0; k < grads.size(); ++k) {
      uint32_t* other = custom.outputs[k] ? found_.find(custom.outputs[k]) : nullptr;
      if (other && entries_[*other].node->seq == custom.output_seqs[k]) {
        Entry& e = entries_[*other];
        if (*other != index) {
          e.walked = true;
          settle(e);
          run_hooks(e.node.get(), e.grad);
        }
        grads[k] = e.grad;
        forget(*other);
      }
      if (!grads[k].defined())
        grads[k] = full(custom.output_shapes[k], 0.0,
                        {custom.output_types[k].first, custom.output_types[k].second});
    }
    auto next = custom.backward(grads);
    for (auto& [node, grad] : next) find_useful(node.get());
    for (auto& [node, grad] : next)
      if (grad.defined() && useful(node.get())) deliver(node.get(), grad);
  }

  // A gradient nobody will ask for again need not stay alive for the rest of the walk.
  void forget(uint32_t index) {
    if (!wanted_.find(entries_[index].node.get())) entries_[index].grad = Tensor();
  }

  void check_history(const Node& n) const {
    if (n.freed_history) throw_freed(n);
  }
  [[noreturn]] void throw_freed(const Node& n) const {
    throw Error(ErrorKind::Autograd, "backward",
                "the graph through " + name_of(n.op, n.attrs) + " -> " + describe(n) +
                    " was freed by an earlier backward()",
                loc_,
                "keep it with backward({}, /*retain_graph=*/true) the first time, or compute the "
                "forward again");
  }

  bool useful(Node* n) { return n->requires_grad && (o_.wanted.empty() || useful_.find(n)); }

  // With wanted nodes given, marks the nodes below root from which one of them can be reached.
  void find_useful(Node* root) {
    if (o_.wanted.empty()) return;
    std::vector<NodeRef> below, stack{root}, next;
    while (!stack.empty()) {
      const NodeRef n = std::move(stack.back());
      stack.pop_back();
      if (!n->requires_grad || seen_.find(n)) continue;
      seen_.insert(n, 1);
      below.push_back(n);
      next_nodes(*n, next);
      for (NodeRef& i : next) stack.push_back(std::move(i));
    }
    std::sort(below.begin(), below.end(),
              [](const NodeRef& a, const NodeRef& b) { return a->seq < b->seq; });
    for (const NodeRef& n : below) {
      bool use = wanted_.find(n) != nullptr;
      // A checkpoint's graph is known only when it is computed again; its inputs represent it.
      next_nodes(*n, next);
      for (const NodeRef& i : next) use = use || useful_.find(i);
      if (use) useful_.insert(n, 1);
    }
    met_.insert(met_.end(), std::make_move_iterator(below.begin()),
                std::make_move_iterator(below.end()));
  }

  // Nothing outside the walk has changed until here, so an error on the way leaves the leaves as
  // they were.
  std::vector<Tensor> finish() {
    std::vector<Tensor> result;
    for (Node* w : o_.wanted) {
      uint32_t* index = found_.find(w);
      result.push_back(index ? entries_[*index].grad : Tensor());
    }
    for (Entry& e : entries_)
      if (o_.accumulate && is_sink(*e.node)) accumulate(*e.node->leaf, e.grad);
    if (!o_.retain_graph) free_history();
    return result;
  }

  static void accumulate(LeafMeta& leaf, const Tensor& grad) {
    add_to(leaf.grad, grad, &leaf, [&] {
      leaf.used_after = leaf.used_after || leaf.stepped;
      return leaf.named;
    });
  }

  void free_history() {
    keep_named_views();
    for (Entry& e : entries_) {
      Node& n = *e.node;
      if (is_sink(n) || n.is_source() || n.freed_history ||
          (!kept_views_.empty() && kept_views_.contains(&n)))
        continue;
      n.freed_history = true;
      drop_custom(n);
      drop_inputs(&n);
    }
  }

  // A view straight on a leaf that the program holds (w.t(), made once) keeps nothing alive and may
  // be walked again. Without a handle it must go as well: its history would keep the leaf's buffer
  // from being written over.
  void keep_named_views() {
    std::vector<NodeRef> path;
    for (Entry& e : entries_) {
      path.clear();
      NodeRef n = e.node;
      if (!is_movement(n->op) || n->handles.load(std::memory_order_relaxed) == 0) continue;
      while (n && is_movement(n->op) && !is_sink(*n)) n = held_input(*path.emplace_back(n), 0);
      if (n && is_sink(*n)) kept_views_.insert(path.begin(), path.end());
    }
  }

  static constexpr uint32_t kNone = ~0u;
  const WalkOptions& o_;
  const SourceLoc& loc_;
  std::vector<Entry> entries_;
  std::priority_queue<std::pair<uint64_t, uint32_t>> queue_;
  NodeMap found_, wanted_, useful_, seen_;
  std::vector<NodeRef> met_;  // what the maps name stays what it is
  InputGrads grads_;
  std::vector<NodeRef> inputs_;  // of the node that is visited
  std::unordered_set<Node*> kept_views_;
};

}  // namespace

void next_nodes(const Node& n, std::vector<NodeRef>& next) {
  next.clear();
  if (is_sink(n)) return;
  if (const auto custom = custom_of(n))
    next = custom->inputs;
  else
    hold_inputs(n, next);
}

std::shared_ptr<CustomBackward> drop_custom(const Node& n) {
  NodeExt* e = n.ext.get();
  if (!e || (n.op != Op::Alias && n.op != Op::Assign)) return nullptr;
  std::lock_guard lock(side_mutex(e));
  return std::move(e->custom);
}

std::vector<Tensor> walk(std::span<const std::pair<NodeRef, Tensor>> roots, const WalkOptions& o,
                         const SourceLoc& loc) {
  return Walk(o, loc).run(roots);
}

}  // namespace ingot::autograd
