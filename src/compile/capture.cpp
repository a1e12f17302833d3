// A captured call keeps its plans and the buffers they were bound to. Repeating it binds the new inputs in place of
// the old ones, gives returned values fresh buffers, and leaves everything else where it was: state that the call
// updates in place (parameters, moments) is updated in place again.
#include "compile/capture.h"

#include "graph/cell.h"
#include "graph/recorder.h"
#include "ingot/capture.h"
#include "ingot/random.h"
#include "ingot/runtime.h"

namespace ingot {
namespace {

// Where a buffer of a captured run comes from in a repetition.
struct Origin {
  enum Kind { Fixed, Input, Result } kind = Fixed;
  int index = 0;
};

Node* node_of(const Tensor& t, const SourceLoc& loc) {
  if (!t.defined()) throw Error(ErrorKind::State, "capture", "an input is undefined", loc);
  return t.cell()->node.get();
}

void let_go(Ref<Storage>& s) {
  if (s) --s->captured;
  s = {};
}

}  // namespace

CaptureLog*& capture_log() {
  thread_local CaptureLog* log = nullptr;
  return log;
}
bool is_capturing() { return capture_log() != nullptr; }

struct Captured::Variant {
  std::vector<std::pair<DType, Dims>> inputs;
  std::vector<Device> devices;
  CaptureLog log;
  std::vector<std::vector<Origin>> leaf_origin, output_origin;  // per run
  std::vector<std::pair<DType, Dims>> results;
  std::vector<Device> result_devices;
  std::vector<Origin> given;         // results that are inputs
  std::vector<Ref<Storage>> fixed;   // results that no run writes
  uint64_t rng_start = 0, rng_used = 0;
  uint64_t rng_seed = 0;

  ~Variant() {
    for (CapturedRun& r : log.runs)
      for (auto* list : {&r.leaves, &r.outputs})
        for (Ref<Storage>& s : *list) let_go(s);
  }

  bool fits(const std::vector<Tensor>& in, const SourceLoc& loc) const {
    if (in.size() != inputs.size()) return false;
    for (size_t i = 0; i < in.size(); ++i) {
      Node* n = node_of(in[i], loc);
      if (n->dtype != inputs[i].first || !(n->shape == inputs[i].second) || n->device != devices[i]) return false;
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
  std::vector<Node*> nodes;
  for (const Tensor& t : inputs) nodes.push_back(node_of(t, loc));
  materialise(nodes, loc);
  for (auto& v : variants_)
    if (v->fits(inputs, loc)) return replay(*v, inputs);
  return first_call(inputs, loc);
}

std::vector<Tensor> Captured::first_call(const std::vector<Tensor>& inputs, const SourceLoc& loc) {
  if (capture_log()) throw Error(ErrorKind::State, "capture", "a captured function calls another one", loc);
  run_pending();  // what came before is not part of it
  auto v = std::make_unique<Variant>();
  v->rng_start = default_generator().offset();
  v->rng_seed = default_generator().seed();
  capture_log() = &v->log;
  struct Off {
    ~Off() { capture_log() = nullptr; }
  } off;
  std::vector<Tensor> results = fn_(inputs);
  std::vector<Node*> nodes;
  for (const Tensor& t : results) nodes.push_back(node_of(t, loc));
  materialise(nodes, loc);
  run_pending();
  v->rng_used = default_generator().offset() - v->rng_start;
  for (const Tensor& t : inputs) {
    Node* n = node_of(t, loc);
    v->inputs.emplace_back(n->dtype, n->shape);
    v->devices.push_back(n->device);
  }
  for (Node* n : nodes) {
    v->results.emplace_back(n->dtype, n->shape);
    v->result_devices.push_back(n->device);
  }
  auto origin = [&](const Ref<Storage>& s, bool leaf) {
    if (leaf)
      for (size_t i = 0; i < inputs.size(); ++i)
        if (node_of(inputs[i], loc)->storage == s) return Origin{Origin::Input, static_cast<int>(i)};
    for (size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i]->storage == s) return Origin{Origin::Result, static_cast<int>(i)};
    return Origin{};
  };
  std::vector<bool> written(nodes.size(), false);
  for (CapturedRun& r : v->log.runs) {
    for (const PlanOutput& o : r.plan->outputs)
      if (o.assign && o.donated < 0)
        throw Error(ErrorKind::State, "capture", "a parameter or state tensor is held by another handle, so it cannot be updated in place", loc,
                    "drop copies made by detach() before the captured call");
    std::vector<Origin> leaves, outputs;
    for (const Ref<Storage>& s : r.leaves) leaves.push_back(origin(s, true));
    for (size_t i = 0; i < r.outputs.size(); ++i)
      outputs.push_back(r.plan->outputs[i].donated >= 0 ? Origin{} : origin(r.outputs[i], false));
    // Only what stays the same is held on to; a held buffer may still be updated in place by others.
    for (size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].kind != Origin::Fixed) let_go(r.leaves[i]);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].kind == Origin::Result) written[outputs[i].index] = true;
      if (outputs[i].kind != Origin::Fixed) let_go(r.outputs[i]);
    }
    v->leaf_origin.push_back(std::move(leaves));
    v->output_origin.push_back(std::move(outputs));
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    v->given.push_back(written[i] ? Origin{} : origin(nodes[i]->storage, true));
    v->fixed.push_back(written[i] || v->given[i].kind == Origin::Input ? Ref<Storage>{} : nodes[i]->storage);
  }
  variants_.push_back(std::move(v));
  return results;
}

std::vector<Tensor> Captured::replay(Variant& v, const std::vector<Tensor>& inputs) {
  std::vector<Ref<Storage>> results(v.results.size());
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = allocate_storage(v.result_devices[i], static_cast<size_t>(v.results[i].second.numel()) * size_of(v.results[i].first), "capture");
  uint64_t seed = 0, start = v.rng_used ? default_generator().take(v.rng_used, &seed) : v.rng_start;
  std::vector<bool> written(results.size(), false);
  for (size_t k = 0; k < v.log.runs.size(); ++k) {
    const CapturedRun& r = v.log.runs[k];
    std::vector<Ref<Storage>> leaves, outputs;
    auto pick = [&](const Origin& o, const Ref<Storage>& fixed) {
      return o.kind == Origin::Input ? inputs[o.index].cell()->node->storage : o.kind == Origin::Result ? results[o.index] : fixed;
    };
    for (size_t i = 0; i < r.leaves.size(); ++i) leaves.push_back(pick(v.leaf_origin[k][i], r.leaves[i]));
    for (size_t i = 0; i < r.outputs.size(); ++i) {
      outputs.push_back(pick(v.output_origin[k][i], r.outputs[i]));
      if (v.output_origin[k][i].kind == Origin::Result) written[v.output_origin[k][i].index] = true;
    }
    std::vector<double> args = r.args;
    for (size_t i = 0; i < args.size(); ++i)
      if (r.arg_sources[i]) args[i] = *r.arg_sources[i];
    std::vector<uint64_t> offsets = r.offsets;
    for (size_t i = 0; i < offsets.size(); ++i)
      if (r.seeds[i] == v.rng_seed) offsets[i] += start - v.rng_start;
    run_captured(r, leaves, outputs, args, offsets);
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < results.size(); ++i) {
    // A result that no run wrote is an input, or something that was there before the first call.
    Ref<Storage> s = written[i] ? results[i] : v.given[i].kind == Origin::Input ? inputs[v.given[i].index].cell()->node->storage : v.fixed[i];
    out.push_back(Tensor::adopt(make_cell(make_leaf(s, v.results[i].first, v.results[i].second, v.result_devices[i])).leak()));
  }
  return out;
}

}  // namespace ingot
