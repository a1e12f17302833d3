// The frame of a kernel: the coordinates of a thread, the rounds, and how the text is put together
// with its declarations. See emit/emit.h for the names used in the text.
#include "backend/cuda/emit/emit.h"

#include <algorithm>

#include "ingot/error.h"

namespace ingot::cuda {

Emitter::Emitter(std::span<const KernelSpec> parts, const Schedule& schedule, int stage,
                 Numbers& numbers, ElementwiseFunctions& functions, const SingleIndex& single)
    : parts_(parts),
      k_(parts[0]),
      s_(schedule),
      stage_(stage),
      numbers_(numbers),
      functions_(functions),
      rounds_(find_rounds(parts[0], schedule.keep_sources)),
      created_(parts[0].instrs.size()),
      single_(single),
      out_(schedule.lanes) {
  uniform_ = lane_uniform(k_, s_.mode);
  only_stored_.resize(k_.instrs.size());
  for (size_t i = 0; i < k_.instrs.size(); ++i)
    only_stored_[i] = is_half(k_.instrs[i].dtype) && k_.instrs[i].kind == InstrKind::Compute;
  for (const Instr& in : k_.instrs)
    for (int a : {in.arg[0], in.arg[1], in.arg[2], in.indirect})
      if (a >= 0) only_stored_[a] = false;
  for (const Store& s : k_.stores)
    if (k_.buffers[s.buffer].dtype != k_.instrs[s.value].dtype) only_stored_[s.value] = false;
  if (s_.hold == Hold::Registers && s_.mode == Mode::Row && k_.n_outer == 0) bring_forward();
}

/// One row alone waits for memory: what later rounds load is asked for with the first round's
/// loads, and kept.
void Emitter::bring_forward() {
  std::vector<bool> first(k_.instrs.size());
  for (int i : needed(0)) first[i] = true;
  std::vector<int> later;
  size_t words = 0;
  for (int r = 1; r <= rounds_.last; ++r)
    for (int i : needed(r)) {
      const Instr& in = k_.instrs[i];
      if (in.kind != InstrKind::Load || in.indirect >= 0 || first[i] || rounds_.held[i]) continue;
      first[i] = true;
      later.push_back(i);
      words +=
          (size_of(k_.buffers[in.buffer].dtype) * static_cast<size_t>(uniform_[i] ? 1 : s_.lanes) +
           3) /
          4;
    }
  if (words * static_cast<size_t>(s_.groups) > 64) return;
  for (int i : later) rounds_.held[i] = true;
  forward_ = std::move(later);
}

/// Coordinates i[begin..end) from a linear number; the last of them counts groups of `lanes_on`
/// elements.
void Emitter::decode(const std::string& linear, int begin, int end, int lanes_on) {
  std::string rest = linear;
  for (int x = end - 1; x > begin; --x) {
    if (x == single_.axis) {
      out_.plain("const I i" + str(x) + " = (I)single;");
      continue;
    }
    bool grouped = x == end - 1 && lanes_on > 1;
    Numbers::Value size =
        grouped ? Numbers::Value([](const KernelSpec&, const Geometry& g) { return g.lane_groups; })
                : Numbers::Value([x](const KernelSpec& k, const Geometry&) { return k.extent[x]; });
    std::string name = grouped ? "lg" : "e" + str(x), q = "q" + str(x), i = "i" + str(x);
    out_.plain("const I " + q + " = " + numbers_.divide(rest, name, size, s_.wide) + ";");
    out_.plain("const I " + i + " = (" + rest + " - " + q + " * " + number(name, size) + ")" +
               (grouped ? " * " + str(lanes_on) : "") + ";");
    rest = q;
  }
  if (end == begin) return;
  if (begin == single_.axis) return out_.plain("const I i" + str(begin) + " = (I)single;");
  std::string at = rest + (end - begin == 1 && lanes_on > 1 ? " * " + str(lanes_on) : "");
  out_.plain("const I i" + str(begin) + " = " + at +
             (s_.shifted && begin == k_.n_outer ? " - shift;" : ";"));
}

/// How many lanes of the group are inside the axis.
void Emitter::count_lanes(int axis) {
  if (!s_.tail || axis < 0) return;
  std::string left = extent(axis) + " - i" + str(axis), v = str(s_.lanes);
  out_.plain("const int cnt = " + left + " < " + v + " ? (int)(" + left + ") : " + v + ";");
  if (s_.shifted)
    out_.plain("const int low = i" + str(axis) + " < 0 ? -(int)i" + str(axis) + " : 0;");
  out_.plain("const bool full = cnt == " + v + (s_.shifted ? " && low == 0" : "") + ";");
}

void Emitter::place_thread() {
  if (s_.mode == Mode::Tile) return place_tile();
  bool row = s_.mode == Mode::Row, first = stage_ == 0;
  std::string team = str(s_.team), side = str(s_.side);
  out_.plain(row ? "const int t = threadIdx.x % " + team + ", y = threadIdx.x / " + team + ";"
                 : "const int x = threadIdx.x % " + side + ", t = threadIdx.x / " + side + ";");
  std::string points =
      first ? number("no", [](const KernelSpec&, const Geometry& g) { return g.outer_groups; })
            : number("np", [](const KernelSpec&, const Geometry& g) { return g.outer; });
  std::string inner =
      first ? number("ng", [](const KernelSpec&, const Geometry& g) { return g.inner_groups; })
            : number("sp", [](const KernelSpec&, const Geometry& g) { return g.splits; });
  std::string block = "blk";
  if (first && s_.in_chunks()) {
    auto value =
        row ? Numbers::Value([](const KernelSpec&, const Geometry& g) { return g.splits; })
            : Numbers::Value([](const KernelSpec&, const Geometry& g) { return g.column_blocks; });
    std::string by = number(row ? "sp" : "cb", value);
    out_.plain("const unsigned q = blk / (unsigned)" + by + ", rem = blk - q * (unsigned)" + by +
               ";");
    out_.plain(row ? "const I split = rem;" : "const I split = q;");
    block = row ? "q" : "rem";
    std::string chunk = number("ch", [](const KernelSpec&, const Geometry& g) { return g.chunk; });
    out_.plain("const I gbeg = split * " + chunk + ", gstop = gbeg + " + chunk +
               ", gend = gstop < " + inner + " ? gstop : " + inner + ";");
  } else if (s_.mode != Mode::Map) {
    out_.plain("const I gbeg = 0, gend = " + inner + ";");
  }
  out_.plain("I o = (I)" + block + " * " + side + " + " + (row ? "y" : "x") + ";");
  if (s_.mode == Mode::Map) {
    out_.plain("if (o >= " + points + ") return;");
  } else if (leaves()) {
    out_.plain("if (o >= " + points + ") return;\nconst bool live = true;");
  } else {
    out_.plain("const bool live = o < " + points + ";\nif (!live) o = 0;");
  }
  decode("o", 0, k_.n_outer, row ? 1 : s_.lanes);
  if (!row) count_lanes(k_.n_outer - 1);
  if (s_.shifted) shift_lanes();
}

/// Rows that begin anywhere: groups begin where memory is aligned, up to lanes - 1 elements before
/// the row.
void Emitter::shift_lanes() {
  int i = s_.shift_load, n = s_.shift_store;
  MapText at =
      i >= 0 ? map_text([i](const KernelSpec& k) -> const Affine& { return k.instrs[i].map; })
             : map_text([n](const KernelSpec& k) -> const Affine& { return k.stores[n].map; });
  out_.plain("I shift; { const I i" + str(k_.n_outer) + " = 0; shift = (" + at.base + ") & " +
             str(s_.lanes - 1) + "; }");
}

void Emitter::declare_scalars() {
  bool predicated =
      std::any_of(k_.stores.begin(), k_.stores.end(), [](const Store& s) { return s.predicated; });
  if (predicated) out_.plain("const bool run_ok = *(volatile int*)&p.status->code == 0;");
  for (size_t n = 0; n < k_.instrs.size(); ++n) {
    const Instr& in = k_.instrs[n];
    int i = static_cast<int>(n);
    if (in.kind != InstrKind::Arg && in.kind != InstrKind::Random) continue;
    std::string slot = number(
        "sl" + str(i), [i](const KernelSpec& k, const Geometry&) { return k.instrs[i].slot; });
    if (in.kind == InstrKind::Arg) {
      out_.plain("const " + std::string(register_type(in.dtype)) + " " + v(i) + " = " +
                 cast(DType::Float64, in.dtype, "__ldg(p.args + " + slot + ")") + ";");
    } else {
      std::string shift = number(
          "rs" + str(i), [i](const KernelSpec& k, const Geometry&) { return k.instrs[i].ivalue; });
      out_.plain("const ig_u64 rk" + str(i) + " = __ldg(p.seeds + " + slot + "), rc" + str(i) +
                 " = __ldg(p.offsets + " + slot + ") + (ig_u64)" + shift + ";");
    }
  }
}

/// Room for the values that stay from one round to the next.
void Emitter::declare_held() {
  if (s_.hold == Hold::Shared) out_.plain("IG_DYNAMIC_SHARED(dynamic);");
  int64_t bytes = 0;
  for (size_t n = 0; n < k_.instrs.size(); ++n) {
    int i = static_cast<int>(n);
    if (s_.hold == Hold::None || !rounds_.held[i]) continue;
    bool load = k_.instrs[i].kind == InstrKind::Load && k_.instrs[i].indirect < 0;
    std::string type = held_type(i),
                name = (load && s_.hold == Hold::Registers ? "r" : "h") + str(i);
    if (s_.hold == Hold::Registers) {
      out_.plain(type + " " + name + "[" + str(s_.groups) + "];");
    } else {
      std::string room = number("hg", [](const KernelSpec&, const Geometry& g) {
        return (g.inner_groups + 15) / 16 * 16;
      });
      out_.plain(type + "* " + name + " = (" + type + "*)(dynamic + " + room + " * " + str(bytes) +
                 ");");
      bytes += static_cast<int64_t>(size_of(k_.instrs[i].dtype)) * (uniform_[i] ? 1 : s_.lanes);
    }
  }
}

std::vector<int> Emitter::reduces_of(int round) const {
  std::vector<int> list;
  for (size_t i = 0; i < k_.instrs.size(); ++i)
    if (k_.instrs[i].kind == InstrKind::Reduce && rounds_.round[i] == round + 1)
      list.push_back(static_cast<int>(i));
  return list;
}

/// Element stores of a round. A row that is read again must not be overwritten before its last
/// reading.
std::vector<int> Emitter::stores_of(int round) const {
  std::vector<int> list;
  for (size_t n = 0; n < k_.stores.size(); ++n) {
    int i = k_.stores[n].value;
    if (k_.instrs[i].level != Level::Elem) continue;
    int at = s_.hold == Hold::None || rounds_.stores_last ? rounds_.last : rounds_.round[i];
    if (at == round) list.push_back(static_cast<int>(n));
  }
  return list;
}

/// Element values that a round computes or takes from what is kept, in order.
std::vector<int> Emitter::needed(int round) {
  std::vector<int> stack;
  for (int i : reduces_of(round)) stack.push_back(k_.instrs[i].arg[0]);
  for (int n : stores_of(round)) stack.push_back(k_.stores[n].value);
  if (round == 0) stack.insert(stack.end(), forward_.begin(), forward_.end());
  std::vector<bool> seen(k_.instrs.size());
  while (!stack.empty()) {
    int i = stack.back();
    stack.pop_back();
    if (i < 0 || seen[i] || !is_elem(i)) continue;
    seen[i] = true;
    if (kept(i)) continue;
    for (int a : k_.instrs[i].arg) stack.push_back(a);
    stack.push_back(k_.instrs[i].indirect);
  }
  std::vector<int> list;
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen[i]) list.push_back(static_cast<int>(i));
  return list;
}

/// What is computed once per outer point, as soon as the reductions of earlier rounds are there.
void Emitter::outer_values(int round) {
  for (size_t n = 0; n < k_.instrs.size(); ++n) {
    int i = static_cast<int>(n);
    const Instr& in = k_.instrs[i];
    if (in.level != Level::Outer || is_scalar(i) || rounds_.round[i] != round) continue;
    out_.plain(declaration(i));
    if (in.kind != InstrKind::Reduce) {
      value(i, false);
      continue;
    }
    int found = finder(i);
    std::string a = "a" + str(found < 0 ? i : found) + (lane_accumulator(i) ? "[j]" : "");
    if (found >= 0) a += ".v";
    bool position = in.op == Op::ArgMax || in.op == Op::ArgMin;
    assign(i, position ? cast(DType::Int64, in.dtype, a + ".i") : rounded(in.dtype, a));
  }
}

/// The position of group u of this thread: its number g along the inner axes, and its coordinates.
void Emitter::group_place(bool swapped) {
  if (s_.mode == Mode::Tile) {
    std::string a = "i" + str(k_.n_outer - 1), b = "i" + str(s_.tile_axis),
                step = "t + u * " + str(s_.team);
    std::string along = "x * " + str(s_.lanes);
    out_.plain("const I " + a + " = ta + " + (swapped ? step : along) + ", " + b + " = tb + " +
               (swapped ? along : step) + ";");
    out_.plain("const bool ok = " + a + " < " + extent(k_.n_outer - 1) + " && " + b + " < " +
               extent(s_.tile_axis) + ";");
    return;
  }
  if (s_.mode == Mode::Map) return;
  out_.plain("const I g = g0 + u * " + str(s_.team) + " + t;");
  out_.plain("const bool ok = live && g < gend;");
  if (s_.hold == Hold::Shared) out_.plain("const I gh = ok ? g : 0;");
  bool row = s_.mode == Mode::Row;
  decode("g", k_.n_outer, k_.n_axes(), row ? s_.lanes : 1);
  if (row) count_lanes(k_.n_axes() - 1);
  if (k_.n_inner() == 0) return;
  bool position = std::any_of(k_.instrs.begin(), k_.instrs.end(), [](const Instr& in) {
    return in.kind == InstrKind::Reduce && (in.op == Op::ArgMax || in.op == Op::ArgMin);
  });
  if (!position) return;
  int last = k_.n_axes() - 1;
  if (!row)
    out_.plain("const I lin = g;");
  else if (k_.n_inner() == 1)
    out_.plain("const I lin = i" + str(last) + ";");
  else
    out_.plain("const I lin = q" + str(last) + " * " + extent(last) + " + i" + str(last) + ";");
}

/// All loads of the groups in flight first, so that many are under way at once.
void Emitter::load_groups(const std::vector<int>& need) {
  bool any = false;
  std::string loop = "IG_UNROLL for (int u = 0; u < " + str(s_.groups) + "; ++u) {";
  for (int i : need) {
    const Instr& in = k_.instrs[i];
    if (in.kind != InstrKind::Load || in.indirect >= 0 || kept(i) || late(i)) continue;
    if (!(s_.hold == Hold::Registers && rounds_.held[i]))
      out_.plain(raw_type(i) + " r" + str(i) + "[" + str(s_.groups) + "];");
    any = true;
  }
  if (!any) return;
  out_.plain(loop);
  group_place(false);
  for (int i : need) {
    const Instr& in = k_.instrs[i];
    if (in.kind != InstrKind::Load || in.indirect >= 0 || kept(i) || late(i)) continue;
    std::string into = "r" + str(i) + "[u]";
    if (s_.mode == Mode::Tile && staged_load(i)) {
      out_.lane(into + ".e[j] = tile" + str(i) + "[t + u * " + str(s_.team) + "][x * " +
                str(s_.lanes) + " + j];");
      continue;
    }
    MapText at = map_text([i](const KernelSpec& k) -> const Affine& { return k.instrs[i].map; });
    raw_load(i, into, guard(), at);
  }
  out_.plain("}");
}

/// Leaves a value of the current group where later rounds find it.
void Emitter::keep(int i, bool load) {
  bool shared = s_.hold == Hold::Shared;
  std::string h = "h" + str(i) + (shared ? "[gh]" : "[u]");
  if (shared) out_.plain("if (ok) {");
  if (load)
    out_.plain(h + " = r" + str(i) + "[u];");
  else if (uniform_[i])
    out_.plain(h + ".e[0] = " + to_memory(k_.instrs[i].dtype, v(i)) + ";");
  else
    out_.lane(h + ".e[j] = " + to_memory(k_.instrs[i].dtype, v(i) + "[j]") + ";");
  if (shared) out_.plain("}");
}

/// What a thread does with the groups it has in flight: load, compute, keep, reduce, store.
void Emitter::groups(const std::vector<int>& need, const std::vector<int>& reduces,
                     const std::vector<int>& stores) {
  auto plain_load = [&](int i) {
    return k_.instrs[i].kind == InstrKind::Load && k_.instrs[i].indirect < 0;
  };
  std::string loop = "IG_UNROLL for (int u = 0; u < " + str(s_.groups) + "; ++u) ";
  load_groups(need);
  for (int i : need)
    if (s_.packed && kept(i) &&
        is_half(k_.instrs[i].dtype))  // else the compiler would keep it unpacked
      out_.plain(loop + "ig_opaque(" + (plain_load(i) ? "r" : "h") + str(i) + "[u]);");
  out_.plain(loop + "{");
  group_place(false);
  for (int i : need) out_.plain(declaration(i));
  for (int i : need) value(i, true);
  for (int i : need) {
    if (s_.hold == Hold::None || !rounds_.held[i] || kept(i) ||
        (plain_load(i) && s_.hold == Hold::Registers))
      continue;
    keep(i, plain_load(i));
  }
  accumulate(reduces);
  for (int n : stores)
    if (s_.mode == Mode::Tile && staged_store(n))
      stage_store(n);
    else
      store(n, guard());
  out_.plain("}");
}

/// One pass over the inner axes.
void Emitter::round(int r) {
  std::vector<int> reduces = reduces_of(r), stores = stores_of(r), need = needed(r);
  declare_accumulators(reduces);
  if (reduces.empty() && stores.empty()) return;
  bool walks = s_.mode == Mode::Row || s_.mode == Mode::Column,
       looped = walks && s_.hold != Hold::Registers;
  std::string step = str(s_.groups * s_.team);
  if (s_.mode == Mode::Tile) tile_loads(need);
  if (looped && s_.hold == Hold::Shared && !s_.exact) {
    // Long rows wait for arithmetic: all but the last step without a look at the end.
    out_.plain("{ I g0 = gbeg;\nfor (; g0 + " + step + " <= gend; g0 += " + step + ") {");
    s_.exact = true;
    groups(need, reduces, stores);
    s_.exact = false;
    out_.plain("}\nif (g0 < gend) {");
    groups(need, reduces, stores);
    out_.plain("} }");
  } else {
    out_.plain(looped  ? "for (I g0 = gbeg; g0 < gend; g0 += " + step + ") {"
               : walks ? "{ const I g0 = gbeg;"
                       : "{");
    groups(need, reduces, stores);
    out_.plain("}");
  }
  if (s_.mode == Mode::Tile) tile_stores();
  for (int i : need) created_[i] = true;
  combine(reduces);
}

/// Leaves this block's share of every reduction for the second stage.
void Emitter::store_partials() {
  int count = 0;
  bool row = s_.mode == Mode::Row;
  for (int i : reduces_of(0)) {
    int n = count++;
    std::string off =
        number("pt" + str(i), [n](const KernelSpec&, const Geometry& g) { return g.scratch[n]; });
    std::string type = accumulator_type(i), a = "a" + str(i) + (lane_accumulator(i) ? "[j]" : "");
    out_.plain("{ " + type + "* part = (" + type + "*)(p.scratch + " + off + ");");
    if (row) {
      std::string sp = number("sp", [](const KernelSpec&, const Geometry& g) { return g.splits; });
      out_.plain("if (live && t == 0) part[(long long)o * " + sp + " + split] = " + a + "; }");
      continue;
    }
    std::string total = number("np", [](const KernelSpec&, const Geometry& g) { return g.outer; });
    std::string q = k_.n_outer > 1 ? "(long long)q" + str(k_.n_outer - 1) + " * " +
                                         extent(k_.n_outer - 1) + " + "
                                   : "";
    if (k_.n_outer == 0)
      q = "0";
    else
      q += "i" + str(k_.n_outer - 1);
    std::string tail = s_.tail ? " && j < cnt" : "", lane = s_.lanes > 1 ? " + j" : "";
    out_.lane("if (live && t == 0" + tail + ") part[(long long)split * " + total + " + " + q +
              lane + "] = " + a + ";");
    out_.plain("}");
  }
}

/// The second stage's loop: the shares of all blocks, in order.
void Emitter::load_partials() {
  std::vector<int> reduces = reduces_of(0);
  declare_accumulators(reduces);
  bool row = s_.mode == Mode::Row;
  std::string total = number("np", [](const KernelSpec&, const Geometry& g) { return g.outer; });
  std::string sp = number("sp", [](const KernelSpec&, const Geometry& g) { return g.splits; });
  std::string at = row ? "(long long)o * " + sp + " + g" : "(long long)g * " + total + " + o";
  out_.plain("for (I g = t; g < gend; g += " + str(s_.team) + ") {");
  int count = 0;
  for (int i : reduces) {
    int n = count++;
    std::string off =
        number("pt" + str(i), [n](const KernelSpec&, const Geometry& g) { return g.scratch[n]; });
    std::string type = accumulator_type(i), a = "a" + str(i) + (lane_accumulator(i) ? "[0]" : "");
    out_.plain(a + " = " + reduce_function(k_.instrs[i].op) + "(" + a + ", ((const " + type +
               "*)(p.scratch + " + off + "))[" + at + "]);");
  }
  out_.plain("}");
  combine(reduces);
}

void Emitter::outer_stores() {
  for (size_t n = 0; n < k_.stores.size(); ++n)
    if (k_.instrs[k_.stores[n].value].level == Level::Outer)
      store(static_cast<int>(n), s_.mode == Mode::Map ? "" : "live && t == 0");
}

/// The one index along an axis that the kernel changes; outside the axis there is none.
void Emitter::declare_single_index() {
  std::function<std::string(int)> text = [&](int i) {
    const Instr& in = k_.instrs[i];
    if (in.kind != InstrKind::Compute) return operand(i);
    return cast(k_.instrs[in.arg[0]].dtype, in.dtype, text(in.arg[0]));
  };
  const int index = single_.index;
  std::string size = number(
      "pe", [index](const KernelSpec& k, const Geometry&) { return k.instrs[index].ivalue; });
  out_.plain("const long long single = " + text(single_.number) +
             ";\nif (single < 0 || single >= " + size + ") return;");
}

std::string Emitter::body() {
  if (single_.axis >= 0) {
    declare_scalars();
    declare_single_index();
  }
  place_thread();
  if (single_.axis < 0) declare_scalars();
  bool column = s_.mode == Mode::Column && s_.team > 1 && k_.has_reduce();
  if (column) {
    size_t bytes = 0;
    for (const Instr& in : k_.instrs)
      if (in.kind == InstrKind::Reduce) bytes = std::max(bytes, partial_bytes(k_, in));
    out_.plain("__shared__ __align__(16) unsigned char columns[" +
               str(static_cast<int64_t>(bytes) * s_.lanes * s_.threads()) + "];");
  }
  outer_values(0);
  if (stage_ == 1) {
    load_partials();
    for (int r = 1; r <= rounds_.last + 1; ++r) outer_values(r);
    outer_stores();
    return out_.take();
  }
  declare_held();
  for (int r = 0; r <= rounds_.last; ++r) {
    round(r);
    if (s_.split) {
      store_partials();
      return out_.take();
    }
    outer_values(r + 1);
  }
  outer_stores();
  return out_.take();
}

}  // namespace ingot::cuda
