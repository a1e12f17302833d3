// Loads, values and stores of one lane group: the inside of a kernel's loops.
//
// Tricky: a group may be past the end (its guard is false), its last lanes may be (j >= cnt), a
// bound may fail per lane or for the group. Loads are guarded and give the fill value; what is
// computed from it is never stored or reduced.
#include "backend/cuda/emit/emit.h"

namespace ingot::cuda {
namespace {

std::string both(const std::string& a, const std::string& b) {
  if (a.empty()) return b;
  return b.empty() ? a : a + " && " + b;
}

}  // namespace

std::string Emitter::extent(int axis) {
  return number("e" + str(axis),
                [axis](const KernelSpec& k, const Geometry&) { return k.extent[axis]; });
}

/// Text of an affine map at this thread's coordinates. Maps that are equal in all parts share their
/// numbers.
Emitter::MapText Emitter::map_text(const Pick& pick) {
  size_t id = 0;
  auto same = [&](const Pick& other) {
    for (const KernelSpec& p : parts_)
      if (!(pick(p) == other(p))) return false;
    return true;
  };
  while (id < maps_.size() && !same(maps_[id])) ++id;
  if (id == maps_.size()) maps_.push_back(pick);
  const Affine& a = pick(k_);
  int lane = lane_axis(k_, s_.mode);
  std::string name = str(static_cast<int64_t>(id)) + (stage_ == 1 ? "s" : "");
  MapText t;
  t.base =
      number("o" + name, [pick](const KernelSpec& k, const Geometry&) { return pick(k).offset; });
  for (int x = 0; x < k_.n_axes(); ++x) {
    if (a.stride[x] == 0) continue;
    std::string stride;
    if (a.stride[x] != 1)
      stride = number("s" + name + "_" + str(x), [pick, x](const KernelSpec& k, const Geometry&) {
        return pick(k).stride[x];
      });
    t.base += " + " + (stride.empty() ? "" : stride + " * ") + "i" + str(x);
    if (x == lane && s_.lanes > 1) t.lane = stride.empty() ? " + j" : " + (I)j * " + stride;
  }
  return t;
}

/// The conjunction of an instruction's bounds: those that change along the lanes, or the others.
/// Empty: always true.
std::string Emitter::bounds_text(int i, bool lane_dependent) {
  std::string all;
  int axis = lane_axis(k_, s_.mode);
  bool in_group = k_.instrs[i].kind == InstrKind::Load &&
                  s_.load_width[i] == s_.lanes;  // inside or outside as a whole
  for (size_t b = 0; b < k_.instrs[i].bounds.size(); ++b) {
    bool along =
        axis >= 0 && s_.lanes > 1 && k_.instrs[i].bounds[b].at.stride[axis] != 0 && !in_group;
    if (along != lane_dependent) continue;
    MapText at =
        map_text([i, b](const KernelSpec& k) -> const Affine& { return k.instrs[i].bounds[b].at; });
    std::string end = number(
        "be" + str(i) + "_" + str(static_cast<int64_t>(b)),
        [i, b](const KernelSpec& k, const Geometry&) { return k.instrs[i].bounds[b].extent; });
    all = both(all, "(UI)(" + at.base + (along ? at.lane : "") + ") < (UI)" + end);
  }
  return all;
}

std::string Emitter::operand(int i) const {
  const Instr& in = k_.instrs[i];
  if (in.kind == InstrKind::Const) return literal(in.dtype, in.fvalue, in.ivalue);
  return target(i);
}

void Emitter::assign(int i, const std::string& text) {
  std::string line = target(i) + " = " + text + ";";
  if (uniform_[i])
    out_.plain(line);
  else
    out_.lane(line);
}

std::string Emitter::declaration(int i) const {
  return std::string(register_type(k_.instrs[i].dtype)) + " " + v(i) +
         (uniform_[i] ? "" : "[" + str(s_.lanes) + "]") + ";";
}

std::string Emitter::raw_type(int i) const {
  const char* m = memory_type(k_.buffers[k_.instrs[i].buffer].dtype);
  return "IgVec<" + std::string(m) + ", " + str(uniform_[i] ? 1 : s_.lanes) + ">";
}

std::string Emitter::held_type(int i) const {
  if (k_.instrs[i].kind == InstrKind::Load && k_.instrs[i].indirect < 0) return raw_type(i);
  return "IgVec<" + std::string(memory_type(k_.instrs[i].dtype)) + ", " +
         str(uniform_[i] ? 1 : s_.lanes) + ">";
}

/// 0: this kernel writes the buffer too; 1: read-only; 2: read-only, each element once (not so
/// where windows overlap), and too much to keep.
int Emitter::load_hint(int i) const {
  const Instr& in = k_.instrs[i];
  const BufferSpec& b = k_.buffers[in.buffer];
  if (b.written || b.may_alias) return 0;
  bool once = s_.hold != Hold::None || rounds_.last == 0;
  for (int64_t s : in.map.stride) once = once && s != 0;
  if (once && k_.outer_size() * k_.inner_size() > 2 * b.numel) once = false;
  return s_.streaming && once && in.indirect < 0 ? 2 : 1;
}

/// Loads one lane group from memory, in its stored type.
void Emitter::raw_load(int i, const std::string& into, const std::string& guard,
                       const MapText& at) {
  const Instr& in = k_.instrs[i];
  DType t = k_.buffers[in.buffer].dtype;
  std::string fill = in.bounds.empty() ? literal(t, 0, 0) : literal(t, in.fvalue, in.ivalue);
  fill = is_half(t) && in.bounds.empty() ? "(unsigned short)0" : to_memory(t, fill);
  std::string hint = str(load_hint(i)), from = "b" + str(in.buffer) + " + (" + at.base;
  std::string cond = both(both(guard, unseen(i) ? "false" : ""), bounds_text(i, false));
  if (uniform_[i]) {
    std::string get = "ig_load1<" + hint + ">(" + from + "))";
    out_.plain(into + ".e[0] = " + (cond.empty() ? get : cond + " ? " + get + " : " + fill) + ";");
    return;
  }
  int width = s_.load_width[i];
  std::string each = both(both(cond, inside_lanes()), bounds_text(i, true));
  std::string get1 = "ig_load1<" + hint + ">(" + from + at.lane + "))";
  if (width == 1) {
    out_.lane(into + ".e[j] = " + (each.empty() ? get1 : each + " ? " + get1 + " : " + fill) + ";");
    return;
  }
  std::string get = "ig_load<" + str(width) + ", " + hint + ">(" + into + ", " + from + "));";
  std::string whole = both(cond, s_.tail ? "full" : "");
  out_.plain(whole.empty() ? get : "if (" + whole + ") " + get);
  if (whole.empty()) return;
  out_.plain("else {");
  out_.lane(into + ".e[j] = " + (s_.tail ? each + " ? " + get1 + " : " + fill : fill) + ";");
  out_.plain("}");
}

/// The position an indexed load adds, from the value of the index; negative when it is out of
/// range.
std::string Emitter::index_text(int i, const std::string& guard) {
  auto of = [&](const char* name, auto get) {
    return number(name + str(i), [i, get](const KernelSpec& k, const Geometry&) -> int64_t {
      return get(k.instrs[i]);
    });
  };
  std::string n = of("ix", [](const Instr& in) { return in.indirect_extent; });
  std::string site = of("is", [](const Instr& in) { return static_cast<int64_t>(in.site); });
  std::string call = "ig_index((long long)" + operand(k_.instrs[i].indirect) + ", " + n + ", " +
                     site + ", p.status)";
  return guard.empty() ? call : "(" + guard + ") ? " + call + " : -1ll";
}

void Emitter::indirect_value(int i, const std::string& guard) {
  const Instr& in = k_.instrs[i];
  DType t = k_.buffers[in.buffer].dtype;
  MapText at = map_text([i](const KernelSpec& k) -> const Affine& { return k.instrs[i].map; });
  std::string stride = number("it" + str(i), [i](const KernelSpec& k, const Geometry&) {
    return k.instrs[i].indirect_stride;
  });
  std::string hint = str(load_hint(i)), index = "x" + str(i),
              offset = " + (I)" + index + " * " + stride;
  std::string fill = literal(in.dtype, in.fvalue, in.ivalue);
  std::string cond = both(guard, bounds_text(i, false));
  if (uniform_[in.indirect]) {
    out_.plain("const long long " + index + " = " + index_text(i, cond) + ";");
    if (!uniform_[i] && s_.load_width[i] > 1 && bounds_text(i, true).empty()) {
      MapText moved{at.base + offset, at.lane};
      out_.plain(raw_type(i) + " r" + str(i) + ";");
      raw_load(i, "r" + str(i), index + " >= 0", moved);
      assign(i, index + " >= 0 ? " + cast(t, in.dtype, to_register(t, "r" + str(i) + ".e[j]")) +
                    " : " + fill);
      return;
    }
  }
  std::string each = uniform_[i] ? cond : both(both(cond, inside_lanes()), bounds_text(i, true));
  if (!uniform_[in.indirect]) {
    out_.lane("const long long " + index + " = " + index_text(i, each) + ";");
    each.clear();
  }
  std::string lane = uniform_[i] ? "" : at.lane;
  std::string get = to_register(
      t, "ig_load1<" + hint + ">(b" + str(in.buffer) + " + (" + at.base + lane + offset + "))");
  assign(i, "(" + both(each, index + " >= 0") + ") ? " + cast(t, in.dtype, get) + " : " + fill);
}

/// Element n takes word n % 4 of block n / 4. Lanes that begin at a multiple of four share their
/// blocks.
void Emitter::random_value(int i) {
  MapText at = map_text([i](const KernelSpec& k) -> const Affine& { return k.instrs[i].map; });
  std::string name = str(i);
  if (!uniform_[i] && s_.lanes % 4 == 0 && s_.load_width[i] >= 4) {
    out_.plain("IG_UNROLL for (int q = 0; q < " + str(s_.lanes) + "; q += 4) ig_philox(rc" + name +
               " + (ig_u64)((" + at.base + " + q) >> 2), rk" + name + ", " + v(i) + " + q);");
    return;
  }
  std::string n = "(" + at.base + (uniform_[i] ? "" : at.lane) + ")";
  assign(i, "ig_philox1(rc" + name + " + (ig_u64)(" + n + " >> 2), rk" + name + ", (int)(" + n +
                " & 3))");
}

std::string Emitter::compute_text(int i) {
  const Instr& in = k_.instrs[i];
  auto arg = [&](int n) { return operand(in.arg[n]); };
  auto type = [&](int n) { return k_.instrs[in.arg[n]].dtype; };
  if (in.op == Op::Cast && only_stored_[i]) return "(float)(" + arg(0) + ")";
  if (in.op == Op::Cast) return cast(type(0), in.dtype, arg(0));
  if (in.op == Op::Where)
    return arg(0) + " ? " + cast(type(1), in.dtype, arg(1)) + " : " +
           cast(type(2), in.dtype, arg(2));
  if (in.op == Op::Uniform) {
    if (in.dtype == DType::Float64) return "ig_uniform_f64(" + arg(0) + ")";
    return rounded(in.dtype, "ig_uniform_f32(" + arg(0) + ")");
  }
  if (std::string narrow = narrow_comparison(i); !narrow.empty()) return narrow;
  if (below_one(i)) return "ig_exp_below(" + arg(0) + ")";
  DType t = type(0);
  std::string b = in.arg[1] >= 0 ? cast(type(1), t, arg(1)) : "";
  return round_result(i, functions_.call(in.op, t, arg(0), b));
}

/// Is it exp(x - the row's largest), of which only 16-bit results and sums are made? Then the
/// relative error of a very small one (x - largest is rounded once more) is lost against the
/// largest, and what makes exp exact to the last bit is most of a long row's work.
bool Emitter::below_one(int i) const {
  const Instr& in = k_.instrs[i];
  if (in.op != Op::Exp || in.dtype != DType::Float32 || in.level != Level::Elem) return false;
  const Instr& difference = k_.instrs[in.arg[0]];
  if (difference.kind != InstrKind::Compute || difference.op != Op::Sub ||
      difference.dtype != DType::Float32)
    return false;
  const Instr& largest = k_.instrs[difference.arg[1]];
  if (largest.kind != InstrKind::Reduce || largest.op != Op::Max ||
      largest.arg[0] != difference.arg[0])
    return false;
  for (const Store& s : k_.stores)
    if (k_.instrs[s.value].level == Level::Elem && !is_half(k_.buffers[s.buffer].dtype))
      return false;
  return true;
}

/// Whether an element's index is a given one (a label), in 32 bits; empty when it is something
/// else.
std::string Emitter::narrow_comparison(int i) {
  const Instr& in = k_.instrs[i];
  if (s_.wide || !(in.op == Op::Eq || in.op == Op::Ne)) return "";
  for (int n = 0; n < 2; ++n) {
    int index = in.arg[n], other = in.arg[1 - n];
    if (k_.instrs[index].kind != InstrKind::Index || uniform_[index] || !uniform_[other]) continue;
    if (k_.instrs[index].dtype != DType::Int64 || k_.instrs[other].dtype != DType::Int64) continue;
    MapText at =
        map_text([index](const KernelSpec& k) -> const Affine& { return k.instrs[index].map; });
    return "ig_narrow(" + operand(other) + ") " + (in.op == Op::Eq ? "==" : "!=") + " (" + at.base +
           at.lane + ")";
  }
  return "";
}

/// Rounds to a 16-bit type, unless nothing but stores sees the value (they round) or it is one of
/// the operands.
std::string Emitter::round_result(int i, const std::string& text) const {
  const Instr& in = k_.instrs[i];
  bool picks = in.op == Op::Relu || in.op == Op::Maximum || in.op == Op::Minimum;
  for (int a : in.arg) picks = picks && (a < 0 || k_.instrs[a].dtype == in.dtype);
  return only_stored_[i] || picks ? text : rounded(in.dtype, text);
}

/// Many elements divided by one value: its reciprocal is computed once, and what may go wrong is
/// looked at once.
bool Emitter::shared_division(int i) {
  const Instr& in = k_.instrs[i];
  if (in.kind != InstrKind::Compute || in.op != Op::Div || uniform_[in.arg[0]] ||
      !uniform_[in.arg[1]])
    return false;
  DType t = k_.instrs[in.arg[0]].dtype;
  if (k_.instrs[in.arg[1]].dtype != t || !(t == DType::Float32 || is_half(t))) return false;
  std::string a = operand(in.arg[0]), b = operand(in.arg[1]), fine = "f" + str(i), r = "d" + str(i);
  out_.plain("bool " + fine + " = true; const float " + r + " = ig_reciprocal(" + b + ");");
  out_.lane(v(i) + "[j] = " +
            round_result(i, "ig_quotient(" + a + ", " + b + ", " + r + ", " + fine + ")") + ";");
  out_.plain("if (!" + fine + ") {");
  out_.lane(v(i) + "[j] = " + round_result(i, a + " / " + b) + ";");
  out_.plain("}");
  return true;
}

/// The value of one instruction, for the current outer point or, in_group, for the current lane
/// group u.
void Emitter::value(int i, bool in_group) {
  const Instr& in = k_.instrs[i];
  auto element = [&](DType t, const std::string& array) {
    std::string group = array + (s_.hold == Hold::Shared && kept(i) ? "[gh]" : "[u]");
    if (t == DType::BFloat16 && !uniform_[i] && s_.lanes % 2 == 0)
      return "ig_elem_bf16(" + group + ", j)";
    return to_register(t, group + (uniform_[i] ? ".e[0]" : ".e[j]"));
  };
  bool plain_load = in.kind == InstrKind::Load && in.indirect < 0;
  if (in_group && kept(i) && !(plain_load && s_.hold == Hold::Registers)) {
    DType t = plain_load ? k_.buffers[in.buffer].dtype : in.dtype;
    assign(i, cast(t, in.dtype, element(t, "h" + str(i))));
    return;
  }
  switch (in.kind) {
    case InstrKind::Load: {
      DType t = k_.buffers[in.buffer].dtype;
      if (!plain_load) {
        indirect_value(i, in_group ? guard() : guard().empty() ? "" : "live");
      } else if (in_group && !late(i)) {
        assign(i, cast(t, in.dtype, element(t, "r" + str(i))));
      } else {
        out_.plain(raw_type(i) + " r" + str(i) + ";");
        MapText at =
            map_text([i](const KernelSpec& k) -> const Affine& { return k.instrs[i].map; });
        raw_load(i, "r" + str(i), in_group ? guard() : "", at);
        assign(i,
               cast(t, in.dtype, to_register(t, "r" + str(i) + (uniform_[i] ? ".e[0]" : ".e[j]"))));
      }
      break;
    }
    case InstrKind::Index: {
      MapText at = map_text([i](const KernelSpec& k) -> const Affine& { return k.instrs[i].map; });
      assign(i, cast(DType::Int64, in.dtype,
                     "(long long)(" + at.base + (uniform_[i] ? "" : at.lane) + ")"));
      break;
    }
    case InstrKind::InBounds: {
      std::string all = both(bounds_text(i, false), bounds_text(i, true));
      assign(i, "(unsigned char)(" + (all.empty() ? "1" : all) + ")");
      break;
    }
    case InstrKind::Random:
      random_value(i);
      break;
    case InstrKind::Compute:
      if (!shared_division(i)) assign(i, compute_text(i));
      break;
    default:
      break;  // constants and arguments are scalars of the kernel, reductions come from combine()
  }
}

/// Where a store of where(c, x, old) writes over old, whoever keeps its value need be neither read
/// nor written: a cache that gets one row is. The load of old, or -1.
int Emitter::overwritten(int n) const {
  if (s_.mode != Mode::Map) return -1;
  const int old = overwritten_load(parts_, n);
  return old >= 0 && uniform_[k_.instrs[k_.stores[n].value].arg[0]] ? old : -1;
}

/// Is the load one whose values nobody sees?
bool Emitter::unseen(int load) const {
  for (size_t n = 0; n < k_.stores.size(); ++n)
    if (overwritten(static_cast<int>(n)) == load) return true;
  return false;
}

/// Stores the current lane group of a value (or the current outer point, or its lanes).
void Emitter::store(int n, const std::string& guard) {
  const Store& st = k_.stores[n];
  DType t = k_.buffers[st.buffer].dtype, from = k_.instrs[st.value].dtype;
  MapText at = map_text([n](const KernelSpec& k) -> const Affine& { return k.stores[n].map; });
  std::string cond = both(guard, st.predicated ? "run_ok" : "");
  if (int old = overwritten(n); old >= 0) cond = both(cond, operand(k_.instrs[st.value].arg[0]));
  std::string hint = s_.streaming ? "2" : "0", to = "b" + str(st.buffer) + " + (" + at.base;
  std::string x = to_memory(t, cast(from, t, operand(st.value)));
  bool outer_point = s_.mode == Mode::Row && k_.instrs[st.value].level == Level::Outer;
  if (outer_point || s_.lanes == 1) {
    std::string j0 = uniform_[st.value] || is_scalar(st.value) ? "" : "const int j = 0; ";
    std::string m = memory_type(t);
    std::string put = "ig_store1<" + hint + ", " + m + ">(" + to + "), (" + m + ")(" + x + "));";
    out_.plain("{ " + j0 + (cond.empty() ? put : "if (" + cond + ") " + put) + " }");
    return;
  }
  std::string pack = "w" + str(n), m = memory_type(t);
  out_.plain("IgVec<" + m + ", " + str(s_.lanes) + "> " + pack + ";");
  if (is_half(t) && from == t && !uniform_[st.value])
    out_.plain(std::string(t == DType::BFloat16 ? "ig_round_bf16(" : "ig_round_f16(") + pack +
               ", " + v(st.value) + ");");
  else
    out_.lane(pack + ".e[j] = " + x + ";");
  int width = s_.store_width[n];
  std::string put1 =
      "ig_store1<" + hint + ", " + m + ">(" + to + at.lane + "), " + pack + ".e[j]);";
  std::string each = both(cond, inside_lanes());
  if (width > 1) {
    std::string whole = both(cond, s_.tail ? "full" : "");
    std::string put = "ig_store<" + str(width) + ", " + hint + ">(" + to + "), " + pack + ");";
    out_.plain(whole.empty() ? put : "if (" + whole + ") " + put);
    if (!s_.tail) return;
    out_.plain("else {");
  }
  out_.lane(each.empty() ? put1 : "if (" + each + ") " + put1);
  if (width > 1) out_.plain("}");
}

}  // namespace ingot::cuda
