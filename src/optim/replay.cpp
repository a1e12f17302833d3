#include "optim/replay.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "graph/handle.h"
#include "ingot/autograd.h"
#include "ingot/ops.h"

namespace ingot::optim {
namespace {

// An argument keeps its current value.
OpSpec replayed(const Node& n) {
  OpSpec spec = spec_of(n);
  if (n.op != Op::Arg) return spec;
  const ArgAttrs& a = n.attrs.as<ArgAttrs>();
  spec.attrs = ArgAttrs{a.source ? *a.source : a.value, nullptr};
  return spec;
}

// -infinity alone is often intended (masks); it counts only by its consequences.
struct Verdict {
  bool bad = false;  // NaN or +infinity
  bool low = false;  // -infinity
};

Verdict judge(const Tensor& t) {
  Verdict v;
  if (!is_float(t.dtype()) || t.numel() == 0) return v;
  const double top = std::numeric_limits<double>::infinity();
  v.bad = (~(t < top)).any().item<bool>();
  v.low = (t == -top).any().item<bool>();
  return v;
}

}  // namespace

Replay::Replay(const std::vector<Tensor>& roots, const std::vector<Tensor>& params,
               std::vector<LayerCall> layers)
    : layers_(std::move(layers)) {
  std::unordered_map<const Node*, const Tensor*> named;
  for (const Tensor& p : params) named[p.cell()->current().get()] = &p;
  std::unordered_map<const Node*, int> known;
  struct Pending {
    NodeRef node;
    std::vector<NodeRef> in;
  };
  std::vector<Pending> pending;
  std::vector<NodeRef> stack;
  const auto meet = [&](const NodeRef& n) {
    if (!known.try_emplace(n, 0).second) return;
    std::vector<NodeRef> in;
    if (!n->computed.load(std::memory_order_acquire) && (hold_inputs(*n, in) || n->is_source())) {
      stack.insert(stack.end(), in.begin(), in.end());
      pending.push_back({n, std::move(in)});
      return;
    }
    known[n] = -1 - static_cast<int>(leaves_.size());
    const auto param = named.find(n);
    leaves_.push_back(param != named.end() ? Leaf{{}, *param->second} : Leaf{NodeRef(n), {}});
    if (param == named.end()) bytes_ += static_cast<size_t>(n->numel()) * size_of(n->dtype);
  };
  for (const Tensor& r : roots)
    if (r.defined()) meet(r.cell()->current());
  while (!stack.empty()) {
    const NodeRef n = std::move(stack.back());
    stack.pop_back();
    meet(n);
  }
  std::sort(pending.begin(), pending.end(),
            [](const Pending& a, const Pending& b) { return a.node->seq < b.node->seq; });
  for (size_t i = 0; i < pending.size(); ++i) known[pending[i].node] = static_cast<int>(i);
  for (const auto& [n, in] : pending) {
    Step s{n->op, replayed(*n), {}, n->loc, n->seq};
    for (const NodeRef& i : in) {
      s.inputs.push_back(known.at(i));
      if (s.inputs.back() >= 0) ++steps_[static_cast<size_t>(s.inputs.back())].uses;
    }
    steps_.push_back(std::move(s));
  }
}

std::string Replay::place(const Step& s) const {
  std::string text = std::string("\n  first op: ") + info(s.op).name;
  if (s.loc.line) text += std::string(" at ") + s.loc.file + ":" + std::to_string(s.loc.line);
  std::string layer = layer_of(layers_, s.number);
  if (layer.empty())  // a gradient: it has the line of the op it belongs to
    for (const Step& other : steps_)
      if (other.loc.line == s.loc.line && std::string_view(other.loc.file) == s.loc.file) {
        layer = layer_of(layers_, other.number);
        if (layer.empty()) continue;
        layer = "the gradient of " + layer;
        break;
      }
  return layer.empty() ? text : text + "\n  in layer " + layer;
}

std::string Replay::first_bad() const {
  NoGrad guard;
  std::vector<Tensor> values(steps_.size());
  std::vector<Verdict> step_verdict(steps_.size()), leaf_verdict(leaves_.size());
  std::vector<int> uses(steps_.size());
  std::vector<Tensor> leaves;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    leaves.push_back(leaves_[i].param.defined() ? leaves_[i].param.detach()
                                                : tensor_of(leaves_[i].node));
    leaf_verdict[i] = judge(leaves.back());
    if (leaf_verdict[i].bad)
      return (leaves_[i].param.defined() ? "\n  the parameter " : "\n  the input ") +
             describe((leaves_[i].param.defined() ? leaves_[i].param : leaves.back())
                          .cell()
                          ->current()) +
             " was not finite before the step";
  }
  const auto verdict = [&](int k) {
    return k >= 0 ? step_verdict[static_cast<size_t>(k)]
                  : leaf_verdict[static_cast<size_t>(-1 - k)];
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    std::vector<NodeRef> in;
    for (int k : s.inputs)
      in.push_back((k >= 0 ? values[static_cast<size_t>(k)] : leaves[static_cast<size_t>(-1 - k)])
                       .cell()
                       ->current());
    values[i] = tensor_of(record_taking(s.op, in, s.spec, s.loc));
    values[i].eval_(s.loc);
    // A constant of the program may be infinite on purpose: only its results count.
    if (is_movement(s.op))
      step_verdict[i] = verdict(s.inputs[0]);
    else if (!s.inputs.empty())
      step_verdict[i] = judge(values[i]);
    if (step_verdict[i].bad) {
      // A logarithm of 0 is never finite, but shows only when its sign is flipped: go back to the
      // op that produced the -infinity.
      size_t at = i;
      for (bool moved = true; moved;) {
        moved = false;
        for (int k : steps_[at].inputs)
          if (k >= 0 && step_verdict[static_cast<size_t>(k)].low &&
              steps_[static_cast<size_t>(k)].op != Op::Const) {
            at = static_cast<size_t>(k);
            moved = true;
            break;
          }
      }
      bool from_finite = at == i || !steps_[at].inputs.empty();
      for (int k : steps_[at].inputs) from_finite = from_finite && !verdict(k).low;
      return place(steps_[from_finite ? at : i]);
    }
    for (int k : s.inputs)
      if (k >= 0 && ++uses[static_cast<size_t>(k)] == steps_[static_cast<size_t>(k)].uses)
        values[static_cast<size_t>(k)] = Tensor();
  }
  return "";
}

}  // namespace ingot::optim
