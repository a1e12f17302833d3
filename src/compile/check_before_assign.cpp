// A failed run changes nothing: whatever may meet a bad index comes before the first assignment.
// Values fall into three parts: those that are checked or that a check waits for (early), those
// that only lead into assignments (late), and the rest. No kernel has members of both of the first
// two, and kernels that assign are ordered last. Nor does a late value join a reduction: updates of
// many parameters are one launch then, and each is in place.
#include "compile/group.h"

namespace ingot {
namespace {

bool checks(const Val& v) { return info(v.op).may_fail; }

// Values that a check waits for, and checks themselves.
std::vector<char> find_early(const Graph& g) {
  std::vector<char> early(g.vals.size(), 0);
  for (size_t v = g.vals.size(); v-- > 0;) {
    early[v] = early[v] || checks(g.vals[v]);
    if (early[v])
      for (int k = 0; k < g.vals[v].n_in; ++k) early[g.vals[v].in[k]] = 1;
  }
  return early;
}

}  // namespace

void separate_assigns(Graph& g) {
  bool any = false;
  for (const Val& v : g.vals) any = any || checks(v);
  if (!any) return;
  std::vector<char> early = find_early(g);
  for (Val& v : g.vals)
    for (int k = 0; k < v.n_in; ++k) {
      if (k == 0 && (v.op == Op::Assign || v.op == Op::SliceAssign)) continue;
      const Val& a = g.vals[v.in[k]];
      if (a.op != Op::Assign || !early[v.in[k]]) continue;
      int value = a.in[1];
      while (g.vals[value].view()) value = g.vals[value].in[0];
      if (!g.vals[value].source()) v.in[k] = a.in[1];
    }
}

std::vector<Phase> find_phases(const Graph& g) {
  size_t n = g.vals.size();
  std::vector<char> early = find_early(g), late(n, 1);
  std::vector<Phase> phase(n, Phase::Any);
  for (size_t v = n; v-- > 0;) {
    const Val& val = g.vals[v];
    // late[v]: every reader so far is; a value nobody reads leads nowhere.
    bool passes = is_elementwise(val.op) || val.view();
    late[v] = val.op == Op::Assign ||
              (late[v] && passes && g.users[v] > 0 && !val.output && !val.material && !early[v]);
    phase[v] = early[v] ? Phase::Early : late[v] ? Phase::Late : Phase::Any;
    if (!late[v] && g.users[v] > 0)
      for (int k = 0; k < val.n_in; ++k) late[val.in[k]] = 0;
  }
  return phase;
}

}  // namespace ingot
