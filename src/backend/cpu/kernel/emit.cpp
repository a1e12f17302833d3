// See emit.h.
#include "backend/cpu/kernel/emit.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>

#include "backend/cpu/jit/column_code.h"
#include "backend/cpu/support/half.h"
#include "backend/cpu/support/move.h"
#include "ingot/error.h"

namespace ingot::cpu {

namespace {

/// The bits of a value of a type as stored in memory (memory = true) or in a tile.
uint64_t bits_of(DType t, double f, int64_t i, bool memory) {
  uint64_t u = 0;
  auto put = [&](auto v) { std::memcpy(&u, &v, sizeof v); };
  switch (t) {
    case DType::Float64:
      put(f);
      break;
    case DType::Float32:
      put(static_cast<float>(f));
      break;
    case DType::Float16: {
      const uint16_t h = f16_from_f32(static_cast<float>(f));
      if (memory)
        put(h);
      else
        put(f32_from_f16(h));
      break;
    }
    case DType::BFloat16: {
      const uint16_t h = bf16_from_f32(static_cast<float>(f));
      if (memory)
        put(h);
      else
        put(f32_from_bf16(h));
      break;
    }
    case DType::Int64:
      put(i);
      break;
    case DType::Int32:
      put(static_cast<int32_t>(i));
      break;
    case DType::Int16:
      put(static_cast<int16_t>(i));
      break;
    case DType::Bool:
      put(static_cast<uint8_t>(i != 0));
      break;
    default:
      put(static_cast<uint8_t>(i));
      break;
  }
  return u;
}

/// Ops whose result on 16-bit floats is exact, so that no rounding is needed.
bool exact_on_half(Op op) {
  switch (op) {
    case Op::Neg:
    case Op::Abs:
    case Op::Sign:
    case Op::Relu:
    case Op::Maximum:
    case Op::Minimum:
    case Op::Where:
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Copysign:
      return true;
    default:
      return false;
  }
}
}  // namespace

int64_t Emitter::count(Span s) const {
  int lo, hi;
  an_.positions(s, lo, hi);
  int64_t n = 1;
  for (int k = lo; k < hi; ++k) n *= plan_.tile[k];
  return n;
}

int Emitter::new_value(Span s, int esize) {
  Value v;
  v.span = s;
  v.esize = esize;
  values_.push_back(v);
  alias_.push_back(-1);
  return static_cast<int>(values_.size()) - 1;
}

int Emitter::ref(const Affine* m, Span) {
  MemoryRef r;
  if (m) r.at = an_.access(*m);
  plan_.refs.push_back(r);
  return static_cast<int>(plan_.refs.size()) - 1;
}

void Emitter::run() {
  const int n = static_cast<int>(spec_.instrs.size());
  for (int k = 0; k < n; ++k) new_value(an_.span[k], tile_size(spec_.instrs[k].dtype));
  absorbed_.assign(static_cast<size_t>(n), 0);
  plan_.n_buffers = static_cast<int>(spec_.buffers.size());
  plan_.all_predicated = !spec_.stores.empty();
  for (const Store& s : spec_.stores) plan_.all_predicated &= s.predicated;
  for (const Instr& i : spec_.instrs) plan_.all_predicated &= i.indirect < 0;
  mark_pairs();
  for (int k = 0; k < n; ++k)
    if (an_.span[k] == Span::Uniform && an_.needed[k]) uniform(k);
  plan_.rounds.resize(static_cast<size_t>(an_.n_rounds));
  for (int r = 0; r < an_.n_rounds; ++r) {
    round_now_ = r;
    outer_round(r);
    elem_round(r);
  }
  while (plan_.rounds.size() > 1 && plan_.rounds.back().outer.empty() &&
         plan_.rounds.back().elem.empty() && !plan_.rounds.back().columns)
    plan_.rounds.pop_back();
  place_values();
  plan_ahead();
}

/// Rough nanoseconds per element of a loop on one core: enough to separate memory-bound
/// work from compute-bound work.
static double loop_cost(const Instr& i) {
  if (i.kind == InstrKind::Reduce) return 0.04;
  if (i.kind != InstrKind::Compute) return 0;
  switch (i.op) {
    case Op::Div:
    case Op::Sqrt:
    case Op::Reciprocal:
      return 0.18;
    case Op::Exp:
    case Op::Exp2:
    case Op::Log:
    case Op::Log2:
    case Op::Log10:
    case Op::Sigmoid:
    case Op::Rsqrt:
      return 0.35;
    case Op::Tanh:
    case Op::Erf:
    case Op::Sin:
    case Op::Cos:
    case Op::Expm1:
    case Op::Log1p:
    case Op::Atan:
    case Op::Sinh:
    case Op::Cosh:
      return 0.45;
    case Op::Sinc:
      return 0.6;
    default:
      return info(i.op).smooth ? 3.0 : 0.045;
  }
}

/// Prefetching the next tile costs about as much as a cheap loop: it pays where memory, not
/// arithmetic, is the bottleneck.
void Emitter::plan_ahead() {
  double bytes = 0, cost = 0;
  for (const MemoryRef& m : plan_.refs)
    if (m.ahead) bytes += m.esize;
  for (size_t k = 0; k < spec_.instrs.size(); ++k)
    if (an_.span[k] == Span::Full || spec_.instrs[k].kind == InstrKind::Reduce)
      cost += loop_cost(spec_.instrs[k]);
  // A single pass over memory is what hardware prefetchers handle best.
  const bool pays = bytes * static_cast<double>(plan_.work) >= 1e6 &&
                    bytes / 27 > (plan_.streams ? 0.19 : 0.23) * cost && cost > 0.1;
  int64_t lines = 0, loops = 1;
  for (MemoryRef& m : plan_.refs) {
    m.ahead &= pays;
    if (m.ahead) lines += count(Span::Full) * m.esize / 64 + 1;
  }
  for (const Round& r : plan_.rounds)
    for (const Step& s : r.elem) loops += s.kind == StepKind::Call || s.kind == StepKind::Reduce;
  plan_.ahead_lines = static_cast<int>((lines + loops - 1) / loops);
}

void Emitter::uniform(int k) {
  if (spec_.instrs[k].kind == InstrKind::Const) {
    constant(k, 1);
    return;
  }
  instr(plan_.prologue, k);
}

/// A constant repeated n times, kept in the plan. n = 1: becomes the value of instruction k.
int Emitter::constant(int k, int64_t n) {
  const Instr& i = spec_.instrs[k];
  const int esize = tile_size(i.dtype), v = n == 1 ? k : new_value(Span::Full, esize);
  auto data = std::make_unique<uint64_t[]>(static_cast<size_t>(n * esize + 7) / 8 + 8);
  const uint64_t bits = bits_of(i.dtype, i.fvalue, i.ivalue, false);
  fill_elements(data.get(), &bits, esize, n);
  plan_.places.resize(std::max(plan_.places.size(), values_.size()));
  plan_.places[v] = {Segment::Constant, static_cast<int64_t>(plan_.constants.size())};
  values_[v].placed = true;
  plan_.constants.push_back(std::move(data));
  return v;
}

void Emitter::outer_round(int r) {
  Round& round = plan_.rounds[r];
  const int n = static_cast<int>(spec_.instrs.size());
  for (int k = 0; k < n; ++k) {
    const Instr& i = spec_.instrs[k];
    if (i.kind == InstrKind::Reduce) {
      if (an_.computed[k] && an_.round[k] == r - 1) {
        Step s{StepKind::Finish};
        const Reducer& red = find_reducer(i.op, tile_type(spec_.instrs[i.arg[0]].dtype));
        s.span = Span::Outer;
        s.dst = k;
        s.acc = values_[k].esize;  // replaced by the accumulator's offset in reduce()
        for (const Step& t : plan_.rounds[r - 1].init)
          if (t.dst == k) s.acc = t.acc;
        s.fn = find_cast(red.acc_type, tile_type(i.dtype));
        round.outer.push_back(s);
        if (is_half(i.dtype)) round_half(round.outer, k);
      }
    } else if (an_.span[k] == Span::Outer && (an_.computed[k] >> r & 1)) {
      instr(round.outer, k);
    }
  }
  for (size_t s = 0; s < spec_.stores.size(); ++s)
    if (spec_.instrs[spec_.stores[s].value].level == Level::Outer && an_.store_round[s] == r)
      store(round.outer, s);
}

void Emitter::elem_round(int r) {
  Round& round = plan_.rounds[r];
  const int n = static_cast<int>(spec_.instrs.size());
  if (columns) {
    if (r > 0) return;
    round.columns = columns;
    for (int k : columns->reduces()) round.accumulators.push_back(start_reduce(k).acc);
    return;
  }
  keep_rows(r);
  for (int k = 0; k < n; ++k) {
    if (!(an_.computed[k] >> r & 1)) continue;
    if (spec_.instrs[k].kind == InstrKind::Reduce) {
      if (an_.round[k] == r) reduce(round.elem, k);
    } else if (an_.span[k] == Span::Full || an_.span[k] == Span::Inv) {
      if (!absorbed_[k] && !reduced_in_place(k)) instr(round.elem, k);
    }
  }
  // Memory that is also read is written last.
  for (const bool alias : {false, true})
    for (size_t s = 0; s < spec_.stores.size(); ++s)
      if (spec_.instrs[spec_.stores[s].value].level == Level::Elem && an_.store_round[s] == r &&
          spec_.buffers[spec_.stores[s].buffer].may_alias == alias)
        store(round.elem, s);
}

/// A load of memory that is also written, and whose value is stored as it is: another store may
/// come before, so the value must be copied while it is there.
bool Emitter::moved_in_place(int k) const {
  if (!spec_.buffers[spec_.instrs[k].buffer].may_alias) return false;
  for (const Store& s : spec_.stores) {
    int v = s.value;
    while (v != k && an_.alias_cast(v)) v = spec_.instrs[v].arg[0];
    if (v == k) return true;
  }
  return false;
}

/// With several tiles per row, a value used in a later round than its own lives in a buffer of the
/// whole row.
void Emitter::keep_rows(int r) {
  if (plan_.inner_tiles == 1 || plan_.splits > 1) return;
  for (int k = 0; k < static_cast<int>(spec_.instrs.size()); ++k) {
    if (an_.span[k] != Span::Full || spec_.instrs[k].kind == InstrKind::Reduce) continue;
    if (!(an_.needed[k] & ~an_.computed[k]) || !((an_.needed[k] | an_.computed[k]) >> r & 1))
      continue;
    Value& v = values_[k];
    if (!v.permanent) {
      v.permanent = v.placed = true;
      v.bound = true;
      const int64_t bytes = plan_.inner_tiles * count(Span::Full) * v.esize;
      plan_.places.resize(values_.size());
      plan_.places[k] = {Segment::Memory, frame_slot(bytes)};
    }
    Step s{StepKind::BindRow};
    s.dst = k;
    s.esize = static_cast<uint8_t>(v.esize);
    s.ref = ref(nullptr, Span::Full);
    plan_.refs[s.ref].at.offset = plan_.places[k].offset;
    plan_.rounds[r].elem.push_back(s);
  }
}

// ---- Instructions

void Emitter::call(std::vector<Step>& out, TileFn fn, Span s, int dst, int a, int b, int c) {
  if (!fn)
    throw Error(ErrorKind::Internal, "cpu kernel",
                "no loop for an instruction of\n" + to_string(spec_));
  Step t{StepKind::Call};
  t.span = s;
  t.fn = fn;
  t.dst = dst;
  t.a = a;
  t.b = b;
  t.c = c;
  out.push_back(t);
}

void Emitter::round_half(std::vector<Step>& out, int k) {
  call(out, find_round(spec_.instrs[k].dtype), values_[k].span, k, k);
}

void Emitter::instr(std::vector<Step>& out, int k) {
  const Instr& i = spec_.instrs[k];
  switch (i.kind) {
    case InstrKind::Const:
      constant(k, 1);
      return;
    case InstrKind::Load:
      load(out, k);
      return;
    case InstrKind::Compute:
      compute(out, k);
      return;
    case InstrKind::Reduce:
      return;
    default:
      break;
  }
  Step s{i.kind == InstrKind::Arg      ? StepKind::Arg
         : i.kind == InstrKind::Index  ? StepKind::Index
         : i.kind == InstrKind::Random ? StepKind::Random
                                       : StepKind::InBounds};
  s.span = values_[k].span;
  s.dst = k;
  s.ref = ref(i.map.stride.empty() && plan_.n_axes ? nullptr : &i.map, s.span);
  MemoryRef& m = plan_.refs[s.ref];
  for (const Bound& b : i.bounds) m.bounds.push_back({an_.access(b.at), b.extent});
  m.slot = i.slot;
  m.dense = an_.dense(m.at, s.span);
  m.dtype = i.dtype;
  m.counter = i.ivalue;
  out.push_back(s);
  if (i.kind == InstrKind::Index && i.dtype != DType::Int64)
    throw Error(ErrorKind::Internal, "cpu kernel", "an index is int64 in\n" + to_string(spec_));
}

void Emitter::load(std::vector<Step>& out, int k) {
  const Instr& i = spec_.instrs[k];
  const Span span = values_[k].span;
  const bool half = is_half(i.dtype);
  const int dst = half ? new_value(span, 2) : k;
  const int r = ref(&i.map, span);
  MemoryRef& m = plan_.refs[r];
  m.buffer = i.buffer;
  m.esize = static_cast<int>(size_of(i.dtype));
  m.fill = bits_of(i.dtype, i.fvalue, i.ivalue, true);
  for (const Bound& b : i.bounds) m.bounds.push_back({an_.access(b.at), b.extent});
  Step s{StepKind::Gather};
  s.span = span;
  s.dst = dst;
  s.ref = r;
  if (i.indirect >= 0) {
    const int v = resolve(i.indirect);
    m.index_span = values_[v].span;
    if (m.index_span != span && m.index_span != Span::Inv && !(an_.is_scalar(m.index_span))) {
      s.a = operand(out, i.indirect, span, false);
      plan_.refs[r].index_span = span;
    } else {
      s.a = v;
    }
    MemoryRef& q = plan_.refs[r];
    q.index_type = tile_type(spec_.instrs[i.indirect].dtype);
    q.index_stride = i.indirect_stride;
    q.index_extent = i.indirect_extent;
    q.site = i.site;
    s.kind = StepKind::Indirect;
  } else if (!i.bounds.empty()) {
    s.kind = StepKind::Bounded;
  } else if (an_.dense(m.at, span) && !moved_in_place(k)) {
    s.kind = StepKind::Bind;
    m.ahead = span == Span::Full && an_.sequential(m.at);
    values_[dst].bound = true;
    values_[dst].aliased = spec_.buffers[i.buffer].may_alias;
  }
  out.push_back(s);
  if (half) call(out, find_widen(i.dtype), span, k, dst);
}

/// The value in the form `want`. scalar_ok: the loop can read one element for all.
int Emitter::operand(std::vector<Step>& out, int v0, Span want, bool scalar_ok) {
  const int v = resolve(v0);
  const Span s = values_[v].span;
  if (s == want || (scalar_ok && an_.is_scalar(s))) return v;
  if (s == Span::Uniform) {  // once, in the prologue
    if (v < static_cast<int>(spec_.instrs.size()) && spec_.instrs[v].kind == InstrKind::Const) {
      auto it = splats_.find(v);
      if (it == splats_.end())
        it =
            splats_
                .emplace(v, constant(v, std::max<int64_t>(2, std::max(count(Span::Full), plan_.R))))
                .first;
      return it->second;
    }
    const auto key = std::make_tuple(v, static_cast<int>(want), -1);
    auto it = expanded_.find(key);
    if (it == expanded_.end()) {
      const int e = new_value(want, values_[v].esize);
      values_[e].permanent = true;
      Step t{StepKind::Expand};
      t.span = want;
      t.from = s;
      t.esize = static_cast<uint8_t>(values_[v].esize);
      t.dst = e;
      t.a = v;
      plan_.prologue.push_back(t);
      it = expanded_.emplace(key, e).first;
    }
    return it->second;
  }
  const auto key = std::make_tuple(v, static_cast<int>(want), round_now_);
  if (auto it = expanded_.find(key); it != expanded_.end()) return it->second;
  const int e = new_value(want, values_[v].esize);
  Step t{StepKind::Expand};
  t.span = want;
  t.from = s;
  t.esize = static_cast<uint8_t>(values_[v].esize);
  t.dst = e;
  t.a = v;
  out.push_back(t);
  expanded_[key] = e;
  return e;
}

// Add, Sub and Mul of float32 whose operand is such an op too, used only there: one loop for both.
void Emitter::mark_pairs() {
  auto arith = [&](int k) {
    const Instr& i = spec_.instrs[k];
    return i.kind == InstrKind::Compute && i.dtype == DType::Float32 && an_.span[k] == Span::Full &&
           (i.op == Op::Add || i.op == Op::Sub || i.op == Op::Mul);
  };
  std::vector<char> head(spec_.instrs.size(), 0);
  // A product that is only summed is formed inside the sum.
  for (const Instr& i : spec_.instrs) {
    if (i.kind != InstrKind::Reduce || i.op != Op::Sum) continue;
    const int a = i.arg[0];
    if (arith(a) && spec_.instrs[a].op == Op::Mul && an_.uses[a] == 1 && an_.computed[a])
      absorbed_[a] = 1;
  }
  // exp of a difference is one loop.
  for (int k = 0; k < static_cast<int>(spec_.instrs.size()); ++k) {
    const Instr& i = spec_.instrs[k];
    if (i.kind != InstrKind::Compute || i.op != Op::Exp || i.dtype != DType::Float32 ||
        !an_.computed[k])
      continue;
    const int a = i.arg[0];
    if (arith(a) && spec_.instrs[a].op == Op::Sub && an_.uses[a] == 1 &&
        an_.computed[a] == an_.computed[k])
      absorbed_[a] = 1;
  }
  for (int k = 0; k < static_cast<int>(spec_.instrs.size()); ++k) {
    if (!arith(k) || !an_.computed[k]) continue;
    for (int side = 0; side < 2; ++side) {
      const int a = spec_.instrs[k].arg[side];
      if (!absorbed_[k] && arith(a) && !head[a] && !absorbed_[a] && an_.uses[a] == 1 &&
          an_.computed[a] == an_.computed[k]) {
        absorbed_[a] = 1;
        head[k] = 1;
        break;
      }
    }
  }
}

bool Emitter::pair(std::vector<Step>& out, int k) {
  const Instr& o = spec_.instrs[k];
  for (int side = 0; side < 2; ++side) {
    const int in = o.arg[side];
    if (in < 0 || !absorbed_[in]) continue;
    const Instr& i = spec_.instrs[in];
    if (o.op == Op::Exp) {
      const Span sb = values_[resolve(i.arg[1])].span;
      const bool scalar = sb != Span::Full && an_.is_scalar(sb);
      const int a = operand(out, i.arg[0], Span::Full, false),
                b = operand(out, i.arg[1], Span::Full, scalar);
      call(out, find_exp_of_difference(scalar ? kScalarB : 0), Span::Full, k, a, b);
      return true;
    }
    const int operands[3] = {i.arg[0], i.arg[1], o.arg[1 - side]};
    int scalars = 0;
    for (int q = 0; q < 3; ++q)
      if (an_.is_scalar(values_[resolve(operands[q])].span) &&
          values_[resolve(operands[q])].span != Span::Full)
        scalars |= 1 << q;
    TileFn fn = find_pair(i.op, o.op, side == 1, scalars);
    if (!fn) fn = find_pair(i.op, o.op, side == 1, scalars = 0);
    int v[3];
    for (int q = 0; q < 3; ++q) v[q] = operand(out, operands[q], Span::Full, scalars >> q & 1);
    call(out, fn, Span::Full, k, v[0], v[1], v[2]);
    return true;
  }
  return false;
}

void Emitter::compute(std::vector<Step>& out, int k) {
  const Instr& i = spec_.instrs[k];
  const Span span = values_[k].span;
  if (pair(out, k)) return;
  if (i.op == Op::Cast) {
    const DType from = spec_.instrs[i.arg[0]].dtype;
    const TileType a = tile_type(from), b = tile_type(i.dtype);
    if (an_.alias_cast(k)) {
      alias_[k] = resolve(i.arg[0]);
      return;
    }
    const int x = operand(out, i.arg[0], span, false);
    if (a != b) call(out, find_cast(a, b), span, k, x);
    if (is_half(i.dtype)) call(out, find_round(i.dtype), span, k, a == b ? x : k);
    return;
  }
  const TileType in = tile_type(spec_.instrs[i.arg[i.op == Op::Where ? 1 : 0]].dtype);
  TileFn fn = nullptr;
  int scalars = 0;
  if (i.op == Op::Uniform) {
    fn = find_uniform(tile_type(i.dtype));
  } else {
    for (int q = 0; q < 3; ++q)
      if (i.arg[q] >= 0) {
        const Span s = values_[resolve(i.arg[q])].span;
        if (s != span && an_.is_scalar(s)) scalars |= 1 << q;
      }
    if (i.op == Op::Where) scalars &= ~kScalarA;
    fn = find_op(i.op, in, scalars);
    for (int q = 2; q >= 0 && !fn; --q)  // drop scalar operands until there is a loop
      if (scalars >> q & 1) fn = find_op(i.op, in, scalars &= ~(1 << q));
  }
  int v[3] = {-1, -1, -1};
  for (int q = 0; q < 3; ++q)
    if (i.arg[q] >= 0) v[q] = operand(out, i.arg[q], span, scalars >> q & 1);
  call(out, fn, span, k, v[0], v[1], v[2]);
  if (is_half(i.dtype) && !exact_on_half(i.op)) round_half(out, k);
}

/// A load that only column reductions use, of rows they can read in place.
bool Emitter::reduced_in_place(int k) const {
  if (!an_.pitch(k) || spec_.buffers[spec_.instrs[k].buffer].may_alias) return false;
  int reduces = 0;
  for (const Instr& i : spec_.instrs) reduces += i.kind == InstrKind::Reduce && i.arg[0] == k;
  return reduces == an_.uses[k];
}

/// The accumulator of a Reduce instruction, set up at the start of its round.
Step Emitter::start_reduce(int k) {
  const Instr& i = spec_.instrs[k];
  const Reducer& red = find_reducer(i.op, tile_type(spec_.instrs[i.arg[0]].dtype));
  Step s{StepKind::InitAcc};
  s.reducer = &red;
  s.dst = k;
  s.acc = static_cast<int32_t>(plan_.acc_bytes);
  plan_.acc_bytes += (red.acc_bytes * plan_.R + 127) / 64 * 64;
  plan_.rounds[round_now_].init.push_back(s);
  plan_.rounds[round_now_].reduces = true;
  return s;
}

void Emitter::reduce(std::vector<Step>& out, int k) {
  const Instr& i = spec_.instrs[k];
  Step s = start_reduce(k);
  s.kind = StepKind::Reduce;
  if (reduced_in_place(i.arg[0])) {
    s.pitch = an_.pitch(i.arg[0]);
    s.a = new_value(Span::Full, values_[i.arg[0]].esize);
    values_[s.a].bound = true;
    Step b{StepKind::Bind};
    b.dst = s.a;
    b.ref = ref(&spec_.instrs[i.arg[0]].map, Span::Full);
    plan_.refs[b.ref].buffer = spec_.instrs[i.arg[0]].buffer;
    plan_.refs[b.ref].esize = values_[s.a].esize;
    out.push_back(b);
  } else if (absorbed_[i.arg[0]]) {
    s.a = operand(out, spec_.instrs[i.arg[0]].arg[0], Span::Full, false);
    s.b = operand(out, spec_.instrs[i.arg[0]].arg[1], Span::Full, false);
  } else {
    s.a = operand(out, i.arg[0], Span::Full, false);
  }
  out.push_back(s);
}

}  // namespace ingot::cpu
