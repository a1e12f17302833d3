// The grouping pass: values in recording order join the kernel of what they read, if that kernel's
// iteration space is theirs, no cycle arises and the group stays within limits.
#include "compile/group.h"

#include <algorithm>
#include <map>

namespace ingot {
namespace {

constexpr int kMaxOps = 256;          // instructions of one kernel
constexpr int kSearchBudget = 4000;   // values looked at before a merge is given up
constexpr int kNear = 500;            // values apart
constexpr int64_t kMaxRow = 1 << 16;  // longest row kept on chip
constexpr int64_t kSmall = 1 << 20;   // bytes small enough to read again

std::vector<std::pair<int64_t, bool>> normalise(const Dims& shape, uint32_t mask) {
  std::vector<std::pair<int64_t, bool>> n;
  for (int d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    bool inner = mask >> d & 1;
    if (!n.empty() && n.back().second == inner)
      n.back().first *= shape[d];
    else
      n.emplace_back(shape[d], inner);
  }
  return n;
}

class Grouper {
 public:
  Grouper(Graph& g, Grouping& r) : g_(g), r_(r), seen_(g.vals.size(), 0), phase_(find_phases(g)) {}

  void form(bool fuse) {
    int n = static_cast<int>(g_.vals.size());
    r_.group.assign(n, -1);
    r_.level.assign(n, Level::Elem);
    find_readers();
    extend_budget_ = int64_t{100} * n + 1000000;
    for (int v = 0; v < n; ++v) {
      const Val& val = g_.vals[v];
      reach_[v] = v;
      for (int k = 0; k < val.n_in; ++k) reach_[v] = std::max(reach_[v], reach(val.in[k]));
      if (g_.users[v] == 0 || val.numel() == 0) continue;
      if (val.op == Op::SliceAssign) {
        start(v);
        continue;
      }
      if (!val.compute()) continue;
      if (fuse && is_free(v)) continue;
      if (!fuse || val.alone)
        start(v);
      else if (is_reduce(val.op))
        place_reduce(v);
      else
        place_elementwise(v);
    }
  }

  void merge_siblings();

 private:
  struct Candidate {
    int group;
    int kind;  // 0 broadcast of an outer value, 1 outer level, 2 element level
  };

  int start(int v) {
    const Val& val = g_.vals[v];
    Group gr;
    gr.members = {v};
    gr.first = gr.last = v;
    gr.ops = weight(val.op);
    if (is_reduce(val.op)) {
      gr.shape = g_.vals[val.in[0]].shape;
      gr.mask = val.attrs.as<ReduceAttrs>().axes;
      gr.reduce = true;
      r_.level[v] = Level::Outer;
    } else {
      gr.shape = val.op == Op::SliceAssign ? g_.vals[val.in[1]].shape : val.shape;
    }
    gr.numel = gr.shape.numel();
    gr.outer = gr.reduce ? val.numel() : gr.numel;
    gr.norm = normalise(gr.shape, gr.mask);
    gr.reach = reach_[v];
    note_phase(gr, v);
    r_.groups.push_back(std::move(gr));
    return r_.group[v] = static_cast<int>(r_.groups.size()) - 1;
  }

  // A few cheap operations on what is in memory anyway, of no more bytes than the result: every
  // reader computes it on the spot, so that no kernel waits for another because of it.
  bool is_free(int v) {
    const Val& val = g_.vals[v];
    if (!is_elementwise(val.op) || val.output || val.material || val.alone) return false;
    int ops = weight(val.op);
    int64_t bytes = 0;
    if (ops > 1) return false;
    for (int k = 0; k < val.n_in; ++k) {
      Edge e = edge_of(g_, v, k);
      const Val& p = g_.vals[e.producer];
      if (e.fence) return false;
      if (p.source()) {
        if (p.op == Op::Random) return false;
      } else if (p.op == Op::Leaf || (is_library(p.op) && p.op != Op::SliceAssign) ||
                 p.op == Op::Result) {
        bytes += p.bytes();
      } else if (free_ops_[e.producer]) {
        ops += free_ops_[e.producer];
        bytes += free_bytes_[e.producer];
      } else {
        return false;
      }
    }
    if (ops > 12 || bytes > std::max(val.bytes(), kSmall)) return false;
    for (int i = reader_begin_[v]; i < reader_begin_[v + 1]; ++i)
      if (!readable_inline(readers_[i])) return false;
    free_ops_[v] = ops;
    free_bytes_[v] = bytes;
    return true;
  }
  // Does this reader (or, if it is a view, do its readers) compute its operand inline?
  bool readable_inline(int w) {
    const Val& val = g_.vals[w];
    if (!val.view()) return val.compute() && val.op != Op::Assign;
    for (int i = reader_begin_[w]; i < reader_begin_[w + 1]; ++i)
      if (!readable_inline(readers_[i])) return false;
    return val.op != Op::Fence;
  }

  // The largest value that u, or anything its kernel needs, is computed together with. Values
  // before a group's first member cannot depend on it, so searches stop there.
  int reach(int u) const { return r_.group[u] >= 0 ? r_.groups[r_.group[u]].reach : reach_[u]; }

  void find_readers() {
    size_t n = g_.vals.size();
    reach_.assign(n, 0);
    free_ops_.assign(n, 0);
    free_bytes_.assign(n, 0);
    reader_begin_.assign(n + 1, 0);
    for (const Val& v : g_.vals)
      for (int k = 0; k < v.n_in; ++k) ++reader_begin_[v.in[k] + 1];
    for (size_t i = 0; i < n; ++i) reader_begin_[i + 1] += reader_begin_[i];
    readers_.resize(reader_begin_[n]);
    std::vector<int> at(reader_begin_.begin(), reader_begin_.end() - 1);
    for (size_t v = 0; v < n; ++v)
      for (int k = 0; k < g_.vals[v].n_in; ++k)
        readers_[at[g_.vals[v].in[k]]++] = static_cast<int>(v);
  }

 public:
  // Values that left their groups are looked through from now on.
  void after_prune() {
    for (size_t v = 0; v < g_.vals.size(); ++v) {
      if (r_.group[v] >= 0) continue;
      reach_[v] = static_cast<int>(v);
      for (int k = 0; k < g_.vals[v].n_in; ++k)
        reach_[v] = std::max(reach_[v], reach(g_.vals[v].in[k]));
    }
  }

 private:
  // A group that grew reaches further, and so does everything that reads it.
  void extend(int gi, int to) {
    if (r_.groups[gi].reach >= to) return;
    r_.groups[gi].reach = to;
    std::vector<int> todo = r_.groups[gi].members;
    while (!todo.empty()) {
      int u = todo.back();
      todo.pop_back();
      extend_budget_ -= 1 + reader_begin_[u + 1] - reader_begin_[u];
      for (int i = reader_begin_[u]; i < reader_begin_[u + 1]; ++i) {
        int w = readers_[i], gw = r_.group[w];
        if (w > to) continue;  // not placed yet
        if (gw >= 0 ? r_.groups[gw].reach >= to : reach_[w] >= to) continue;
        if (gw >= 0) {
          r_.groups[gw].reach = to;
          todo.insert(todo.end(), r_.groups[gw].members.begin(), r_.groups[gw].members.end());
        } else {
          reach_[w] = to;
          todo.push_back(w);
        }
      }
    }
  }

  void add(int v, int gi, Level level) {
    Group& gr = r_.groups[gi];
    gr.members.push_back(v);
    gr.first = std::min(gr.first, v);
    gr.last = std::max(gr.last, v);
    gr.ops += weight(g_.vals[v].op);
    r_.group[v] = gi;
    r_.level[v] = level;
    note_phase(gr, v);
    extend(gi, reach_[v]);
  }
  void note_phase(Group& gr, int v) const {
    gr.early = gr.early || phase_[v] == Phase::Early;
    gr.late = gr.late || phase_[v] == Phase::Late;
  }
  bool phase_fits(const Group& gr, int v) const {
    if (phase_[v] == Phase::Late) return !gr.early && !gr.reduce;
    return !(gr.late && (phase_[v] == Phase::Early || is_reduce(g_.vals[v].op)));
  }

  // Rows that fit on chip, contiguous, and enough of them to keep the device busy.
  static bool row_fits(const Group& gr) {
    if (!gr.reduce || gr.norm.empty() || !gr.norm.back().second || gr.norm.size() > 2) return false;
    int64_t row = gr.norm.back().first;
    return row <= kMaxRow && (gr.outer >= 16 || gr.numel <= 32768);
  }

  // Is operand k of the element-level value v the outer-level value p, repeated along the inner
  // axes of the group?
  bool broadcasts_rows(const Group& gr, int v, int k, int p) {
    Space s = Space::of(gr.shape, gr.mask);
    for (int tries = 0; tries < kMaxAxes; ++tries) {
      Index idx;
      Fitting f = unflatten(s, s.flat(), g_.vals[v].shape, idx);
      int u = g_.vals[v].in[k];
      if (f.fit == Fit::Ok) {
        idx = broadcast_index(idx, g_.vals[u].shape);
        std::vector<Limit> limits;
        while (f.fit == Fit::Ok && u != p) {
          f = through(g_, u, s, idx, limits);
          u = g_.vals[u].in[0];
        }
        if (!limits.empty()) return false;
        if (f.fit == Fit::Ok) return flatten(idx, g_.vals[p].shape) == s.outer();
      }
      if (f.fit == Fit::Fail || s.size() >= kMaxAxes - 1) return false;
      s.split(f.axis, f.inner);
    }
    return false;
  }

  // Does an edge from p to operand k of v stay inside one kernel when both are members at these
  // levels?
  bool inside(const Group& gr, int v, int k, const Edge& e, Level lv, Level lp) {
    if (e.fence || g_.vals[v].copied) return false;
    if (g_.vals[v].op == Op::Gather && k == 0) return false;
    if (g_.vals[v].op == Op::Assign && k == 0) return false;
    if (is_reduce(g_.vals[v].op)) return lp == Level::Elem && e.direct;
    if (e.direct && g_.vals[v].numel() == g_.vals[e.producer].numel() && lv == lp) return true;
    return lp == Level::Outer && lv == Level::Elem && gr.reduce && row_fits(gr) &&
           broadcasts_rows(gr, v, k, e.producer);
  }

  // Does value x need (directly or not) a member of group gi? Gives up (true) when the search gets
  // long.
  bool depends(int x, int gi) {
    ++stamp_;
    stack_.assign(1, x);
    int first = r_.groups[gi].first;
    int budget = kSearchBudget;
    while (!stack_.empty()) {
      int u = stack_.back();
      stack_.pop_back();
      if (seen_[u] == stamp_) continue;
      seen_[u] = stamp_;
      int gu = r_.group[u];
      if (gu == gi) return true;
      if (--budget < 0) return true;
      if (reach(u) < first) continue;
      if (gu < 0) {
        push_inputs(u);
      } else {  // a kernel needs all that its members need
        for (int m : r_.groups[gu].members)
          if (seen_[m] != stamp_ || m == u) {
            seen_[m] = stamp_;
            push_inputs(m);
          }
      }
    }
    return false;
  }
  void push_inputs(int u) {
    const Val& v = g_.vals[u];
    for (int i = 0; i < v.n_in; ++i)
      if (seen_[v.in[i]] != stamp_) stack_.push_back(v.in[i]);
  }

  bool can_join(int v, int gi, Level level) {
    const Group& gr = r_.groups[gi];
    const Val& val = g_.vals[v];
    if (gr.ops + weight(val.op) > kMaxOps || g_.vals[gr.members[0]].device != val.device)
      return false;
    // Long graphs (a network over thousands of steps): only nearby values, or the cost would be
    // quadratic.
    if (extend_budget_ < 0 && v - gr.first > kNear) return false;
    if (g_.vals[gr.members[0]].op == Op::SliceAssign || !phase_fits(gr, v)) return false;
    for (int k = 0; k < val.n_in; ++k) {
      Edge e = edge_of(g_, v, k);
      if (r_.group[e.producer] == gi) {
        if (!inside(gr, v, k, e, level, r_.level[e.producer])) return false;
      } else if (!g_.vals[val.in[k]].source() && g_.vals[val.in[k]].op != Op::Leaf &&
                 depends(val.in[k], gi)) {
        return false;
      }
    }
    return true;
  }

  // Joining at the outer level saves little; it must not make a reduction wait for kernels that it
  // could run beside.
  bool waits_for_others(int v, int gi) {
    const Group& gr = r_.groups[gi];
    for (int k = 0; k < g_.vals[v].n_in; ++k) {
      int p = edge_of(g_, v, k).producer, gp = r_.group[p];
      if (gp == gi || g_.vals[p].source() || free_ops_[p]) continue;
      if (gr.outer == 1 && gp >= 0 && r_.groups[gp].reduce) return true;
      if (reach(p) < gr.first || (gp >= 0 && r_.groups[gp].numel * 8 <= gr.numel)) continue;
      if (gp < 0 || (r_.groups[gp].reduce && r_.groups[gp].norm != gr.norm)) return true;
    }
    return false;
  }

  bool reaches(int from, int to) {  // does group `to` need group `from` through others?
    for (int m : r_.groups[to].members)
      for (int k = 0; k < g_.vals[m].n_in; ++k) {
        int p = edge_of(g_, m, k).producer;
        if (r_.group[p] == to || r_.group[p] == from) continue;
        int u = g_.vals[m].in[k];
        if (g_.vals[u].op == Op::Leaf || g_.vals[u].source()) continue;
        if (depends(u, from)) return true;
      }
    return false;
  }

  // Merges group b into a; b's members are put at the outer level when `demote`.
  bool merge(int a, int b, bool demote) {
    Group &ga = r_.groups[a], &gb = r_.groups[b];
    if (ga.ops + gb.ops > kMaxOps || g_.vals[ga.members[0]].device != g_.vals[gb.members[0]].device)
      return false;
    if (g_.vals[gb.members[0]].op == Op::SliceAssign ||
        g_.vals[ga.members[0]].op == Op::SliceAssign)
      return false;
    if ((ga.late && (gb.early || gb.reduce)) || (gb.late && (ga.early || ga.reduce))) return false;
    if (demote ? gb.reduce : (ga.reduce && gb.reduce && ga.norm != gb.norm)) return false;
    if (!demote && !ga.reduce && gb.reduce) return merge_into_reduce(a, b);
    for (int m : gb.members)
      for (int k = 0; k < g_.vals[m].n_in; ++k) {
        Edge e = edge_of(g_, m, k);
        if (r_.group[e.producer] != a) continue;
        Level lm = demote ? Level::Outer : r_.level[m];
        if (!inside(ga, m, k, e, lm, r_.level[e.producer])) return false;
      }
    for (int m : ga.members)
      for (int k = 0; k < g_.vals[m].n_in; ++k) {
        Edge e = edge_of(g_, m, k);
        if (r_.group[e.producer] != b) continue;
        Level lp = demote ? Level::Outer : r_.level[e.producer];
        if (!inside(ga, m, k, e, r_.level[m], lp)) return false;
      }
    if (reaches(a, b) || reaches(b, a)) return false;
    absorb(a, b, demote);
    return true;
  }
  bool merge_into_reduce(int a, int b) {  // a is a Map: give it b's space first
    Group& ga = r_.groups[a];
    Group saved = ga;
    const Group& gb = r_.groups[b];
    ga.reduce = true;
    ga.norm = gb.norm;
    ga.shape = gb.shape;
    ga.mask = gb.mask;
    ga.outer = gb.outer;
    if (merge(a, b, false)) return true;
    ga = saved;
    return false;
  }
  void absorb(int a, int b, bool demote) {
    Group &ga = r_.groups[a], &gb = r_.groups[b];
    for (int m : gb.members) {
      r_.group[m] = a;
      if (demote) r_.level[m] = Level::Outer;
    }
    std::vector<int> all(ga.members.size() + gb.members.size());
    std::merge(ga.members.begin(), ga.members.end(), gb.members.begin(), gb.members.end(),
               all.begin());
    ga.members = std::move(all);
    ga.first = ga.members.front();
    ga.last = ga.members.back();
    ga.ops += gb.ops;
    ga.early = ga.early || gb.early;
    ga.late = ga.late || gb.late;
    int to = std::max(ga.reach, gb.reach);
    gb = Group{};
    ga.reach = -1;  // both halves' readers learn of the other
    extend(a, to);
  }

  void place_elementwise(int v);
  void place_reduce(int v);

  Graph& g_;
  Grouping& r_;
  std::vector<int> seen_;
  std::vector<Phase> phase_;
  int stamp_ = 0;
  std::vector<int> stack_;
  int64_t extend_budget_ = 0;
  std::vector<int> reach_, reader_begin_, readers_;
  std::vector<int>
      free_ops_;  // values that readers compute on the spot: their instructions and bytes
  std::vector<int64_t> free_bytes_;
};

void Grouper::place_elementwise(int v) {
  const Val& val = g_.vals[v];
  std::vector<Candidate> found;
  for (int k = 0; k < val.n_in && !val.copied; ++k) {
    Edge e = edge_of(g_, v, k);
    int gi = r_.group[e.producer];
    if (gi < 0 || e.fence || (val.op == Op::Gather && k == 0) || (val.op == Op::Assign && k == 0))
      continue;
    const Group& gr = r_.groups[gi];
    Level lp = r_.level[e.producer];
    if (e.direct && g_.vals[e.producer].numel() == val.numel())
      found.push_back({gi, lp == Level::Outer ? 1 : 2});
    else if (lp == Level::Outer && gr.numel == val.numel() && row_fits(gr) &&
             broadcasts_rows(gr, v, k, e.producer))
      found.push_back({gi, 0});
  }
  // The largest kernel first: there is most to save. Then broadcasts, outer and element level.
  std::stable_sort(found.begin(), found.end(), [&](auto& a, auto& b) {
    int64_t na = r_.groups[a.group].numel, nb = r_.groups[b.group].numel;
    return na != nb ? na > nb : a.kind < b.kind;
  });
  int mine = -1;
  Level level = Level::Elem;
  for (const Candidate& c : found) {
    int gi = c.group;
    if (r_.groups[gi].members.empty() || gi == mine) continue;  // merged a moment ago
    if (mine < 0) {
      Level l = c.kind == 1 ? Level::Outer : Level::Elem;
      if (l == Level::Outer && waits_for_others(v, gi)) continue;
      // Not both of two groups can always be joined; merging them first lets v see one group.
      if (can_join(v, gi, l)) {
        mine = gi;
        level = l;
        add(v, mine, level);
      }
      continue;
    }
    bool demote = level == Level::Outer && c.kind == 2 && !r_.groups[gi].reduce;
    if (level == Level::Outer && c.kind == 2 && !demote) continue;
    merge(mine, gi, demote);
  }
  if (mine < 0) start(v);
}

void Grouper::place_reduce(int v) {
  const Val& val = g_.vals[v];
  Edge e = edge_of(g_, v, 0);
  int gi = r_.group[e.producer];
  const Dims& shape = g_.vals[val.in[0]].shape;
  bool joins = gi >= 0 && e.direct && !e.fence && r_.level[e.producer] == Level::Elem &&
               g_.vals[e.producer].numel() == shape.numel() && r_.groups[gi].ops < kMaxOps &&
               g_.vals[e.producer].op != Op::SliceAssign && phase_fits(r_.groups[gi], v);
  if (joins) {
    Group& gr = r_.groups[gi];
    auto norm = normalise(shape, val.attrs.as<ReduceAttrs>().axes);
    if (!gr.reduce) {
      gr.reduce = true;
      gr.shape = shape;
      gr.mask = val.attrs.as<ReduceAttrs>().axes;
      gr.norm = std::move(norm);
      gr.outer = val.numel();
    } else if (gr.norm != norm) {
      joins = false;
    }
  }
  if (joins)
    add(v, gi, Level::Outer);
  else
    start(v);
}

// Kernels over one space that read the same large buffer become one.
void Grouper::merge_siblings() {
  std::map<int, std::vector<int>> readers;  // buffer -> groups, in order
  for (size_t gi = 0; gi < r_.groups.size(); ++gi) {
    ++stamp_;
    stack_ = r_.groups[gi].members;
    while (!stack_.empty()) {
      int m = stack_.back();
      stack_.pop_back();
      // Windows overlap: what is read through one view counts, though its elements are fewer than
      // the space's.
      if (int u = g_.vals[m].in[0]; is_reduce(g_.vals[m].op) && g_.vals[u].view() &&
                                    g_.vals[u].numel() == r_.groups[gi].numel)
        readers[u].push_back(static_cast<int>(gi));
      for (int k = 0; k < g_.vals[m].n_in; ++k) {
        int p = edge_of(g_, m, k).producer;
        const Val& val = g_.vals[p];
        if (seen_[p] == stamp_ || r_.group[p] == static_cast<int>(gi) || val.source()) continue;
        seen_[p] = stamp_;
        if (val.compute() && !val.material)
          stack_.push_back(p);  // inlined: what it reads is read here
        else if (val.numel() == r_.groups[gi].numel)
          readers[p].push_back(static_cast<int>(gi));
      }
    }
  }
  for (auto& [buffer, list] : readers)
    for (size_t i = 1; i < list.size(); ++i) {
      int a = list[i - 1], b = list[i];
      if (a == b || r_.groups[a].members.empty() || r_.groups[b].members.empty()) continue;
      const Group &ga = r_.groups[a], &gb = r_.groups[b];
      if (ga.numel != gb.numel || (ga.reduce != gb.reduce)) continue;
      if (merge(a, b, false)) list[i] = a;
    }
}

}  // namespace

int weight(Op op) {
  switch (op) {
    case Op::Random:
      return 8;
    case Op::Div:
    case Op::Sqrt:
    case Op::Rsqrt:
    case Op::Reciprocal:
    case Op::Fmod:
    case Op::Remainder:
      return 3;
    case Op::Pow:
    case Op::Atan2:
      return 10;
    default:
      break;
  }
  return info(op).smooth ? 6 : 1;
}

Edge edge_of(const Graph& g, int v, int k) {
  Edge e{g.vals[v].in[k], true, false};
  if (g.vals[v].copied) e.direct = false;
  while (g.vals[e.producer].view()) {
    const Val& u = g.vals[e.producer];
    if (u.op == Op::Fence) e.fence = true;
    if (u.op != Op::Reshape && u.op != Op::Alias && u.op != Op::Fence) e.direct = false;
    e.producer = u.in[0];
  }
  return e;
}

Grouping make_groups(Graph& g, bool fuse) {
  Grouping r;
  Grouper grouper(g, r);
  grouper.form(fuse);
  choose_buffers(g, r, fuse);
  if (fuse) {
    grouper.after_prune();
    grouper.merge_siblings();
  }
  return r;
}

}  // namespace ingot
