// Which values get a buffer: each one read from outside its kernel is either stored or computed
// again by its reader, whichever moves fewer bytes.
#include <algorithm>
#include <map>

#include "compile/group.h"

namespace ingot {
namespace {

constexpr int kMaxRecompute = 48;  // weighted instructions worth repeating to save a buffer

struct Cost {
  int ops = 0;
  int64_t bytes = 0;  // read to compute it again
  bool possible = true;
};

class Materialiser {
 public:
  Materialiser(Graph& g, Grouping& r) : g_(g), r_(r), seen_(g.vals.size(), 0) {}

  void run(bool fuse) {
    int n = static_cast<int>(g_.vals.size());
    readers_.resize(n);
    for (int v = 0; v < n; ++v) {
      const Val& val = g_.vals[v];
      if (g_.users[v] == 0) continue;
      if (val.op == Op::Leaf || is_library(val.op) || val.op == Op::Result ||
          (val.compute() && val.numel() == 0))
        g_.vals[v].material = true;
      if (val.compute() && (val.output || !fuse || val.op == Op::Assign || val.copied))
        g_.vals[v].material = true;
      for (int k = 0; k < val.n_in; ++k) note_reader(v, k);
      if (val.op == Op::Fence) {  // what the fence waits for must be something a kernel finishes
        Val& p = g_.vals[edge_of(g_, v, 1).producer];
        if (p.compute()) p.material = true;
      }
    }
    for (int v = 0; v < n; ++v) decide(v);
    for (Val& v : g_.vals)
      if (v.material && v.stride.size() != v.shape.size()) v.stride = row_major(v.shape);
  }

 private:
  void note_reader(int v, int k) {
    const Val& val = g_.vals[v];
    if (val.view()) return;
    Edge e = edge_of(g_, v, k);
    Val& p = g_.vals[e.producer];
    if (!p.compute()) return;
    bool library = is_library(val.op) && val.op != Op::SliceAssign;
    if (library || e.fence || (val.op == Op::SliceAssign && k == 0) ||
        (val.op == Op::Assign && k == 0)) {
      p.material = true;
      return;
    }
    if (r_.group[e.producer] < 0) return;  // free
    if (r_.group[e.producer] == r_.group[v])
      return;  // grouping made sure the edge is inside the kernel
    readers_[e.producer].push_back(v);
  }

  // Is p a value per row that element-level v uses? It gets a buffer rather than being computed
  // again.
  bool is_row_value(int v, int p) const {
    return is_reduce(g_.vals[p].op) || (r_.level[p] == Level::Outer && r_.level[v] == Level::Elem);
  }

  // The cost of computing v again inside a reader: every value it is made of counts once.
  Cost recompute(int v) {
    Cost c;
    ++stamp_;
    stack_.assign(1, v);
    int budget = 256;
    while (!stack_.empty()) {
      int u = stack_.back();
      stack_.pop_back();
      const Val& val = g_.vals[u];
      c.ops += weight(val.op);
      if (is_reduce(val.op) || val.op == Op::Assign || val.op == Op::Gather || --budget < 0)
        c.possible = false;
      if (!c.possible) return c;
      for (int k = 0; k < val.n_in; ++k) {
        int p = edge_of(g_, u, k).producer;
        const Val& in = g_.vals[p];
        if (seen_[p] == stamp_ || in.op == Op::Const || in.op == Op::Arg || in.op == Op::Iota)
          continue;
        seen_[p] = stamp_;
        if (in.op == Op::Random) {
          c.ops += weight(in.op);
        } else if (in.material || is_row_value(u, p)) {
          c.bytes += in.bytes();
          // Row values must be small compared to what they save.
          if (!in.material && in.numel() * 8 > g_.vals[u].numel()) c.possible = false;
        } else {
          stack_.push_back(p);
        }
      }
    }
    return c;
  }

  void force_rows(int v) {  // reduce results that v's expression needs get buffers
    const Val& val = g_.vals[v];
    for (int k = 0; k < val.n_in; ++k) {
      int p = edge_of(g_, v, k).producer;
      Val& in = g_.vals[p];
      if (in.material || in.source() || !in.compute()) continue;
      if (is_row_value(v, p))
        in.material = true;
      else
        force_rows(p);
    }
  }

  void decide(int v) {
    Val& val = g_.vals[v];
    if (!val.compute() || g_.users[v] == 0) return;
    if (val.material || readers_[v].empty() || r_.group[v] < 0) return;
    Cost c = recompute(v);
    int64_t largest = 0;
    for (int reader : readers_[v]) largest = std::max(largest, space_of(reader));
    bool spread = largest > val.numel();  // computed many times over
    // With a buffer it is written once and read by each; without, each reads what it is made of.
    int64_t k = kernels_reading(v);
    bool saves = k * c.bytes <= (k + 1) * val.bytes() + val.bytes() / 16 || c.bytes < 4096;
    bool worth = c.possible && saves &&
                 c.ops <= (spread               ? (c.bytes ? 6 : 24)
                           : k == 1 && alone(v) ? 4 * kMaxRecompute
                                                : kMaxRecompute);
    if (worth)
      force_rows(v);
    else
      val.material = true;
  }
  int64_t kernels_reading(int v) const {
    std::vector<int> groups;
    for (int reader : readers_[v]) groups.push_back(r_.group[reader]);
    std::sort(groups.begin(), groups.end());
    return std::unique(groups.begin(), groups.end()) - groups.begin();
  }
  int64_t space_of(int v) const {
    return r_.group[v] >= 0 ? r_.groups[r_.group[v]].numel : g_.vals[v].numel();
  }
  // Is v the last member of a Map whose other values stay inside?
  bool alone(int v) const { return !r_.groups[r_.group[v]].reduce; }

  Graph& g_;
  Grouping& r_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> seen_, stack_;
  int stamp_ = 0;
};

// Members that nobody outside needs and that serve no stored member are dropped from the groups.
void prune(Graph& g, Grouping& r) {
  std::vector<char> needed(g.vals.size(), 0);
  for (Group& gr : r.groups) {
    for (auto it = gr.members.rbegin(); it != gr.members.rend(); ++it) {
      int v = *it;
      if (g.vals[v].material || g.vals[v].op == Op::SliceAssign) needed[v] = 1;
      if (!needed[v]) continue;
      for (int k = 0; k < g.vals[v].n_in; ++k) {
        int p = edge_of(g, v, k).producer;
        if (r.group[p] == r.group[v]) needed[p] = 1;
      }
    }
    for (int v : gr.members)
      if (!needed[v]) r.group[v] = -1;  // computed on the spot by its readers
    std::erase_if(gr.members, [&](int v) { return !needed[v]; });
  }
}

}  // namespace

void choose_buffers(Graph& g, Grouping& r, bool fuse) {
  Materialiser(g, r).run(fuse);
  prune(g, r);
}

}  // namespace ingot
