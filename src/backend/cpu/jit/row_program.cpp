// See row_code.h: whether a kernel suits, and what its loops compute.
#include <algorithm>

#include "backend/cpu/jit/row_code.h"
#include "backend/cpu/jit/vector_emitter.h"

namespace ingot::cpu {

namespace {
constexpr int64_t kLongestRow = 8192;  // with kept rows: they must stay in the L1 or L2 cache
constexpr int kCheap = 3;              // what costs no more is recomputed in each round
}  // namespace

bool RowProgram::suits(const Instr& i) const {
  switch (i.kind) {
    case InstrKind::Const:
      return i.dtype == DType::Float32 || i.dtype == DType::Int64;
    case InstrKind::Arg:
      return i.dtype == DType::Float32;
    case InstrKind::Load:
      return i.dtype == DType::Float32 && i.bounds.empty() && i.indirect < 0;
    case InstrKind::Index:
      return i.dtype == DType::Int64;
    case InstrKind::Compute:
      return VectorEmitter::can(spec, i);
    case InstrKind::Reduce:
      return i.dtype == DType::Float32 &&
             spec.instrs[static_cast<size_t>(i.arg[0])].dtype == DType::Float32 &&
             (i.op == Op::Sum || i.op == Op::Max || i.op == Op::Min);
    default:
      return false;
  }
}

/// Values of other types that depend on constants and arguments alone (an optimiser's float64 step
/// size) need no code.
bool RowProgram::find_host() {
  const size_t n = spec.instrs.size();
  std::vector<char> could(n, 0);
  host.assign(n, 0);
  for (size_t k = 0; k < n; ++k) {
    const Instr& i = spec.instrs[k];
    could[k] =
        an.span[k] == Span::Uniform && !is_half(i.dtype) &&
        (i.kind == InstrKind::Const || i.kind == InstrKind::Arg || i.kind == InstrKind::Compute) &&
        i.op != Op::Where;
    for (int a : i.arg) could[k] = could[k] && (a < 0 || could[static_cast<size_t>(a)]);
    if (suits(i)) continue;
    if (!could[k]) return false;
    host[k] = 1;
  }
  for (size_t k = n; k-- > 0;) {
    const Instr& i = spec.instrs[k];
    for (int a : i.arg) {
      if (a < 0) continue;
      const Instr& x = spec.instrs[static_cast<size_t>(a)];
      if (host[k])
        host[static_cast<size_t>(a)] = 1;
      else if (host[static_cast<size_t>(a)] && x.dtype != DType::Float32 &&
               !(x.kind == InstrKind::Const && x.dtype == DType::Int64))
        return false;
    }
  }
  for (const Store& s : spec.stores)
    if (host[static_cast<size_t>(s.value)] &&
        spec.instrs[static_cast<size_t>(s.value)].kind == InstrKind::Const)
      return false;
  return true;
}

bool RowProgram::suits() {
  const Plan& p = an.plan;
  const int n = spec.n_axes();
  if (n == 0 || p.splits > 1 || p.by_columns || spec.n_inner() > 1 ||
      (spec.n_inner() == 0 && spec.has_reduce()))
    return false;
  int predicated = 0;
  for (const Store& s : spec.stores) {
    predicated += s.predicated;
    if (spec.instrs[static_cast<size_t>(s.value)].dtype != DType::Float32) return false;
  }
  if (predicated != 0 && predicated != static_cast<int>(spec.stores.size())) return false;
  if (!find_host()) return false;
  // Rows shorter than a vector waste it; rows longer than the caches hold are processed by tiles.
  const int64_t last = spec.extent.back();
  if (last < 16 && n > 1) return false;
  return spec.n_inner() == 0 || last <= kLongestRow;
}

int RowProgram::pointer(int buffer, const Affine& map) {
  for (size_t k = 0; k < pointers.size(); ++k)
    if (pointers[k].buffer == buffer && pointers[k].map == map) return static_cast<int>(k);
  RowPointer p;
  p.buffer = buffer;
  p.map = map;
  p.along = map.stride.back() == 1;
  pointers.push_back(p);
  return static_cast<int>(pointers.size()) - 1;
}

bool RowProgram::find_pointers() {
  load_pointer.assign(spec.instrs.size(), -1);
  index_pointer.assign(spec.instrs.size(), -1);
  auto fits = [](const Affine& m) {
    if (m.stride.empty()) return false;
    for (int64_t s : m.stride)
      if (s > (1 << 28) || s < -(1 << 28)) return false;
    return m.stride.back() == 0 || m.stride.back() == 1;
  };
  for (size_t k = 0; k < spec.instrs.size(); ++k) {
    const Instr& i = spec.instrs[k];
    if (i.kind == InstrKind::Index) {
      for (size_t x = 0; x < i.map.stride.size(); ++x)
        if (i.map.stride[x] * spec.extent[x] > (1 << 28) || i.map.stride[x] < 0) return false;
      if (!fits(i.map) || i.map.offset > (1 << 28) || i.map.offset < -(1 << 28)) return false;
      Affine rest = i.map;  // the row's offset is added by the code
      rest.stride.back() = 0;
      index_pointer[k] = pointer(-1, rest);
    }
    if (i.kind != InstrKind::Load) continue;
    if (!fits(i.map)) return false;
    load_pointer[k] = pointer(i.buffer, i.map);
  }
  for (const Store& s : spec.stores) {
    const bool elem =
        spec.n_inner() == 0 || spec.instrs[static_cast<size_t>(s.value)].level == Level::Elem;
    if (!fits(s.map) || (s.map.stride.back() == 1) != (elem && spec.extent.back() > 1))
      return false;
    store_pointer.push_back(pointer(s.buffer, s.map));
  }
  return pointers.size() <= 48;
}

std::vector<int> RowProgram::roots(int round) const {
  std::vector<int> r;
  for (size_t k = 0; k < spec.instrs.size(); ++k)
    if (spec.instrs[k].kind == InstrKind::Reduce && row_needed[k] && an.round[k] == round)
      r.push_back(spec.instrs[k].arg[0]);
  for (size_t s = 0; s < spec.stores.size(); ++s)
    if (pointers[static_cast<size_t>(store_pointer[s])].along && store_round[s] == round)
      r.push_back(spec.stores[s].value);
  for (size_t k = 0; k < spec.instrs.size(); ++k)
    if (kept_round[k] == round) r.push_back(static_cast<int>(k));
  return r;
}

/// The values that the loop of a round uses. What is kept from an earlier round is read again.
std::vector<char> RowProgram::reach(int round, std::vector<char>* reloaded) const {
  std::vector<char> in(spec.instrs.size(), 0);
  for (int v : roots(round)) in[static_cast<size_t>(v)] = 1;
  for (size_t k = spec.instrs.size(); k-- > 0;) {
    if (!in[k]) continue;
    const Instr& i = spec.instrs[k];
    if (i.kind == InstrKind::Reduce || (!full[k] && i.dtype == DType::Float32)) {
      in[k] = 2;  // a scalar per row: not part of the loop
      continue;
    }
    if (is_kept(static_cast<int>(k), round)) {
      if (reloaded) (*reloaded)[k] = 1;
      continue;
    }
    for (int a : i.arg)
      if (a >= 0 && !in[static_cast<size_t>(a)]) in[static_cast<size_t>(a)] = 1;
  }
  return in;
}

void RowProgram::choose_kept() {
  const size_t n = spec.instrs.size();
  kept_round.assign(n, -1);
  std::vector<int> cost(n, 0), first(n, -1);
  std::vector<char> again(n, 0);
  for (size_t k = 0; k < n; ++k) {
    const Instr& i = spec.instrs[k];
    if (!full[k]) continue;
    cost[k] = VectorEmitter::cost(i);
    for (int a : i.arg)
      if (a >= 0) cost[k] = std::min(1000, cost[k] + cost[static_cast<size_t>(a)]);
  }
  for (int r = 0; r < an.n_rounds; ++r) {
    const std::vector<char> in = reach(r, nullptr);
    for (size_t k = 0; k < n; ++k) {
      if (in[k] != 1 || spec.instrs[k].dtype != DType::Float32) continue;
      if (first[k] < 0)
        first[k] = r;
      else
        again[k] = 1;
    }
  }
  for (size_t k = 0; k < n; ++k)
    if (again[k] && cost[k] > kCheap) kept_round[k] = first[k];
  std::vector<char> reloaded(n, 0);
  for (int r = 0; r < an.n_rounds; ++r) reach(r, &reloaded);
  for (size_t k = 0; k < n; ++k)
    if (!reloaded[k]) kept_round[k] = -1;
}

void RowProgram::find_loops() {
  choose_kept();
  loop.resize(static_cast<size_t>(an.n_rounds));
  for (int r = 0; r < an.n_rounds; ++r) {
    const std::vector<char> in = reach(r, nullptr);
    for (size_t k = 0; k < in.size(); ++k)
      if (in[k] == 1) loop[static_cast<size_t>(r)].push_back(static_cast<int>(k));
  }
}

bool RowProgram::make() {
  if (!suits()) return false;
  const size_t n = spec.instrs.size();
  row_axes = spec.n_axes() - 1;
  if (row_axes > 0 || spec.n_inner() > 0) length = spec.extent.back();
  if (!find_pointers()) return false;
  full.assign(n, 0);
  for (size_t k = 0; k < n; ++k) full[k] = an.span[k] == Span::Full;
  // Stores to memory that is also read come in the last round, after all that reads it.
  int last = 0;
  for (size_t k = 0; k < n; ++k)
    if (full[k] || spec.instrs[k].kind == InstrKind::Reduce) last = std::max(last, an.round[k]);
  for (const Store& s : spec.stores) {
    const Instr& v = spec.instrs[static_cast<size_t>(s.value)];
    const int ready = an.round[static_cast<size_t>(s.value)] + (v.kind == InstrKind::Reduce);
    last = std::max(last, ready);
  }
  for (const Store& s : spec.stores) {
    const Instr& v = spec.instrs[static_cast<size_t>(s.value)];
    const int ready = an.round[static_cast<size_t>(s.value)] + (v.kind == InstrKind::Reduce);
    store_round.push_back(spec.buffers[static_cast<size_t>(s.buffer)].may_alias ? last : ready);
  }
  row_needed.assign(n, 0);
  for (const Store& s : spec.stores) row_needed[static_cast<size_t>(s.value)] = 1;
  for (size_t k = n; k-- > 0;)
    if (row_needed[k])
      for (int a : spec.instrs[k].arg)
        if (a >= 0) row_needed[static_cast<size_t>(a)] = 1;
  find_loops();
  return true;
}

}  // namespace ingot::cpu
