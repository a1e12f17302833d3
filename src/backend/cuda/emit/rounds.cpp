// Which values of a kernel are computed before, between and after its reductions, which are kept
// from one round to the next, and which do not change along the lanes of a thread. All of it
// follows from the structure alone.
//
// Tricky: what is kept should be the smallest cut. A value that is cheap to compute again from kept
// values, a cast of something narrower, or a load that all rows share (a norm's weight) is computed
// or loaded again instead.
#include <algorithm>

#include "backend/cuda/emit/schedule.h"

namespace ingot::cuda {
namespace {

bool is_scalar(const Instr& in) { return in.kind == InstrKind::Const || in.kind == InstrKind::Arg; }

bool is_cheap(const Instr& in) {
  if (in.kind == InstrKind::Index || in.kind == InstrKind::InBounds) return true;
  if (in.kind != InstrKind::Compute) return false;
  switch (in.op) {
    case Op::Cast:
    case Op::Where:
    case Op::Neg:
    case Op::Abs:
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Maximum:
    case Op::Minimum:
    case Op::Relu:
    case Op::Eq:
    case Op::Ne:
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
    case Op::LogicalNot:
      return true;
    default:
      return false;
  }
}

/// A load that every outer point shares: it comes from a cache the second time.
bool is_shared_load(const KernelSpec& k, const Instr& in) {
  if (in.kind != InstrKind::Load || in.indirect >= 0 || k.n_outer == 0) return false;
  return std::all_of(in.map.stride.begin(), in.map.stride.begin() + k.n_outer,
                     [](int64_t s) { return s == 0; });
}

/// Elem values that a round needs, down to its loads or to values kept from earlier rounds.
void mark(const KernelSpec& k, int root, const std::vector<bool>& kept, std::vector<bool>& need) {
  std::vector<int> stack{root};
  while (!stack.empty()) {
    int i = stack.back();
    stack.pop_back();
    const Instr& in = k.instrs[i];
    if (need[i] || is_scalar(in) || in.level == Level::Outer) continue;
    need[i] = true;
    if (kept[i]) continue;
    for_each_operand(in, [&](int a) { stack.push_back(a); });
  }
}

/// What each round needs when the values in `held` are kept from the round they first appear in.
std::vector<std::vector<bool>> needs(const KernelSpec& k, const Rounds& r,
                                     const std::vector<bool>& held, const std::vector<int>& first) {
  size_t n = k.instrs.size();
  std::vector<std::vector<bool>> need(r.last + 1, std::vector<bool>(n));
  for (int b = 0; b <= r.last; ++b) {
    std::vector<bool> kept(n);
    for (size_t i = 0; i < n; ++i) kept[i] = held[i] && first[i] < b;
    for (size_t i = 0; i < n; ++i)
      if (k.instrs[i].kind == InstrKind::Reduce && r.round[i] == b + 1)
        mark(k, k.instrs[i].arg[0], kept, need[b]);
    for (const Store& s : k.stores)
      if (k.instrs[s.value].level == Level::Elem &&
          (r.stores_last ? r.last : r.round[s.value]) == b)
        mark(k, s.value, kept, need[b]);
  }
  return need;
}

double words_of(DType t, bool packed) {
  return static_cast<double>(std::max<size_t>(size_of(t), packed ? 2 : 4)) / 4;
}

/// The values whose consumers first appear in a later round than they do.
std::vector<bool> crossing(const KernelSpec& k, const std::vector<int>& first) {
  std::vector<bool> cross(k.instrs.size());
  for (size_t c = 0; c < k.instrs.size(); ++c) {
    if (first[c] < 0 && k.instrs[c].kind != InstrKind::Reduce) continue;
    int at = k.instrs[c].kind == InstrKind::Reduce ? -1 : first[c];
    for_each_operand(k.instrs[c], [&](int a) {
      if (first[a] >= 0 && first[a] < at) cross[a] = true;
    });
  }
  return cross;
}

/// Replaces values by what they are cheaply computed from.
void shrink(const KernelSpec& k, std::vector<bool>& held) {
  for (int i = static_cast<int>(k.instrs.size()) - 1; i >= 0;
       --i) {  // casts: keep the narrower side
    const Instr& in = k.instrs[i];
    if (!held[i] || in.kind != InstrKind::Compute || in.op != Op::Cast) continue;
    const Instr& from = k.instrs[in.arg[0]];
    if (from.level == Level::Outer || is_scalar(from) || size_of(from.dtype) > size_of(in.dtype))
      continue;
    held[i] = false;
    held[in.arg[0]] = true;
  }
  std::vector<bool> at_hand(k.instrs.size());  // kept, or cheap to have again
  for (size_t i = 0; i < k.instrs.size(); ++i) {
    const Instr& in = k.instrs[i];
    bool free = is_scalar(in) || in.level == Level::Outer || is_shared_load(k, in);
    if (is_cheap(in)) {
      free = true;
      for_each_operand(in, [&](int a) { free = free && at_hand[a]; });
    }
    if (free) held[i] = false;
    at_hand[i] = free || held[i];
  }
}

/// The most that is kept at any boundary between rounds.
double peak_words(const KernelSpec& k, const Rounds& r, const std::vector<int>& first,
                  bool packed) {
  auto need = needs(k, r, r.held, first);
  double peak = 0;
  for (int b = 0; b < r.last; ++b) {
    double words = 0;
    for (size_t i = 0; i < k.instrs.size(); ++i) {
      if (!r.held[i] || first[i] > b) continue;
      bool later = false;
      for (int n = b + 1; n <= r.last; ++n) later = later || need[n][i];
      if (later) words += words_of(k.instrs[i].dtype, packed);
    }
    peak = std::max(peak, words);
  }
  return peak;
}

/// Only what comes from memory (or from the random generator) and is needed again: all else is
/// computed again.
std::vector<bool> sources_only(const KernelSpec& k, const std::vector<std::vector<bool>>& need) {
  std::vector<bool> held(k.instrs.size());
  for (size_t i = 0; i < held.size(); ++i) {
    const Instr& in = k.instrs[i];
    bool source =
        (in.kind == InstrKind::Load && !is_shared_load(k, in)) || in.kind == InstrKind::Random;
    int rounds = 0;
    for (const auto& n : need) rounds += n[i];
    held[i] = source && rounds > 1;
  }
  return held;
}

}  // namespace

Rounds find_rounds(const KernelSpec& k, bool keep_sources) {
  size_t n = k.instrs.size();
  Rounds r;
  r.round.assign(n, 0);
  for (size_t i = 0; i < n; ++i) {
    for_each_operand(k.instrs[i], [&](int a) { r.round[i] = std::max(r.round[i], r.round[a]); });
    if (k.instrs[i].kind != InstrKind::Reduce) continue;
    r.last = std::max(r.last, r.round[i]);
    ++r.round[i];
  }
  for (const Store& s : k.stores)
    if (k.instrs[s.value].level == Level::Elem) r.last = std::max(r.last, r.round[s.value]);

  r.stores_last = std::any_of(k.buffers.begin(), k.buffers.end(),
                              [](const BufferSpec& b) { return b.may_alias; });
  std::vector<int> first(n, -1);
  auto need = needs(k, r, std::vector<bool>(n), first);
  for (int b = r.last; b >= 0; --b)
    for (size_t i = 0; i < n; ++i)
      if (need[b][i]) first[i] = b;
  if (keep_sources) {
    r.held = sources_only(k, need);
  } else {
    r.held = crossing(k, first);
    shrink(k, r.held);
  }
  r.held_words = peak_words(k, r, first, false);
  r.packed_words = peak_words(k, r, first, true);
  return r;
}

KernelSpec at_single_index(const KernelSpec& k, const SingleIndex& single) {
  KernelSpec one = k;
  one.instrs[static_cast<size_t>(single.index)].ivalue = k.extent[static_cast<size_t>(single.axis)];
  one.extent[static_cast<size_t>(single.axis)] = 1;
  return one;
}

int lane_axis(const KernelSpec& k, Mode mode) {
  if (mode == Mode::Row) return k.n_inner() > 0 ? k.n_axes() - 1 : -1;
  return k.n_outer - 1;
}

std::vector<bool> lane_uniform(const KernelSpec& k, Mode mode) {
  int axis = lane_axis(k, mode);
  auto fixed = [&](const Affine& a) { return axis < 0 || a.stride[axis] == 0; };
  std::vector<bool> uniform(k.instrs.size(), true);
  for (size_t i = 0; i < k.instrs.size(); ++i) {
    const Instr& in = k.instrs[i];
    bool u = true;
    if (in.kind == InstrKind::Load || in.kind == InstrKind::Index || in.kind == InstrKind::Random)
      u = fixed(in.map);
    for (const Bound& b : in.bounds) u = u && fixed(b.at);
    for_each_operand(in, [&](int a) { u = u && uniform[a]; });
    if (mode == Mode::Row && in.level == Level::Outer) u = true;
    uniform[i] = u;
  }
  return uniform;
}

}  // namespace ingot::cuda
