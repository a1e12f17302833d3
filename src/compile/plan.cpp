// From a graph to a plan: simplify, views, groups, lowering, horizontal merging, order, memory,
// executables.
#include "compile/plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <queue>

#include "base/hash.h"
#include "compile/decompose.h"
#include "compile/group.h"
#include "compile/lower.h"
#include "compile/lowered_launch.h"
#include "runtime/require_device.h"

namespace ingot {
namespace {

// What the fences between operands of v and their producers wait for.
void add_fences(const Graph& g, int v, std::vector<int>& after) {
  for (int k = 0; k < g.vals[v].n_in; ++k)
    for (int u = g.vals[v].in[k]; g.vals[u].view(); u = g.vals[u].in[0])
      if (g.vals[u].op == Op::Fence) after.push_back(edge_of(g, u, 1).producer);
}

// Further results of a library call, by number. (They are recorded together; simplify keeps them
// together.)
std::vector<int> extra_results(const Graph& g, int v) {
  std::vector<int> sides;
  if (g.vals[v].results() == 1) return sides;
  for (int number = 1; number < 4; ++number)
    for (size_t u = static_cast<size_t>(v) + 1; u < g.vals.size(); ++u)
      if (g.vals[u].op == Op::Result && g.vals[u].n_in == 1 && g.vals[u].in[0] == v &&
          g.vals[u].attrs.as<ResultAttrs>().index == number) {
        sides.push_back(static_cast<int>(u));
        break;
      }
  return sides;
}

// Copies the operands of attention whose layout no kernel takes; false when there are none.
bool copy_operands(Graph& g, int v, const LibrarySpec& l) {
  Backend* b = backend_for(g.vals[v].device.type());
  if (!b || b->best_offer(l)) return false;
  bool any = false;
  for (int k = 0; k < g.vals[v].n_in; ++k) {
    Val& u = g.vals[g.vals[v].in[k]];
    const OperandSpec& o = l.operands[static_cast<size_t>(l.written) + static_cast<size_t>(k)];
    if (!u.view() || (o.stride == row_major(o.shape) && o.offset == 0)) continue;
    u.copied = any = true;
  }
  return any;
}

int64_t rows_before(const Dims& shape, int axis) {
  int64_t n = 1;
  for (int d = 0; d < axis; ++d) n *= shape[d];
  return n;
}

// One part of a Cat: rows of `inner` elements to their position in the result's rows.
KernelSpec copy_of_part(const OperandSpec& in, const OperandSpec& out, int64_t outer, int64_t row,
                        int64_t at) {
  const int64_t inner = in.shape.numel() / outer;
  KernelSpec s;
  s.label = "cat";
  Instr load;
  load.kind = InstrKind::Load;
  load.dtype = in.dtype;
  load.buffer = 0;
  load.map.offset = in.offset;
  Store store{0, 1, {}, false, -1};
  store.map.offset = at;
  if (outer > 1) {
    s.extent.push_back(outer);
    load.map.stride.push_back(inner);
    store.map.stride.push_back(row);
  }
  s.extent.push_back(inner);
  load.map.stride.push_back(1);
  store.map.stride.push_back(1);
  s.n_outer = s.n_axes();
  s.buffers = {{in.dtype, in.offset + in.shape.numel(), false, false},
               {out.dtype, out.shape.numel(), true, false}};
  s.instrs.push_back(std::move(load));
  s.stores.push_back(std::move(store));
  return s;
}

// Cat: one launch that copies each part to its position; two where there are both parts of width 1
// and wider ones.
std::vector<LoweredLaunch> copy_parts(const LoweredLaunch& call, int axis) {
  const OperandSpec& out = call.library.operands[0];
  const int64_t outer = rows_before(out.shape, axis), row = out.shape.numel() / outer;
  std::vector<LoweredLaunch> lowered;
  int64_t at = 0;
  for (size_t k = 1; k < call.library.operands.size(); ++k) {
    const OperandSpec& in = call.library.operands[k];
    if (in.shape.numel() == 0) continue;
    KernelSpec part = copy_of_part(in, out, outer, row, at);
    at += in.shape.numel() / outer;
    auto w = std::find_if(lowered.begin(), lowered.end(),
                          [&](const LoweredLaunch& o) { return same_structure(o.parts[0], part); });
    if (w == lowered.end()) {
      w = lowered.emplace(lowered.end());
      w->device = call.device;
      w->last = call.last;
      w->after = call.after;
    }
    w->parts.push_back(std::move(part));
    w->vals.insert(w->vals.end(), {call.vals[k], call.vals[0]});
  }
  return lowered;
}

// Groups and lowers; an index map that does not fit sends the offending values to kernels of their
// own.
std::vector<LoweredLaunch> lower_groups(Graph& g, bool fuse) {
  for (int tries = 0;; ++tries) {
    if (tries == 100) fuse = false;
    Grouping r = make_groups(g, fuse);
    std::vector<LoweredLaunch> lowered;
    bool again = false;
    for (size_t gi = 0; gi < r.groups.size() && !again; ++gi) {
      if (r.groups[gi].members.empty()) continue;
      Lowered low;
      int user = -1, producer = -1;
      if (!lower_group(g, r, static_cast<int>(gi), low, user, producer)) {
        if (tries > 200)
          throw Error(ErrorKind::Internal, "compile",
                      "no index map fits " + std::string(info(g.vals[user].op).name));
        if (g.vals[producer].view())
          g.vals[producer].copied = true;
        else if (g.vals[producer].compute())
          g.vals[producer].material = true;
        g.vals[user].alone = true;
        again = true;
        break;
      }
      LoweredLaunch w;
      w.device = g.vals[r.groups[gi].members[0]].device;
      w.region =
          g.vals[r.groups[gi].members[0]].op == Op::SliceAssign ? r.groups[gi].members[0] : -1;
      w.last = r.groups[gi].members.back();
      for (int m : r.groups[gi].members) add_fences(g, m, w.after);
      w.parts.push_back(std::move(low.spec));
      w.vals = std::move(low.buffer_vals);
      for (Instr& i : w.parts[0].instrs)
        if (i.site >= 0) i.site = low.sites[i.site];
      lowered.push_back(std::move(w));
    }
    if (again) continue;
    for (size_t v = 0; v < g.vals.size(); ++v) {
      const Val& val = g.vals[v];
      if (g.users[v] == 0 || !is_library(val.op) || val.op == Op::SliceAssign || val.numel() == 0)
        continue;
      LoweredLaunch w;
      w.device = val.device;
      w.library_call = true;
      w.last = static_cast<int>(v);
      w.library =
          lower_library(g, static_cast<int>(v), extra_results(g, static_cast<int>(v)), w.vals);
      w.library.site = static_cast<int>(v);
      if (is_composite_call(val) && copy_operands(g, static_cast<int>(v), w.library)) {
        again = true;
        break;
      }
      add_fences(g, static_cast<int>(v), w.after);
      if (val.op == Op::Cat) {
        for (LoweredLaunch& copy : copy_parts(w, val.attrs.as<CatAttrs>().axis))
          lowered.push_back(std::move(copy));
        continue;
      }
      if (val.op == Op::ToDevice) {
        w.copy = true;
        w.from = g.vals[val.in[0]].device;
      }
      lowered.push_back(std::move(w));
    }
    if (again) continue;
    return lowered;
  }
}

bool keepable(const Val& v) {
  return v.material && v.op != Op::Leaf && v.node >= 0 && v.stride == row_major(v.shape);
}

// A value that a gradient may still ask for and that has a buffer anyway is kept.
void keep_history(Graph& g) {
  for (size_t v = 0; v < g.vals.size(); ++v) {
    const Val& val = g.vals[v];
    if (!val.history || g.users[v] == 0) continue;
    for (int k = 0; k < val.n_in; ++k) {
      Val& p = g.vals[edge_of(g, static_cast<int>(v), k).producer];
      if (keepable(p)) p.output = true;
    }
    if (keepable(val)) g.vals[v].output = true;
  }
}

class Planner {
 public:
  Planner(Graph g, const CompileOptions& o) : o_(o), checks_(checks_graphs()) {
    plan_ = std::make_shared<Plan>();
    plan_->graph = std::move(g);
  }

  std::shared_ptr<Plan> run(const std::vector<CompositeCall>& was_refused) {
    Graph& g = plan_->graph;
    check("the trace", Dead::Allowed);
    plan_->decomposed = decompose_unclaimed(g, was_refused, o_.fuse);
    check("decompose_unclaimed", Dead::Allowed);
    separate_assigns(g);
    g.count_users();
    check("separate_assigns", Dead::Allowed);
    apply(simplify, "simplify");
    if (o_.fuse) {
      apply(transpose_products, "transpose_products");
      apply(add_epilogues, "add_epilogues");
      apply(decompose_functions, "decompose_functions");
      apply(fold_conv_epilogues, "fold_conv_epilogues");
      apply(use_space_to_depth, "use_space_to_depth");
      apply(join_attention_gradients, "join_attention_gradients");
    }
    apply(choose_layouts, "choose_layouts");
    apply(settle_views, "settle_views");
    lowered_ = lower_groups(g, o_.fuse);
    check("lower_groups");
    for (LoweredLaunch& w : lowered_) {
      if (!o_.tf32 || !w.library_call || w.library.operands[0].dtype != DType::Float32) continue;
      w.library.tf32 =
          is_recurrent(w.library.op) ||
          (w.library.op == Op::Matmul && w.library.operands[1].dtype == DType::Float32);
    }
    keep_history(g);
    if (o_.fuse) {
      merge_horizontally(g, lowered_);
      join_stages(g, lowered_);
    }
    order_ = order_launches(g, lowered_);
    find_uses();
    choose_places();
    build_steps();
    if (refused.empty()) place();
    return plan_;
  }

  std::vector<CompositeCall> refused;  // calls that the plan cannot be made with

 private:
  void check(const char* pass, Dead dead = Dead::Dropped) const {
    if (checks_) check_graph(plan_->graph, pass, dead);
  }
  void apply(void (*pass)(Graph&), const char* name) {
    pass(plan_->graph);
    check(name);
  }

  const Val& val(int v) const { return plan_->graph.vals[v]; }

  void find_uses() {
    size_t n = plan_->graph.vals.size();
    first_.assign(n, -1);
    last_.assign(n, -1);
    for (size_t s = 0; s < order_.size(); ++s)
      for (int v : lowered_[order_[s]].vals) {
        if (first_[v] < 0) first_[v] = static_cast<int>(s);
        last_[v] = static_cast<int>(s);
        // What an assignment begins from is read (copied) here, though the kernel itself does not
        // load it.
        if (val(v).op != Op::Assign && val(v).op != Op::SliceAssign) continue;
        if (first_[v] == static_cast<int>(s))
          last_[edge_of(plan_->graph, v, 0).producer] = static_cast<int>(s);
      }
    where_.resize(n);
    same_as_.assign(n, -1);
  }

  // Is the load one element of the row that the store overwrites (a label's score), known before
  // the row's first reduction? Every store of the row comes after that reduction.
  static bool picks_from_row(const KernelSpec& k, const Instr& load, const Store& st) {
    if (load.indirect < 0 || load.level != Level::Outer || k.n_inner() != 1 || !k.is_row() ||
        !load.bounds.empty())
      return false;
    int inner = k.n_axes() - 1;
    if (load.indirect_stride != st.map.stride[inner] || load.indirect_extent != k.extent[inner] ||
        load.map.offset != st.map.offset)
      return false;
    for (int x = 0; x < inner; ++x)
      if (load.map.stride[x] != st.map.stride[x]) return false;
    std::vector<bool> late(k.instrs.size());  // what depends on a reduction
    for (size_t n = 0; n < k.instrs.size(); ++n) {
      const Instr& in = k.instrs[n];
      late[n] = in.kind == InstrKind::Reduce || (in.indirect >= 0 && late[in.indirect]);
      for (int a : in.arg) late[n] = late[n] || (a >= 0 && late[a]);
    }
    return !late[load.indirect] && late[st.value];
  }

  // May buffer `out` of this kernel be stored in the memory of the value `in`? Every load of `in`
  // must be of the element that is stored.
  bool may_share(const LoweredLaunch& w, int in, int out) const {
    if (w.library_call || w.parts.size() != 1 || size_of(val(in).dtype) != size_of(val(out).dtype))
      return false;
    if (val(in).numel() != val(out).numel()) return false;
    const KernelSpec& k = w.parts[0];
    const Store* st = nullptr;
    for (const Store& s : k.stores)
      if (w.vals[s.buffer] == out) st = &s;
    if (!st || (k.instrs[st->value].level == Level::Outer && k.is_row())) return false;
    for (size_t b = k.buffers.size(); b < w.vals.size(); ++b)
      if (w.vals[b] == in) return false;  // the second stage reads it
    for (const Instr& i : k.instrs) {
      if (i.kind != InstrKind::Load || w.vals[i.buffer] != in) continue;
      if (picks_from_row(k, i, *st)) continue;
      // A value per outer point is read and written by whoever has that point.
      if (i.level != k.instrs[st->value].level || !(i.map == st->map) || !i.bounds.empty() ||
          i.indirect >= 0)
        return false;
    }
    return true;
  }

  // The same of a library call, which the backend knows.
  bool call_may_share(const LoweredLaunch& w, int in, int out) const {
    if (std::count(w.vals.begin(), w.vals.end(), in) != 1 || val(in).bytes() != val(out).bytes())
      return false;
    auto place = [&](int v) {
      return static_cast<size_t>(std::find(w.vals.begin(), w.vals.end(), v) - w.vals.begin());
    };
    const Offer offer = backend_for(w.device.type())->best_offer(w.library);
    return offer.in_place && offer.in_place(w.library, place(in), place(out));
  }

  // Outputs get new buffers or a donated leaf's; the rest is temporary. In place where that is
  // safe.
  void choose_places() {
    Graph& g = plan_->graph;
    std::vector<char> taken(g.vals.size(), 0);  // this value's memory is reused
    assigned_.assign(g.vals.size(), 0);
    for (size_t v = 0; v < g.vals.size(); ++v)
      if (g.vals[v].op == Op::Assign && g.users[v] > 0)
        assigned_[edge_of(g, static_cast<int>(v), 0).producer] = 1;
    for (size_t v = 0; v < g.vals.size(); ++v)
      if (g.vals[v].op == Op::Leaf && g.vals[v].slot >= 0)
        where_[v] = {Binding::Leaf, g.vals[v].slot, 0};
    for (size_t s = 0; s < order_.size(); ++s) {
      LoweredLaunch& w = lowered_[order_[s]];
      for (size_t b = 0; b < w.vals.size(); ++b) {
        int out = w.vals[b];
        if (!written(w, b) || same_as_[out] >= 0 || where_[out].place == Binding::Output) continue;
        int from = source_of_place(w, out, static_cast<int>(s), taken);
        if (from >= 0) {
          taken[from] = 1;
          same_as_[out] = from;
          share(w, from, out);
        }
        if (g.vals[out].output) add_output(out, from);
      }
    }
    for (size_t v = 0; v < g.vals.size(); ++v)
      if (g.vals[v].output && g.vals[v].numel() == 0 && g.vals[v].op != Op::Leaf)
        add_output(static_cast<int>(v), -1);
  }

  // A value that ends in this step and whose memory `out` can reuse, or -1.
  int source_of_place(const LoweredLaunch& w, int out, int step,
                      const std::vector<char>& taken) const {
    const Val& o = val(out);
    auto ends_here = [&](int v) {
      if (assigned_[v]) return false;  // the assignment reuses its memory
      if (last_[v] != step || first_[v] == step || taken[v] || val(v).output) {
        if (!(val(v).op == Op::Leaf && last_[v] == step && !taken[v])) return false;
      }
      if (val(v).op == Op::Leaf)
        return val(v).slot >= 0 && o_.donated[val(v).slot] && val(v).bytes() == o.bytes();
      return !o.output;  // what survives the run cannot be in a temporary's memory
    };
    if (o.op == Op::Assign || o.op == Op::SliceAssign) {
      int old = edge_of(plan_->graph, out, 0).producer;
      bool whole = val(old).numel() == o.numel() && val(old).dtype == o.dtype &&
                   row_major(val(old).shape) == val(old).stride;
      bool last = last_[old] <= step;
      bool read_elsewhere =
          o.op == Op::Assign && reads(w, old) && !may_share(w, old, out) && w.parts.size() == 1;
      if (o.op == Op::SliceAssign && reads(w, old)) read_elsewhere = true;
      if (whole && last && !taken[old] && !read_elsewhere && !val(old).output) {
        if (val(old).op == Op::Leaf && val(old).slot >= 0 && o_.donated[val(old).slot]) return old;
        if (o.op == Op::SliceAssign && val(old).op != Op::Leaf && !o.output && val(old).material)
          return old;
      }
      return -1;
    }
    if (!w.library_call && w.parts.size() != 1) return -1;
    for (int v : w.vals)
      if (v != out && ends_here(v) &&
          (w.library_call ? call_may_share(w, v, out) : may_share(w, v, out)))
        return v;
    return -1;
  }
  static bool reads(const LoweredLaunch& w, int v) {
    for (size_t b = 0; b < w.vals.size(); ++b)
      if (w.vals[b] == v && !written(w, b)) return true;
    return false;
  }

  void share(LoweredLaunch& w, int from, int out) {
    if (w.library_call) return;
    size_t at = 0;
    for (KernelSpec& k : w.parts) {
      for (size_t b = 0; b < k.buffers.size(); ++b)
        if (w.vals[at + b] == from || w.vals[at + b] == out)
          for (KernelSpec& part : w.parts)
            part.buffers[b].may_alias = true;  // parts of one launch are of one structure
      at += k.buffers.size();
    }
  }

  void add_output(int v, int from) {
    PlanOutput o;
    o.node = val(v).node;
    o.bytes = static_cast<size_t>(val(v).bytes());
    o.device = val(v).device;
    o.assign = val(v).op == Op::Assign;
    if (from >= 0) o.donated = val(from).slot;
    where_[v] = {Binding::Output, static_cast<int>(plan_->outputs.size()), 0};
    plan_->outputs.push_back(o);
  }

  // The value whose memory v uses in the end. Chains of reuse may be as long as the plan, so they
  // are shortened on the way.
  int root_of(int v) {
    auto handed_on = [&](int u) { return same_as_[u] >= 0 && where_[u].place != Binding::Output; };
    int root = v;
    while (handed_on(root)) root = same_as_[root];
    while (handed_on(v)) v = std::exchange(same_as_[v], root);
    return root;
  }

  // Which buffer a store writes over, where that is so in all parts.
  void note_overwritten(LoweredLaunch& w) const {
    if (w.library_call || w.copy || w.parts.empty()) return;
    const size_t n = w.parts[0].buffers.size();
    for (size_t s = 0; s < w.parts[0].stores.size(); ++s) {
      const size_t to = static_cast<size_t>(w.parts[0].stores[s].buffer);
      int over = -1;
      for (size_t b = 0; b < n && over < 0; ++b) {
        bool all = b != to;
        for (size_t p = 0; all && p < w.parts.size(); ++p)
          all = same_as_[w.vals[p * n + to]] >= 0 &&
                same_as_[w.vals[p * n + to]] == w.vals[p * n + b];
        if (all) over = static_cast<int>(b);
      }
      for (KernelSpec& k : w.parts) k.stores[s].over = over;
    }
  }

  void build_steps() {
    bool assigned = false;  // has anything been written that was there before the run?
    for (int wi : order_) {
      LoweredLaunch& w = lowered_[wi];
      for (size_t b = 0; w.library_call && !assigned && b < w.vals.size(); ++b)
        if (val(w.vals[b]).op == Op::Leaf) w.library.unwritten_operands |= uint32_t{1} << b;
      assigned = assigned || writes_assigned(w);
      note_overwritten(w);
      copy_before(w);
      Step s;
      s.device = w.device;
      s.from = w.from;
      s.kind = w.copy ? Step::Copy : w.library_call ? Step::Library : Step::Kernel;
      s.parts = std::move(w.parts);
      s.second = std::move(w.second);
      s.library = w.library;
      s.vals = w.vals;
      Backend* b = backend_for(w.device.type());
      if (s.kind == Step::Kernel) s.exe = b->compile(w.device.index(), s.parts);
      if (!s.second.empty())
        s.exe = b->chain(std::move(s.exe), b->compile(w.device.index(), s.second),
                         static_cast<int>(s.parts[0].buffers.size()));
      if (s.kind == Step::Library) s.exe = b->prepare(w.device.index(), s.library);
      if (s.kind == Step::Library && !s.exe) {
        if (!is_composite_call(val(w.last)))
          throw Error(ErrorKind::Internal, "compile",
                      "no library call for " + to_string(s.library));
        refused.push_back(composite_call(plan_->graph, w.last));
        continue;
      }
      if (s.kind == Step::Copy) s.bytes = static_cast<size_t>(val(w.vals[0]).bytes());
      plan_->launches += s.exe ? s.exe->launches : 1;
      for (const KernelSpec& k : s.parts)
        for (const Instr& i : k.instrs)
          if (i.site >= 0) plan_->sites.push_back(i.site);
      if (s.kind == Step::Library && info(s.library.op).may_fail)
        plan_->sites.push_back(s.library.site);
      describe_step(plan_->graph, s);
      plan_->steps.push_back(std::move(s));
    }
  }

  bool writes_assigned(const LoweredLaunch& w) const {
    for (size_t b = 0; b < w.vals.size(); ++b)
      if (written(w, b) &&
          (val(w.vals[b]).op == Op::Assign || val(w.vals[b]).op == Op::SliceAssign))
        return true;
    return false;
  }

  // Assign and SliceAssign that could not take the old buffer begin with a copy of it.
  void copy_before(const LoweredLaunch& w) {
    for (size_t b = 0; b < w.vals.size(); ++b) {
      int out = w.vals[b];
      if (!written(w, b) || same_as_[out] >= 0) continue;
      if (val(out).op != Op::Assign && val(out).op != Op::SliceAssign) continue;
      int old = edge_of(plan_->graph, out, 0).producer;
      Step s;
      s.kind = Step::Copy;
      s.device = s.from = w.device;
      s.vals = {out, old};
      s.bytes = static_cast<size_t>(val(out).bytes());
      s.label = "copy";
      s.bytes_read = s.bytes_written = static_cast<double>(s.bytes);
      plan_->launches += 1;
      plan_->steps.push_back(std::move(s));
    }
  }

  void place();

  CompileOptions o_;
  bool checks_;  // verify the graph after every pass
  std::shared_ptr<Plan> plan_;
  std::vector<LoweredLaunch> lowered_;
  std::vector<int> order_;
  std::vector<int> first_, last_;  // steps (of order_) that touch a value
  std::vector<Binding> where_;
  std::vector<int> same_as_;
  std::vector<char> assigned_;  // an assignment begins from this value
};

// Temporaries and scratch go into the arenas; then every buffer's address is known.
void Planner::place() {
  std::map<std::pair<int, int>, int> arena_of;
  auto arena = [&](Device d) {
    auto [it, fresh] = arena_of.try_emplace({static_cast<int>(d.type()), d.index()},
                                            static_cast<int>(plan_->arenas.size()));
    if (fresh) plan_->arenas.push_back({d, 0});
    return it->second;
  };
  std::vector<Temporary> temps;
  std::map<int, int> temp_of;
  int n = static_cast<int>(plan_->steps.size());
  // Runs lock the arenas in this order: the same in every plan.
  std::map<std::pair<int, int>, Device> devices;
  for (const Step& st : plan_->steps)
    for (int v : st.vals)
      devices.emplace(std::pair(static_cast<int>(val(v).device.type()), val(v).device.index()),
                      val(v).device);
  for (auto& [key, d] : devices) arena(d);
  for (int s = 0; s < n; ++s) {
    Step& st = plan_->steps[s];
    for (int v : st.vals) {
      int root = root_of(v);
      if (where_[root].place != Binding::Arena || val(root).op == Op::Leaf) continue;
      auto [it, fresh] = temp_of.try_emplace(root, static_cast<int>(temps.size()));
      if (fresh)
        temps.push_back({static_cast<size_t>(val(root).bytes()), s, s, arena(val(root).device)});
      temps[it->second].last = s;
    }
  }
  std::vector<int> scratch(n, -1);
  for (int s = 0; s < n; ++s)
    if (plan_->steps[s].exe && plan_->steps[s].exe->scratch_bytes) {
      scratch[s] = static_cast<int>(temps.size());
      temps.push_back({plan_->steps[s].exe->scratch_bytes, s, s, arena(plan_->steps[s].device)});
    }
  std::vector<size_t> sizes = place_temporaries(temps, static_cast<int>(plan_->arenas.size()));
  for (size_t a = 0; a < sizes.size(); ++a) plan_->arenas[a].bytes = sizes[a];
  for (int s = 0; s < n; ++s) {
    Step& st = plan_->steps[s];
    if (scratch[s] >= 0) st.scratch = temps[scratch[s]].offset;
    for (int v : st.vals) {
      int root = root_of(v);
      Binding b = where_[root];
      if (auto it = temp_of.find(root); it != temp_of.end())
        b = {Binding::Arena, arena(val(root).device), temps[it->second].offset};
      st.buffers.push_back(b);
    }
  }
  for (auto [v, t] : temp_of)
    plan_->arena_values.push_back({v, std::string(info(val(v).op).name) + to_string(val(v).shape),
                                   temps[t].bytes, temps[t].offset, temps[t].first, temps[t].last});
}

}  // namespace

std::shared_ptr<Plan> compile_plan(Graph g, const CompileOptions& options) {
  for (const Val& v : g.vals) require_device(v.device);
  if (std::none_of(g.vals.begin(), g.vals.end(), is_composite_call)) {
    return Planner(std::move(g), options).run({});
  }
  // A library may find out that it does not take these operands only when it is asked to prepare
  // the call: those calls are decomposed, and the plan is made again.
  for (std::vector<CompositeCall> refused;;) {
    Planner planner(g, options);
    std::shared_ptr<Plan> plan = planner.run(refused);
    if (planner.refused.empty()) return plan;
    for (const CompositeCall& c : planner.refused)
      if (std::find(refused.begin(), refused.end(), c) != refused.end())
        throw Error(ErrorKind::Internal, "compile", "a call is refused after it was decomposed");
    refused.insert(refused.end(), planner.refused.begin(), planner.refused.end());
  }
}

}  // namespace ingot
