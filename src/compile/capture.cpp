// A captured call keeps its plans and the buffers they were bound to. Repeating it binds the new
// inputs in place of the old ones, gives returned values fresh buffers, and leaves everything else
// where it was: state that the call updates in place (parameters, moments) is updated in place
// again.
#include "compile/capture.h"

#include <memory>
#include <unordered_set>
#include <utility>

#include "base/host_wait.h"
#include "compile/plan_cache.h"
#include "graph/cell.h"
#include "graph/random_uses.h"
#include "graph/recorder.h"
#include "ingot/capture.h"
#include "ingot/runtime.h"

namespace ingot {
namespace {

// Where a buffer of a captured run comes from in a repetition.
struct Origin {
  enum Kind { Fixed, Input, Result } kind = Fixed;
  int index = 0;
};

NodeRef node_of(const Tensor& t, const SourceLoc& loc) {
  if (!t.defined()) throw Error(ErrorKind::State, "capture", "an input is undefined", loc);
  return t.cell()->current();
}

void let_go(Ref<Storage>& s) {
  if (s) --s->captured;
  s = {};
}

}  // namespace

struct Captured::Variant {
  std::vector<std::pair<DType, Dims>> inputs;
  std::vector<Device> devices;
  CaptureLog log;
  std::vector<std::vector<Origin>> leaf_origin, output_origin;  // per run
  std::vector<std::pair<DType, Dims>> results;
  std::vector<Device> result_devices;
  std::vector<Origin> given;  // of each result: a buffer that a run writes, an input, or something
                              // that was there before
  std::vector<Ref<Storage>> fixed;  // ... the latter
  std::vector<RandomUse> random;

  ~Variant() {
    for (CapturedRun& r : log.runs)
      for (auto* list : {&r.leaves, &r.outputs})
        for (Ref<Storage>& s : *list) let_go(s);
    for (Ref<Storage>& s : fixed) let_go(s);
  }

  void find_origins(const std::vector<NodeRef>& given_nodes, const std::vector<NodeRef>& nodes,
                    const SourceLoc& loc);

  /// The plans of its runs; empty when the cache has evicted one of them.
  std::vector<std::shared_ptr<Plan>> plans() const {
    std::vector<std::shared_ptr<Plan>> all;
    for (const CapturedRun& r : log.runs) {
      all.push_back(r.kept.lock());
      if (!all.back()) return {};
      touch(*all.back());
    }
    return all;
  }

  bool fits(const std::vector<Tensor>& in, const SourceLoc& loc) const {
    if (in.size() != inputs.size()) return false;
    for (size_t i = 0; i < in.size(); ++i) {
      NodeRef n = node_of(in[i], loc);
      if (n->dtype != inputs[i].first || !(n->shape == inputs[i].second) || n->device != devices[i])
        return false;
    }
    return true;
  }
};

Captured::Captured(Function fn) : fn_(std::move(fn)) {}
Captured::~Captured() = default;
Captured::Captured(Captured&&) noexcept = default;
Captured& Captured::operator=(Captured&&) noexcept = default;

std::vector<Tensor> Captured::operator()(const std::vector<Tensor>& inputs, SourceLoc loc) {
  loc = user_loc(loc);
  std::vector<NodeRef> nodes;
  nodes.reserve(inputs.size());
  for (const Tensor& t : inputs) nodes.push_back(node_of(t, loc));
  {
    HostWait wait;
    materialise(pointers(nodes), loc);
  }
  for (size_t i = 0; i < variants_.size(); ++i) {
    if (!variants_[i]->fits(inputs, loc)) continue;
    std::vector<std::shared_ptr<Plan>> plans = variants_[i]->plans();
    if (plans.size() == variants_[i]->log.runs.size()) return replay(*variants_[i], plans, inputs);
    variants_.erase(variants_.begin() + static_cast<int64_t>(i));  // recorded again
    break;
  }
  return first_call(inputs, loc);
}

std::vector<Tensor> Captured::first_call(const std::vector<Tensor>& inputs, const SourceLoc& loc) {
  if (is_capturing())
    throw Error(ErrorKind::State, "capture", "a captured function calls another one", loc);
  run_pending();  // what came before is not part of it
  auto v = std::make_unique<Variant>();
  const ThreadScope<&ThreadState::capture> runs(&v->log);
  const ThreadScope<&ThreadState::random_uses> draws(&v->random);
  // fn gets new handles. So an input is distinguished from the same tensor given twice or used
  // directly, and in-place calls of fn on it stay inside, at the first call as at every other.
  std::vector<Tensor> own;
  std::vector<NodeRef> given;
  for (const Tensor& t : inputs) {
    NodeRef n = node_of(t, loc);
    own.push_back(
        n->requires_grad
            ? t
            : Tensor::adopt(
                  make_cell(make_leaf(n->storage, n->dtype, n->shape, n->device)).leak()));
    given.emplace_back(node_of(own.back(), loc));
    v->inputs.emplace_back(n->dtype, n->shape);
    v->devices.push_back(n->device);
  }
  std::vector<Tensor> results = fn_(own);
  std::vector<NodeRef> nodes;
  nodes.reserve(results.size());
  for (const Tensor& t : results) nodes.push_back(node_of(t, loc));
  materialise(pointers(nodes), loc);
  run_pending();
  for (const NodeRef& n : nodes) {
    v->results.emplace_back(n->dtype, n->shape);
    v->result_devices.push_back(n->device);
  }
  v->find_origins(given, nodes, loc);
  variants_.push_back(std::move(v));
  return results;
}

void Captured::Variant::find_origins(const std::vector<NodeRef>& given_nodes,
                                     const std::vector<NodeRef>& nodes, const SourceLoc& loc) {
  // Results that are one buffer are written once: at the first of them.
  auto result = [&](const Ref<Storage>& s) {
    size_t i = 0;
    while (i < nodes.size() && nodes[i]->storage != s) ++i;
    return static_cast<int>(i);
  };
  std::vector<bool> written(nodes.size() + 1, false);
  std::unordered_set<const Storage*> made;  // by earlier runs of this call
  for (CapturedRun& r : log.runs) {
    std::vector<Origin> leaves(r.leaves.size()), outputs(r.outputs.size());
    // Only what stays the same is held on to; a held buffer may still be updated in place by
    // others.
    for (size_t i = 0; i < leaves.size(); ++i) {
      for (size_t k = 0; k < given_nodes.size(); ++k)
        if (given_nodes[k].get() == r.leaf_nodes[i])
          leaves[i] = {Origin::Input, static_cast<int>(k)};
      if (leaves[i].kind == Origin::Fixed && written[result(r.leaves[i])])
        leaves[i] = {Origin::Result, result(r.leaves[i])};
      if (leaves[i].kind != Origin::Fixed) let_go(r.leaves[i]);
    }
    for (int i : r.copied)
      if (leaves[i].kind == Origin::Fixed && !made.contains(r.leaves[i].get()))
        throw Error(ErrorKind::State, "capture",
                    "a parameter or state tensor is held by another handle, so it cannot be "
                    "updated in place",
                    loc, "drop copies made by detach() before the captured call");
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (r.plan->outputs[i].donated < 0) made.insert(r.outputs[i].get());
      int k = result(r.outputs[i]);
      if (r.plan->outputs[i].donated >= 0 || k == static_cast<int>(nodes.size())) continue;
      outputs[i] = {Origin::Result, k};
      written[k] = true;
      let_go(r.outputs[i]);
    }
    r.leaf_nodes.clear();
    r.kept = std::exchange(r.plan, nullptr);
    leaf_origin.push_back(std::move(leaves));
    output_origin.push_back(std::move(outputs));
  }
  for (const NodeRef& n : nodes) {
    int first = result(n->storage);
    Origin o{Origin::Result, first};
    for (size_t k = 0; !written[first] && k < given_nodes.size(); ++k)
      if (given_nodes[k]->storage == n->storage) o = {Origin::Input, static_cast<int>(k)};
    if (!written[first] && o.kind != Origin::Input) o = {};
    given.push_back(o);
    fixed.push_back(o.kind == Origin::Fixed ? n->storage : Ref<Storage>{});
    if (fixed.back()) ++fixed.back()->captured;
  }
}

std::vector<Tensor> Captured::replay(Variant& v, const std::vector<std::shared_ptr<Plan>>& plans,
                                     const std::vector<Tensor>& inputs) {
  std::vector<Ref<Storage>> results(v.results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const Origin& o = v.given[i];
    if (o.kind == Origin::Input)
      results[i] = inputs[o.index].cell()->current()->storage;
    else if (o.kind == Origin::Result && o.index < static_cast<int>(i))
      results[i] = results[o.index];
    else
      results[i] = allocate_storage(
          v.result_devices[i],
          static_cast<size_t>(v.results[i].second.numel()) * size_of(v.results[i].first),
          "capture");
  }
  std::vector<RandomUse> random;  // the same stretches, as far on as the generators are now
  for (const RandomUse& u : v.random) {
    RandomUse now{u.generator, 0, 0, 0};
    now.start = u.generator.take(u.end - u.start, &now.seed);
    random.push_back(std::move(now));
  }
  for (size_t k = 0; k < v.log.runs.size(); ++k) {
    const CapturedRun& r = v.log.runs[k];
    std::vector<Ref<Storage>> leaves, outputs;
    auto pick = [&](const Origin& o, const Ref<Storage>& fixed) {
      return o.kind == Origin::Input    ? inputs[o.index].cell()->current()->storage
             : o.kind == Origin::Result ? results[o.index]
                                        : fixed;
    };
    for (size_t i = 0; i < r.leaves.size(); ++i)
      leaves.push_back(pick(v.leaf_origin[k][i], r.leaves[i]));
    for (size_t i = 0; i < r.outputs.size(); ++i) {
      int donated = plans[k]->outputs[i].donated;
      outputs.push_back(donated >= 0 ? leaves[static_cast<size_t>(donated)]
                                     : pick(v.output_origin[k][i], r.outputs[i]));
    }
    std::vector<double> args = r.args;
    for (size_t i = 0; i < args.size(); ++i)
      if (r.arg_sources[i]) args[i] = *r.arg_sources[i];
    std::vector<uint64_t> seeds = r.seeds, offsets = r.offsets;
    for (size_t i = 0; i < offsets.size(); ++i)
      for (size_t u = 0; u < random.size(); ++u)
        if (r.seeds[i] == v.random[u].seed) {
          seeds[i] = random[u].seed;
          offsets[i] += random[u].start - v.random[u].start;
          break;
        }
    HostWait wait;
    run_captured(r, *plans[k], leaves, outputs, args, seeds, offsets);
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < results.size(); ++i) {
    // What was there before the first call (a parameter, say) may change with the next one: the
    // caller gets a copy.
    if (v.fixed[i])
      backend_for(v.result_devices[i].type())
          ->copy_on_device(v.result_devices[i].index(), results[i]->data, v.fixed[i]->data,
                           results[i]->bytes);
    out.push_back(Tensor::adopt(make_cell(make_leaf(results[i], v.results[i].first,
                                                    v.results[i].second, v.result_devices[i]))
                                    .leak()));
  }
  return out;
}

}  // namespace ingot
