// Values are lowered on demand from what is stored, with the position of the wanted element as a
// linear function of the axes. A value that is a member of the group at its own position is one
// instruction; a value with a buffer is a load; any other elementwise value is computed on the spot
// (inlined). A reshape that does not fit throws a Refine, and the kernel is lowered again over the
// finer space.
#include "compile/lower.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

namespace ingot {
namespace {

struct Refine {
  int axis;
  int64_t inner;
};
struct NoFit {
  int user, producer;
};

struct LInstr {
  Instr i;
  Lin map;
  std::vector<Limit> limits;
};

class Lowerer {
 public:
  Lowerer(const Graph& g, const Grouping& r, int gi, const Space& s)
      : g_(g), r_(r), gi_(gi), gr_(r.groups[gi]), s_(s) {}

  void run(Lowered& out) {
    const Val& head = g_.vals[gr_.members[0]];
    if (head.op == Op::SliceAssign) {
      lower_region(gr_.members[0]);
    } else {
      for (int v : gr_.members)
        if (g_.vals[v].material) store(v);
    }
    finish(out);
  }

 private:
  struct Indirect {
    int instr = -1;
    int64_t extent = 0;
    int site = -1;
  };

  Index must(const Lin& flat, const Dims& shape, int user, int producer) {
    Index idx;
    check(unflatten(s_, flat, shape, idx), user, producer);
    return idx;
  }
  void check(const Fitting& f, int user, int producer) {
    if (f.fit == Fit::Split) throw Refine{f.axis, f.inner};
    if (f.fit == Fit::Fail) throw NoFit{user, producer};
  }

  bool on_inner(const Lin& l) const {
    for (int k = 0; k < s_.size(); ++k)
      if (l.c[k] && s_.axes[k].inner) return true;
    return false;
  }

  int emit(LInstr x) {
    instrs_.push_back(std::move(x));
    return static_cast<int>(instrs_.size()) - 1;
  }
  Level level_of(int i) const { return instrs_[i].i.level; }
  Level free_level() const { return gr_.reduce ? Level::Outer : Level::Elem; }

  Level map_level(const LInstr& x) const {
    if (!gr_.reduce || on_inner(x.map)) return Level::Elem;
    for (const Limit& l : x.limits)
      if (on_inner(l.at)) return Level::Elem;
    if (x.i.indirect >= 0) return level_of(x.i.indirect);
    return Level::Outer;
  }

  int compute(Op op, DType t, std::initializer_list<int> args) {
    LInstr x;
    x.i.kind = InstrKind::Compute;
    x.i.op = op;
    x.i.dtype = t;
    x.i.level = free_level();
    int k = 0;
    for (int a : args) {
      x.i.arg[k++] = a;
      if (level_of(a) == Level::Elem) x.i.level = Level::Elem;
    }
    auto key = std::make_tuple(op, t, x.i.arg[0], x.i.arg[1], x.i.arg[2]);
    auto [it, fresh] = computed_.try_emplace(key, -1);
    if (fresh) {
      int id = emit(std::move(x));
      computed_[key] = id;
      return id;
    }
    return it->second;
  }

  int constant(DType t, double f, int64_t i) {
    auto [it, fresh] = constants_.try_emplace({t, std::bit_cast<int64_t>(f), i},
                                              -1);  // by bits: NaN and -0.0 are distinct
    if (fresh) {
      LInstr x;
      x.i.kind = InstrKind::Const;
      x.i.dtype = t;
      x.i.level = free_level();
      x.i.fvalue = f;
      x.i.ivalue = i;
      it->second = emit(std::move(x));
    }
    return it->second;
  }

  // Instructions that depend on a position: loads, indices, random bits, bounds.
  int placed(LInstr x) {
    x.i.level = map_level(x);
    std::vector<int64_t> key{static_cast<int64_t>(x.i.kind), x.i.buffer, x.i.slot, x.i.ivalue,
                             x.i.indirect};
    int64_t bits;
    std::memcpy(&bits, &x.i.fvalue, sizeof bits);
    key.push_back(bits);
    auto put = [&](const Lin& l) {
      key.push_back(l.off);
      key.insert(key.end(), l.c.begin(), l.c.end());
    };
    put(x.map);
    for (const Limit& l : x.limits) {
      put(l.at);
      key.push_back(l.extent);
    }
    auto [it, fresh] = placed_.try_emplace(std::move(key), -1);
    if (fresh) it->second = emit(std::move(x));
    return it->second;
  }

  int buffer(int v) {
    auto [it, fresh] = buffers_.try_emplace(v, static_cast<int>(buffer_vals_.size()));
    if (fresh) buffer_vals_.push_back(v);
    return it->second;
  }

  int load(int p, const Lin& at, const std::vector<Limit>& limits, double fill) {
    LInstr x;
    x.i.kind = InstrKind::Load;
    x.i.dtype = g_.vals[p].dtype;
    x.i.buffer = buffer(p);
    x.i.fvalue = fill;
    x.i.ivalue = static_cast<int64_t>(fill);
    x.map = at;
    x.limits = limits;
    if (at.c[kIndirect]) {
      checked_ = true;
      x.i.indirect = indirect_.instr;
      x.i.indirect_stride = at.c[kIndirect];
      x.i.indirect_extent = indirect_.extent;
      x.i.site = indirect_.site;
      x.map.c[kIndirect] = 0;
    }
    return placed(std::move(x));
  }

  struct Padding {
    std::vector<Limit> limits;
    double fill;
    DType dtype;
  };

  // The element of view u at idx. Limits: outside them the value does not matter, but nothing may
  // be read. `carry_out`: u itself is a copied movement op whose work is done here.
  int view(int user, int u, Index idx, std::vector<Limit> limits, bool carry_out = false) {
    std::vector<Padding> pads;
    int value = -1;
    while (carry_out || g_.vals[u].view()) {
      const Val& val = g_.vals[u];
      if (val.op == Op::Reshape) {
        int p = val.in[0];
        while (g_.vals[p].view() && (g_.vals[p].op == Op::Reshape || g_.vals[p].op == Op::Alias))
          p = g_.vals[p].in[0];
        if (!g_.vals[p].view()) {
          value = at_flat(user, p, flatten(idx, val.shape), limits, pads);
          break;
        }
      }
      std::vector<Limit> own;
      check(through(g_, u, s_, idx, own), user, u);
      for (const Limit& l : own)
        if (l.at.c[kIndirect])
          throw NoFit{user, u};  // whether it is padding would depend on an index value
      if (val.op == Op::Pad && !own.empty()) {
        limits.insert(limits.end(), own.begin(), own.end());
        pads.push_back({own, val.attrs.as<PadAttrs>().value, val.dtype});
      }
      u = val.in[0];
      carry_out = false;
    }
    if (value < 0) value = at(user, u, idx, limits, fill_of(pads));
    if (pads.size() == 1 && instrs_[value].i.kind == InstrKind::Load) return value;
    for (auto p = pads.rbegin(); p != pads.rend(); ++p) {
      LInstr b;
      b.i.kind = InstrKind::InBounds;
      b.i.dtype = DType::Bool;
      b.limits = p->limits;
      int inside = placed(std::move(b));
      int fill = constant(p->dtype, is_float(p->dtype) ? p->fill : 0,
                          is_float(p->dtype) ? 0 : static_cast<int64_t>(p->fill));
      value = compute(Op::Where, p->dtype, {inside, value, fill});
    }
    return value;
  }
  static double fill_of(const std::vector<Padding>& pads) {
    return pads.size() == 1 ? pads[0].fill : 0;
  }

  int at_flat(int user, int p, const Lin& flat, const std::vector<Limit>& limits,
              const std::vector<Padding>& pads) {
    const Val& val = g_.vals[p];
    bool mine = r_.group[p] == gi_;
    if (mine && limits.empty() && flat == (r_.level[p] == Level::Elem ? s_.flat() : s_.outer()))
      return member(p);
    if (val.material && !mine && val.stride == row_major(val.shape))
      return load(p, flat, limits, fill_of(pads));
    return at(user, p, must(flat, val.shape, user, p), limits, fill_of(pads));
  }

  // The element of p (no view) at idx.
  int at(int user, int p, const Index& idx, const std::vector<Limit>& limits, double fill) {
    const Val& val = g_.vals[p];
    switch (val.op) {
      case Op::Const: {
        const ConstAttrs& c = val.attrs.as<ConstAttrs>();
        return is_float(val.dtype) ? constant(val.dtype, c.f, 0) : constant(val.dtype, 0, c.i);
      }
      case Op::Arg:
      case Op::Iota:
      case Op::Random:
        return source(p, idx);
      default:
        break;
    }
    if (r_.group[p] == gi_ && limits.empty()) {
      Lin lin = flatten(idx, val.shape);
      if (lin == (r_.level[p] == Level::Elem ? s_.flat() : s_.outer())) return member(p);
      if (val.material) throw NoFit{user, p};
    }
    if (val.material) return load(p, dot_index(idx, val.stride), limits, fill);
    if (!is_elementwise(val.op)) throw NoFit{user, p};
    return elementwise(p, idx, limits);
  }

  int source(int p, const Index& idx) {
    const Val& val = g_.vals[p];
    LInstr x;
    x.i.dtype = val.dtype;
    x.i.slot = val.slot;
    if (val.op == Op::Arg) {
      x.i.kind = InstrKind::Arg;
      x.i.level = free_level();
      auto [it, fresh] = args_.try_emplace({val.slot, val.dtype}, -1);
      if (fresh) it->second = emit(std::move(x));
      return it->second;
    }
    x.i.kind = val.op == Op::Iota ? InstrKind::Index : InstrKind::Random;
    x.i.ivalue = val.op == Op::Random ? val.attrs.as<RandomAttrs>().offset : 0;
    x.map = flatten(idx, val.shape);
    if (x.map.c[kIndirect]) throw NoFit{p, p};
    return placed(std::move(x));
  }

  int elementwise(int p, const Index& idx, const std::vector<Limit>& limits) {
    const Val& val = g_.vals[p];
    int a[3] = {-1, -1, -1};
    for (int k = 0; k < val.n_in; ++k) {
      int u = val.in[k];
      a[k] = view(p, u, broadcast_index(idx, g_.vals[u].shape), limits);
    }
    if (val.n_in == 1) return compute(val.op, val.dtype, {a[0]});
    if (val.n_in == 2) return compute(val.op, val.dtype, {a[0], a[1]});
    return compute(val.op, val.dtype, {a[0], a[1], a[2]});
  }

  int gather(int p, const Index& idx) {
    const Val& val = g_.vals[p];
    Indirect saved = indirect_;
    int64_t saved_extent = s_.indirect_extent;
    int position = view(p, val.in[1], broadcast_index(idx, g_.vals[val.in[1]].shape), {});
    Index from = idx;
    const int axis = val.attrs.as<IndexAttrs>().axis;
    from[axis] = Lin{};
    from[axis].c[kIndirect] = 1;
    int base = val.in[0];
    while (g_.vals[base].view()) base = g_.vals[base].in[0];
    if (base != val.in[0] && g_.vals[base].source()) throw NoFit{p, val.in[0]};
    sites_.push_back(p);
    indirect_ = {position, g_.vals[val.in[0]].shape[axis], static_cast<int>(sites_.size()) - 1};
    s_.indirect_extent = indirect_.extent;
    const bool saved_checked = std::exchange(checked_, false);
    int value = view(p, val.in[0], from, {});
    // The load compares the index with the size. Where no element depends on it (a constant, or the
    // same along the axis), the elements are stored first.
    if (!checked_) throw NoFit{p, val.in[0]};
    checked_ = saved_checked;
    indirect_ = saved;
    s_.indirect_extent = saved_extent;
    return value;
  }

  int as_elem(int i) {
    if (level_of(i) == Level::Elem) return i;
    LInstr x;
    x.i.kind = InstrKind::Compute;
    x.i.op = Op::Cast;
    x.i.dtype = instrs_[i].i.dtype;
    x.i.level = Level::Elem;
    x.i.arg[0] = i;
    return emit(std::move(x));
  }

  int member(int p) {
    auto [it, fresh] = members_.try_emplace(p, -1);
    if (!fresh) return it->second;
    const Val& val = g_.vals[p];
    Lin place = r_.level[p] == Level::Elem ? s_.flat() : s_.outer();
    int value;
    if (is_reduce(val.op)) {
      const Dims& shape = g_.vals[val.in[0]].shape;
      LInstr x;
      x.i.kind = InstrKind::Reduce;
      x.i.op = val.op;
      x.i.dtype = val.dtype;
      x.i.level = Level::Outer;
      x.i.arg[0] = as_elem(view(p, val.in[0], must(s_.flat(), shape, p, val.in[0]), {}));
      value = emit(std::move(x));
    } else {
      Index idx = must(place, val.shape, p, p);
      if (val.op == Op::Gather)
        value = gather(p, idx);
      else if (val.op == Op::Assign)
        value = view(p, val.in[1], idx, {});
      else if (val.copied)
        value = view(p, p, idx, {}, true);
      else
        value = elementwise(p, idx, {});
    }
    return members_[p] = value;
  }

  void store(int v) {
    const Val& val = g_.vals[v];
    int value = member(v);
    bool elem = r_.level[v] == Level::Elem;
    if (elem) value = as_elem(value);
    // An outer value that came out at element level does not happen: its operands are outer.
    Index idx = must(elem ? s_.flat() : s_.outer(), val.shape, v, v);
    stores_.push_back({value, v, dot_index(idx, val.stride), val.op == Op::Assign});
  }

  void lower_region(int v) {
    const Val& val = g_.vals[v];
    const Dims& region = g_.vals[val.in[1]].shape;
    Index idx = must(s_.flat(), region, v, val.in[1]);
    int value = view(v, val.in[1], idx, {});
    const auto& [start, step] = val.attrs.as<SliceAttrs>();
    for (int d = 0; d < region.size(); ++d) {
      for (int64_t& c : idx[d].c) c *= step[d];
      idx[d].off = idx[d].off * step[d] + start[d];
    }
    stores_.push_back({value, v, dot_index(idx, val.stride), false});
  }

  void finish(Lowered& out);
  std::vector<int> axis_order() const;

  struct PendingStore {
    int value, val;
    Lin map;
    bool predicated;
  };

  const Graph& g_;
  const Grouping& r_;
  int gi_;
  const Group& gr_;
  Space s_;
  Indirect indirect_;
  bool checked_ = false;  // a load has compared the index of the gather that is being lowered
  std::vector<LInstr> instrs_;
  std::vector<PendingStore> stores_;
  std::vector<int> buffer_vals_, sites_;
  std::map<int, int> buffers_, members_;
  std::map<std::pair<int, DType>, int> args_;
  std::map<std::tuple<DType, int64_t, int64_t>, int> constants_;
  std::map<std::tuple<Op, DType, int, int, int>, int> computed_;
  std::map<std::vector<int64_t>, int> placed_;
};

// Outer axes first, then inner; fastest last. A Map follows the order of what it stores; a
// reduction that of its largest load, its inner axes only where positions do not count (argmax).
std::vector<int> Lowerer::axis_order() const {
  std::vector<int> order[2];
  for (int k = 0; k < s_.size(); ++k) order[s_.axes[k].inner].push_back(k);
  auto by = [](std::vector<int>& axes, const Lin& l) {
    std::stable_sort(axes.begin(), axes.end(),
                     [&](int a, int b) { return std::abs(l.c[a]) > std::abs(l.c[b]); });
  };
  if (!gr_.reduce && !stores_.empty()) by(order[0], stores_[0].map);
  bool positions = false;
  const LInstr* largest = nullptr;
  int64_t most = 0;
  for (const LInstr& x : instrs_) {
    if (x.i.kind == InstrKind::Reduce && (x.i.op == Op::ArgMax || x.i.op == Op::ArgMin))
      positions = true;
    if (x.i.kind != InstrKind::Load) continue;
    int64_t n = 1;
    for (int k = 0; k < s_.size(); ++k)
      if (x.map.c[k]) n *= s_.axes[k].extent;
    if (n > most) {
      most = n;
      largest = &x;
    }
  }
  if (largest && !positions) by(order[1], largest->map);
  // A reduction's outer axes follow its largest load too, where it has them all: neighbouring
  // results read neighbours.
  const bool all =
      largest && gr_.reduce && std::all_of(order[0].begin(), order[0].end(), [&](int k) {
        return s_.axes[k].extent == 1 || largest->map.c[k] != 0;
      });
  if (all) by(order[0], largest->map);
  order[0].insert(order[0].end(), order[1].begin(), order[1].end());
  return order[0];
}

void Lowerer::finish(Lowered& out) {
  std::vector<int> order = axis_order();
  std::vector<Lin*> lins;
  for (LInstr& x : instrs_) {
    if (x.i.kind == InstrKind::Load || x.i.kind == InstrKind::Index ||
        x.i.kind == InstrKind::Random)
      lins.push_back(&x.map);
    for (Limit& l : x.limits) lins.push_back(&l.at);
  }
  for (PendingStore& s : stores_) lins.push_back(&s.map);

  // Merge neighbours that every map steps through as one.
  std::vector<std::pair<int64_t, std::vector<int>>>
      axes;  // extent, original axes (the last one carries the stride)
  KernelSpec& k = out.spec;
  k = KernelSpec{};
  int n_outer = 0;
  for (int a : order) {
    bool inner = s_.axes[a].inner;
    bool merged = false;
    if (!axes.empty() && s_.axes[axes.back().second.back()].inner == inner) {
      int b = axes.back().second.back();
      merged = std::all_of(lins.begin(), lins.end(),
                           [&](Lin* l) { return l->c[b] == l->c[a] * s_.axes[a].extent; });
    }
    if (merged) {
      axes.back().first *= s_.axes[a].extent;
      axes.back().second.push_back(a);
    } else {
      axes.push_back({s_.axes[a].extent, {a}});
      n_outer += !inner;
    }
  }
  for (auto& [extent, from] : axes) k.extent.push_back(extent);
  k.n_outer = n_outer;
  bool unit_inner = gr_.reduce && k.n_inner() == 0;
  if (unit_inner) k.extent.push_back(1);

  auto affine = [&](const Lin& l) {
    Affine f;
    f.offset = l.off;
    for (auto& [extent, from] : axes) f.stride.push_back(l.c[from.back()]);
    if (unit_inner) f.stride.push_back(0);
    return f;
  };
  for (int v : buffer_vals_)
    k.buffers.push_back({g_.vals[v].dtype, g_.vals[v].numel(), false, false});
  for (LInstr& x : instrs_) {
    Instr i = x.i;
    if (i.kind == InstrKind::Load || i.kind == InstrKind::Index || i.kind == InstrKind::Random)
      i.map = affine(x.map);
    for (Limit& l : x.limits) i.bounds.push_back({affine(l.at), l.extent});
    k.instrs.push_back(std::move(i));
  }
  out.buffer_vals = buffer_vals_;
  for (PendingStore& s : stores_) {
    Store st;
    st.value = s.value;
    st.map = affine(s.map);
    st.predicated = s.predicated;
    st.buffer = static_cast<int>(k.buffers.size());
    k.buffers.push_back({g_.vals[s.val].dtype, g_.vals[s.val].numel(), true, false});
    out.buffer_vals.push_back(s.val);
    k.stores.push_back(std::move(st));
  }
  out.sites = sites_;
  for (int v : gr_.members) {
    if (k.label.size() > 120) {
      k.label += "...";
      break;
    }
    k.label += (k.label.empty() ? "" : " ") + std::string(info(g_.vals[v].op).name);
  }
}

}  // namespace

bool lower_group(const Graph& g, const Grouping& r, int gi, Lowered& out, int& bad_user,
                 int& bad_producer) {
  const Group& gr = r.groups[gi];
  Dims shape = gr.shape;
  if (!gr.reduce && gr.members.size() > 1) {
    // A Map's axes are best the dims of what it stores.
    for (int v : gr.members)
      if (g.vals[v].material && g.vals[v].op != Op::SliceAssign) shape = g.vals[v].shape;
  }
  Space s = Space::of(shape, gr.mask);
  for (;;) {
    try {
      Lowerer(g, r, gi, s).run(out);
      return true;
    } catch (const Refine& f) {
      if (s.size() >= kMaxAxes - 1) {
        bad_user = bad_producer = gr.members.back();
        return false;
      }
      s.split(f.axis, f.inner);
    } catch (const NoFit& f) {
      bad_user = f.user;
      bad_producer = f.producer;
      return false;
    }
  }
}

LibrarySpec lower_library(const Graph& g, int v, std::span<const int> sides,
                          std::vector<int>& buffer_vals) {
  const Val& val = g.vals[v];
  LibrarySpec l;
  l.op = val.op;
  l.attrs = val.attrs;
  l.epilogues = val.epilogues;
  if (val.joined()) {
    for (int k = 0; k < 3; ++k)
      l.operands.push_back(
          joined_operand(g.vals[val.in[k]], val.dtype, val.shape.back(), val.joined_at[k]));
    l.results = 7;
    buffer_vals = {v, v, v};
  } else {
    l.operands.push_back({val.dtype, val.shape, val.stride, 0});
    buffer_vals = {v};
  }
  for (int s : sides) {
    l.operands.push_back({g.vals[s].dtype, g.vals[s].shape, g.vals[s].stride, 0});
    buffer_vals.push_back(s);
    l.results |= 1u << g.vals[s].attrs.as<ResultAttrs>().index;
  }
  l.written = static_cast<int>(buffer_vals.size());
  for (int k = 0; k < val.n_in; ++k) {
    OperandSpec o;
    int producer = -1, u = val.in[k];
    o.dtype = g.vals[u].dtype;
    o.shape = g.vals[u].shape;
    if (!strided_view(g, u, producer, o.stride, o.offset))
      throw Error(ErrorKind::Internal, "lower", "a library operand has no strides");
    if (l.has(Epilogue::Bias) && k == 2) {  // [1, 1, N] -> [N]; a convolution's is [1, O, 1, ..]
      int last = val.op == Op::Conv ? 1 : o.shape.size() - 1;
      o.shape = Dims{o.shape[last]};
      o.stride = Dims{o.stride[last]};
    }
    l.operands.push_back(o);
    buffer_vals.push_back(producer);
  }
  return l;
}

}  // namespace ingot
