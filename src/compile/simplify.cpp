// Rewrites that change no bit of a result. One forward pass: every value is first given its inputs'
// replacements, then looked up among the values seen so far.
#include <unordered_map>

#include "base/hash.h"
#include "compile/ir.h"

namespace ingot {
namespace {

bool same_value(const Val& a, const Val& b) {
  if (a.op != b.op || a.dtype != b.dtype || a.device != b.device || a.n_in != b.n_in ||
      a.slot != b.slot || !(a.shape == b.shape))
    return false;
  for (int i = 0; i < a.n_in; ++i)
    if (a.in[i] != b.in[i]) return false;
  return a.attrs == b.attrs && a.epilogues == b.epilogues && a.copied == b.copied &&
         a.stride == b.stride && a.joined_at == b.joined_at;
}

uint64_t hash_value(const Val& v) {
  Hasher h;
  h.add(static_cast<uint64_t>(v.op) | static_cast<uint64_t>(v.dtype) << 8);
  h.add(v.attrs.hash());
  h.add(v.slot);
  for (int i = 0; i < v.n_in; ++i) h.add(v.in[i]);
  for (int64_t d : v.shape) h.add(d);
  return h.value();
}

// The value this one is equal to without any work, or -1.
int identity_of(const Graph& g, const Val& v) {
  if (v.n_in == 0 || v.copied) return -1;
  const Val& in = g.vals[v.in[0]];
  switch (v.op) {
    case Op::Alias:
      return v.in[0];
    case Op::Reshape:
    case Op::Expand:
      return in.shape == v.shape ? v.in[0] : -1;
    case Op::Cast:
      return in.dtype == v.dtype ? v.in[0] : -1;
    case Op::Permute: {
      const Dims& p = v.attrs.as<PermuteAttrs>().order;
      for (int i = 0; i < p.size(); ++i)
        if (p[i] != i) return -1;
      return v.in[0];
    }
    case Op::Slice: {
      if (!(in.shape == v.shape)) return -1;
      const auto& [start, step] = v.attrs.as<SliceAttrs>();
      for (int i = 0; i < v.shape.size(); ++i)
        if (start[i] != 0 || (step[i] != 1 && v.shape[i] > 1)) return -1;
      return v.in[0];
    }
    case Op::Pad:
      return in.shape == v.shape ? v.in[0] : -1;
    case Op::Sum:
    case Op::Prod:
    case Op::Max:
    case Op::Min:
      return in.shape == v.shape && in.dtype == v.dtype ? v.in[0] : -1;
    case Op::ToDevice:
      return in.device == v.device ? v.in[0] : -1;
    default:
      return -1;
  }
}

// Reshape of a reshape, permutation of a permutation: look through the first.
void shorten(Graph& g, Val& v) {
  if (v.n_in == 0) return;
  const Val& in = g.vals[v.in[0]];
  if (v.op == Op::Reshape && in.op == Op::Reshape) v.in[0] = in.in[0];
  if (v.op == Op::Permute && in.op == Op::Permute) {
    const Dims &outer = v.attrs.as<PermuteAttrs>().order,
               &inner = in.attrs.as<PermuteAttrs>().order;
    PermuteAttrs both;
    for (int64_t axis : outer) both.order.push_back(inner[static_cast<int>(axis)]);
    v.in[0] = in.in[0];
    v.attrs = both;
  }
}

// The operand k of v, found to be the same as value `to`. A library call, and what an assignment
// begins from, needs a buffer: views that came down to a constant, index or random value are then
// carried out instead of looked through.
int stored_if_needed(Graph& g, const Val& v, int k, int to) {
  int from = v.in[k];
  bool wants_buffer = v.op == Op::Assign || v.op == Op::SliceAssign ? k == 0 : is_library(v.op);
  if (v.op == Op::Gather) wants_buffer = k == 0;
  if (to == from || !wants_buffer || !g.vals[to].source()) return to;
  Val& stored = g.vals[from];
  stored.become(Op::Reshape);
  stored.n_in = 1;
  stored.in[0] = to;
  stored.copied = true;
  return from;
}

}  // namespace

void Graph::count_users() {
  users.assign(vals.size(), 0);
  for (const Val& v : vals)
    for (int i = 0; i < v.n_in; ++i) ++users[v.in[i]];
  for (size_t i = 0; i < vals.size(); ++i) users[i] += vals[i].output;
}

void simplify(Graph& g) {
  int n = static_cast<int>(g.vals.size());
  std::vector<int> same(n);
  std::unordered_multimap<uint64_t, int> seen;
  seen.reserve(n);
  for (int i = 0; i < n; ++i) {
    same[i] = i;
    Val& v = g.vals[i];
    for (int k = 0; k < v.n_in; ++k) v.in[k] = stored_if_needed(g, v, k, same[v.in[k]]);
    shorten(g, v);
    int id = identity_of(g, v);
    // An output keeps its entry (its node gets a buffer), but its users read the other one.
    if (id >= 0) {
      same[i] = id;
      continue;
    }
    if (v.op == Op::Fence || v.op == Op::Assign || v.op == Op::SliceAssign) continue;
    uint64_t h = hash_value(v);
    auto [b, e] = seen.equal_range(h);
    for (auto it = b; it != e; ++it)
      if (same_value(g.vals[it->second], v)) {
        same[i] = it->second;
        break;
      }
    if (same[i] == i) seen.emplace(h, i);
  }
  // A gradient may be asked through a merged value under any of its names.
  for (int i = 0; i < n; ++i)
    if (same[i] != i && g.vals[i].history) g.vals[same[i]].history = true;
  drop_dead(g);
}

void drop_dead(Graph& g) {
  g.count_users();
  for (int i = static_cast<int>(g.vals.size()) - 1; i >= 0; --i) {
    Val& v = g.vals[i];
    if (v.op == Op::Result && g.users[i] == 0 && v.n_in && g.users[v.in[0]] > 1)
      g.users[i] = 1;  // its call writes it anyway
    if (g.users[i] > 0) continue;
    for (int k = 0; k < v.n_in; ++k) --g.users[v.in[k]];
    v.n_in = 0;
  }
}

}  // namespace ingot
