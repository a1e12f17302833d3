// See emit/layout.h. The rewriting is exact: the same values are computed by the same operations.
#include "backend/cuda/emit/layout.h"

#include <algorithm>

namespace ingot::cuda {
namespace {

bool is_scalar(const Instr& in) { return in.kind == InstrKind::Const || in.kind == InstrKind::Arg; }

/// Does the map move along no axis in [begin, end)?
bool rests(const Affine& a, int begin, int end) {
  return std::all_of(a.stride.begin() + begin, a.stride.begin() + end,
                     [](int64_t s) { return s == 0; });
}

/// Does the instruction by itself, its operands apart, not change along the axes in [begin, end)?
bool rests(const Instr& in, int begin, int end) {
  bool mapped = in.kind == InstrKind::Load || in.kind == InstrKind::Index;
  if (mapped && !rests(in.map, begin, end)) return false;
  return std::all_of(in.bounds.begin(), in.bounds.end(),
                     [&](const Bound& b) { return rests(b.at, begin, end); });
}

/// Values that depend on no axis in [begin, end). What may raise an error or draws numbers is not
/// among them.
std::vector<bool> resting_values(const KernelSpec& k, int begin, int end) {
  std::vector<bool> rest(k.instrs.size());
  for (size_t i = 0; i < rest.size(); ++i) {
    const Instr& in = k.instrs[i];
    bool plain = in.kind != InstrKind::Random && in.kind != InstrKind::Reduce && in.indirect < 0;
    rest[i] = plain && rests(in, begin, end);
    for (int a : in.arg) rest[i] = rest[i] && (a < 0 || rest[a]);
  }
  return rest;
}

using Bounds = std::vector<Bound>;

Bounds common(const Bounds& a, const Bounds& b) {
  Bounds both;
  for (const Bound& x : a)
    if (std::find(b.begin(), b.end(), x) != b.end()) both.push_back(x);
  return both;
}

/// For each value, bounds that hold wherever anything sees it: it is picked by a Where that asks
/// for them.
std::vector<Bounds> seen_within(const KernelSpec& k) {
  size_t n = k.instrs.size();
  std::vector<Bounds> within(n);
  std::vector<bool> seen(n);
  auto see = [&](int i, const Bounds& b) {
    within[i] = seen[i] ? common(within[i], b) : b;
    seen[i] = true;
  };
  for (const Store& s : k.stores) see(s.value, {});
  for (size_t i = n; i-- > 0;) {
    const Instr& in = k.instrs[i];
    Bounds here = in.kind == InstrKind::Compute ? within[i] : Bounds{};
    for (int a = 0; a < 3; ++a) {
      if (in.arg[a] < 0) continue;
      Bounds b = here;
      bool picks = in.kind == InstrKind::Compute && in.op == Op::Where && a == 1;
      if (picks && k.instrs[in.arg[0]].kind == InstrKind::InBounds)
        b.insert(b.end(), k.instrs[in.arg[0]].bounds.begin(), k.instrs[in.arg[0]].bounds.end());
      see(in.arg[a], b);
    }
    if (in.indirect >= 0) see(in.indirect, {});
  }
  return within;
}

bool inside_buffer(const KernelSpec& k, const Instr& load) {
  int64_t low = load.map.offset, high = low;
  for (int x = 0; x < k.n_axes(); ++x)
    (load.map.stride[x] < 0 ? low : high) += load.map.stride[x] * (k.extent[x] - 1);
  return low >= 0 && high < k.buffers[load.buffer].numel;
}

/// Loads that may be done everywhere: nothing sees what they bring where their bounds fail, and
/// there is memory. Only those that this frees from the inner axes: others are better not done.
std::vector<bool> free_loads(const KernelSpec& k) {
  std::vector<bool> list(k.instrs.size());
  if (k.n_inner() == 0) return list;
  std::vector<Bounds> within = seen_within(k);
  for (size_t i = 0; i < list.size(); ++i) {
    const Instr& in = k.instrs[i];
    bool bound = in.kind == InstrKind::Load && in.indirect < 0 && !in.bounds.empty();
    if (!bound || !rests(in.map, k.n_outer, k.n_axes()) || !inside_buffer(k, in)) continue;
    list[i] = common(in.bounds, within[i]).size() == in.bounds.size();
  }
  return list;
}

/// Values that depend on the last axis alone, each of which a thread of a plain map would load or
/// compute again for every point.
int column_values(const KernelSpec& k) {
  std::vector<bool> rest = resting_values(k, 0, k.n_outer - 1);
  int count = 0;
  for (size_t i = 0; i < rest.size(); ++i) count += rest[i] && !is_scalar(k.instrs[i]);
  return count;
}

template <class T>
void last_to_front(std::vector<T>& list) {
  std::rotate(list.begin(), list.end() - 1, list.end());
}

/// (rows.., columns) becomes (columns | rows..).
void put_columns_first(KernelSpec& k) {
  last_to_front(k.extent);
  k.n_outer = 1;
  for (Instr& in : k.instrs) {
    if (!in.map.stride.empty()) last_to_front(in.map.stride);
    for (Bound& b : in.bounds) last_to_front(b.at.stride);
  }
  for (Store& s : k.stores) last_to_front(s.map.stride);
}

/// Values that do not change along the inner axes are computed once per outer point. What is stored
/// per element stays where it is.
void hoist(KernelSpec& k) {
  std::vector<bool> rest = resting_values(k, k.n_outer, k.n_axes());
  for (const Store& s : k.stores)
    if (k.instrs[s.value].level == Level::Elem) rest[s.value] = false;
  for (size_t i = 0; i < rest.size(); ++i) {  // an Outer value has Outer operands
    for (int a : k.instrs[i].arg)
      rest[i] = rest[i] && (a < 0 || rest[a] || k.instrs[a].level == Level::Outer);
    if (rest[i]) k.instrs[i].level = Level::Outer;
  }
}

}  // namespace

Layout choose_layout(std::span<const KernelSpec> parts, const CudaTarget& target) {
  const KernelSpec& k = parts[0];
  Layout l;
  l.free_loads = free_loads(k);
  for (const KernelSpec& p : parts.subspan(1)) {
    std::vector<bool> more = free_loads(p);
    for (size_t i = 0; i < more.size(); ++i) l.free_loads[i] = l.free_loads[i] && more[i];
  }
  // A column's values are worth a sweep when there are some and every thread has many rows.
  constexpr int kFewest = 3;
  if (parts.size() > 1 || k.n_inner() > 0 || k.n_outer < 2 || k.has_reduce() ||
      column_values(k) < kFewest)
    return l;
  Schedule map = choose_schedule(parts, target);
  int64_t groups = k.outer_size() / map.lanes;
  l.columns = map.mode == Mode::Map && map.lanes > 1 && !map.wide &&
              groups >= int64_t{16} * 256 * target.multiprocessors;
  return l;
}

bool Layout::plain() const {
  return !columns && std::none_of(free_loads.begin(), free_loads.end(), [](bool x) { return x; });
}

KernelSpec lay_out(const KernelSpec& part, const Layout& layout) {
  KernelSpec k = part;
  for (size_t i = 0; i < k.instrs.size(); ++i)
    if (layout.free_loads[i]) k.instrs[i].bounds.clear();
  if (layout.columns) put_columns_first(k);
  hoist(k);
  return k;
}

}  // namespace ingot::cuda
