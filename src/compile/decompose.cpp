// See decompose.h. The graph is written anew, with the steps of each decomposition in the place of
// the call.
#include "compile/decompose.h"

#include <algorithm>
#include <map>
#include <set>

#include "compile/new_value.h"
#include "compile/rewrite.h"
#include "graph/composite.h"
#include "runtime/backend.h"

namespace ingot {
namespace {

size_t at(int v) { return static_cast<size_t>(v); }

class Decomposer {
 public:
  Decomposer(Graph& g, const std::vector<bool>& chosen)
      : old_(g), chosen_(chosen), now_(g.vals.size(), -1) {}

  void run() {
    out_.vals.reserve(old_.vals.size());
    for (size_t i = 0; i < old_.vals.size(); ++i) {
      Val v = old_.vals[i];
      const auto parts = v.op == Op::Result && v.n_in ? results_.find(v.in[0]) : results_.end();
      if (parts != results_.end()) {
        now_[i] = claim(parts->second[at(v.attrs.as<ResultAttrs>().index)], v);
        continue;
      }
      for (int k = 0; k < v.n_in; ++k) v.in[at(k)] = now_[at(v.in[at(k)])];
      if (chosen_[i]) {
        const std::vector<int>& r = results_[static_cast<int>(i)] = write(v);
        now_[i] = claim(r[0], v);
      } else {
        now_[i] = push(std::move(v));
      }
    }
    old_.vals = std::move(out_.vals);
    old_.count_users();
  }

 private:
  int push(Val v) {
    out_.vals.push_back(std::move(v));
    return static_cast<int>(out_.vals.size()) - 1;
  }

  /// The call's results.
  std::vector<int> write(const Val& call) {
    std::vector<OperandType> operands;
    for (int k = 0; k < call.n_in; ++k) {
      const Val& in = out_.vals[at(call.in[at(k)])];
      operands.push_back({in.dtype, in.shape, in.device});
    }
    const Decomposed d =
        decompose(call.op, {call.attrs, call.shape, call.dtype, call.device}, operands);
    std::vector<int> id;
    auto value = [&](int n) { return n >= 0 ? id[at(n)] : call.in[at(-1 - n)]; };
    std::map<int, std::vector<int>> inner;  // of calls that are composites themselves
    for (const RecordedStep& s : d.steps) {
      Val v;
      v.op = s.op;
      v.attrs = s.spec.attrs;
      v.dtype = s.spec.dtype;
      v.shape = s.spec.shape;
      v.device = s.spec.device;
      v.node = call.node;
      v.n_in = static_cast<uint8_t>(s.in.size());
      for (size_t k = 0; k < s.in.size(); ++k) v.in[k] = value(s.in[k]);
      if (v.op == Op::Result && !s.in.empty() && inner.contains(s.in[0])) {
        id.push_back(inner[s.in[0]][at(v.attrs.as<ResultAttrs>().index)]);
        continue;
      }
      if (v.op == Op::Composite || v.op == Op::CompositeGrad) {
        inner[static_cast<int>(id.size())] = write(v);
        id.push_back(inner[static_cast<int>(id.size())][0]);
        continue;
      }
      store_operands(out_, v);
      replace_empty(out_, v);
      id.push_back(push(std::move(v)));
      unclaimed_.insert(id.back());
    }
    std::vector<int> results;
    for (int r : d.results) results.push_back(value(r));
    return results;
  }

  /// The value whose buffer holds the result, in the same order.
  int stored_as(int result) const {
    while (out_.vals[at(result)].view() &&
           (out_.vals[at(result)].op == Op::Reshape || out_.vals[at(result)].op == Op::Alias))
      result = out_.vals[at(result)].in[0];
    return result;
  }

  /// The result stands for the traced value v from now on.
  int claim(int result, const Val& v) {
    int stored = stored_as(result);
    const Val& s = out_.vals[at(stored)];
    if (v.output && (!unclaimed_.contains(stored) || s.source() || s.view())) {
      // An operand, or by another name already.
      Val copy;
      copy.op = Op::Reshape;
      copy.dtype = v.dtype;
      copy.shape = v.shape;
      copy.device = v.device;
      copy.in[0] = result;
      copy.n_in = 1;
      copy.copied = true;
      stored = result = push(std::move(copy));
    }
    if (v.output) {
      Val& kept = out_.vals[at(stored)];
      unclaimed_.erase(stored);
      kept.node = v.node;
      kept.output = true;
    }
    Val& r = out_.vals[at(result)];
    r.history = r.history || v.history;
    return result;
  }

  Graph& old_;
  const std::vector<bool>& chosen_;
  Graph out_;
  std::vector<int> now_;
  std::map<int, std::vector<int>> results_;  // by the call
  std::set<int> unclaimed_;  // values of decompositions that are no traced value's yet
};

bool is_function(const Val& v) { return v.op == Op::Composite || v.op == Op::CompositeGrad; }

bool may_be_epilogue(const Val& v) {
  return is_function(v) && is_half(v.dtype) &&
         v.attrs.as<CompositeAttrs>().what->name == std::string_view("gelu_tanh");
}

// With the further results that attention has in training.
LibrarySpec asked_call(const Graph& g, int v) {
  const Val& val = g.vals[at(v)];
  LibrarySpec s = abstract_call(g, v);
  std::vector<OperandSpec> more;
  if (val.op == Op::Attention && !val.attrs.as<AttentionAttrs>().newest()) {
    const Dims rows{val.shape[0], val.shape[1], val.shape[2]};
    more.push_back({DType::Float32, rows, row_major(rows), 0});
  }
  if (val.op == Op::AttentionGrad)
    for (int k : {1, 2}) {
      const Val& in = g.vals[at(val.in[at(k)])];
      more.push_back({in.dtype, in.shape, row_major(in.shape), 0});
    }
  s.operands.insert(s.operands.begin() + 1, more.begin(), more.end());
  s.written += static_cast<int>(more.size());
  s.results = (1u << s.written) - 1;
  return s;
}

std::string call_text(const Val& v) {
  return std::string(info(v.op).name) + " " + std::string(name_of(v.dtype)) + to_string(v.shape);
}

// What explain prints of a call that is decomposed.
DecomposedCall refused_call(const Graph& g, int v) {
  const LibrarySpec call = asked_call(g, v);
  DecomposedCall d{call_text(g.vals[at(v)]), {}};
  Backend* backend = backend_for(g.vals[at(v)].device.type());
  if (!backend) return d;
  d.refused = backend->refusals(call);
  if (const Offer offer = backend->best_offer(call))
    d.refused.push_back({offer.kernel, "it refused the call when it was made"});
  return d;
}

}  // namespace

CompositeCall composite_call(const Graph& g, int v) {
  const Val& val = g.vals[at(v)];
  CompositeCall c{val.op, val.dtype, val.device, val.attrs, {}};
  for (int k = 0; k < val.n_in; ++k) c.operands.push_back(g.vals[at(val.in[at(k)])].shape);
  return c;
}

bool is_composite_call(const Val& v) { return is_composite(v.op) && !is_function(v); }

std::vector<DecomposedCall> decompose_unclaimed(Graph& g, const std::vector<CompositeCall>& refused,
                                                bool fuse) {
  std::vector<bool> chosen(g.vals.size(), false);
  std::vector<DecomposedCall> noted;
  bool any = false;
  for (size_t i = 0; i < g.vals.size(); ++i) {
    const Val& v = g.vals[i];
    if (v.n_in == 0) continue;
    if (is_function(v)) {
      chosen[i] = !fuse || !may_be_epilogue(v);
    } else if (is_composite_call(v)) {
      const int call = static_cast<int>(i);
      Backend* backend = backend_for(v.device.type());
      chosen[i] = !backend || !backend->best_offer(asked_call(g, call)) ||
                  (!refused.empty() &&
                   std::count(refused.begin(), refused.end(), composite_call(g, call)) > 0);
      if (chosen[i]) noted.push_back(refused_call(g, call));
    }
    any = any || chosen[i];
  }
  if (!any) return noted;
  // Attention whose gradient is decomposed shares what it computes with it.
  for (size_t i = 0; i < g.vals.size(); ++i) {
    if (!chosen[i] || g.vals[i].op != Op::AttentionGrad) continue;
    int o = g.vals[i].in[3];
    while (g.vals[at(o)].view()) o = g.vals[at(o)].in[0];
    if (g.vals[at(o)].op != Op::Attention || chosen[at(o)]) continue;
    chosen[at(o)] = true;
    noted.push_back({call_text(g.vals[at(o)]), {{"all kernels", "its gradient is decomposed"}}});
  }
  Decomposer(g, chosen).run();
  return noted;
}

void decompose_functions(Graph& g) {
  std::vector<bool> chosen(g.vals.size(), false);
  bool any = false;
  for (size_t i = 0; i < g.vals.size(); ++i)
    if (is_function(g.vals[i]) && g.vals[i].n_in > 0) any = chosen[i] = true;
  if (!any) return;
  Decomposer(g, chosen).run();
  simplify(g);
}

}  // namespace ingot
