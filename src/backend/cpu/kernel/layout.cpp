// See layout.h.
#include "backend/cpu/kernel/layout.h"

#include <algorithm>

#include "backend/cpu/jit/column_code.h"

namespace ingot::cpu {

namespace {
constexpr int64_t kTile = 1024;       // elements of a Map tile
constexpr int64_t kRowTile = 8192;    // a row up to this long is one tile, so nothing is done twice
constexpr int64_t kWideRow = 256;     // rows from here on are done one by one, with scalar operands
constexpr int64_t kPanel = 64 << 10;  // elements of a block of columns kept between rounds
constexpr int64_t kSplitWork = 32 << 10;
constexpr int64_t kMaxSplitTasks = 64;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Tile extents of the positions [lo, hi), last first, until `budget` elements are reached. Returns
/// their product.
int64_t take(Plan& p, int lo, int hi, int64_t budget) {
  int64_t product = 1;
  bool open = true;
  for (int k = hi - 1; k >= lo; --k) {
    p.tile[k] = open ? std::max<int64_t>(1, std::min(p.extent[k], budget / product)) : 1;
    if (p.tile[k] < p.extent[k]) {
      open = false;
      // Pieces of equal size, a multiple of a cache line where that is possible.
      const int64_t pieces = ceil_div(p.extent[k], p.tile[k]);
      int64_t even = ceil_div(p.extent[k], pieces);
      if (even > 64) even = std::min(p.tile[k], ceil_div(even, 64) * 64);
      p.tile[k] = even;
    }
    product *= p.tile[k];
  }
  return product;
}
}  // namespace

void Analysis::run() {
  choose_order();
  classify();
  find_rounds();
  choose_tiles();
  choose_split();
  place_rounds();
}

Access Analysis::access(const Affine& m) const {
  Access a;
  a.offset = m.offset;
  for (int k = 0; k < plan.n_axes; ++k) a.stride[k] = m.stride[order[k]];
  return a;
}

void Analysis::choose_order() {
  const int n = spec.n_axes(), no = spec.n_outer;
  // An operand's vote counts by its elements: a vector of row statistics must not decide
  // how a matrix is traversed.
  double along_outer = 0, along_inner = 0;
  auto vote = [&](const Affine& m) {
    double elements = 1;
    for (int a = 0; a < n; ++a)
      if (m.stride[a] != 0) elements *= static_cast<double>(spec.extent[a]);
    for (int a = n - 1; a >= 0; --a)
      if (m.stride[a] == 1) {
        (a < no ? along_outer : along_inner) += elements;
        return;
      }
  };
  for (const Instr& i : spec.instrs)
    if (i.kind == InstrKind::Load && i.level == Level::Elem && i.indirect < 0) vote(i.map);
  for (const Store& s : spec.stores)
    if (spec.instrs[s.value].level == Level::Elem) vote(s.map);
  plan.by_columns = no > 0 && no < n && along_outer > along_inner;
  plan.n_axes = n;
  order.clear();
  if (plan.by_columns)
    for (int a = no; a < n; ++a) order.push_back(a);
  for (int a = 0; a < no; ++a) order.push_back(a);
  if (!plan.by_columns)
    for (int a = no; a < n; ++a) order.push_back(a);
  plan.outer_lo = plan.by_columns ? n - no : 0;
  plan.outer_hi = plan.outer_lo + no;
  plan.inner_lo = plan.by_columns ? 0 : no;
  plan.inner_hi = plan.inner_lo + (n - no);
  for (int k = 0; k < n; ++k) plan.extent[k] = spec.extent[order[k]];
}

// ---- Spans

void Analysis::classify() {
  const int n = spec.n_axes();
  auto mask_of = [&](const Affine& m) {
    uint32_t mask = 0;
    for (int a = 0; a < n; ++a)
      if (m.stride[a]) mask |= 1u << a;
    return mask;
  };
  const uint32_t outer_mask = (1u << spec.n_outer) - 1;
  auto leaf = [&](uint32_t mask, Level level) {
    if (mask == 0) return Span::Uniform;
    if (level == Level::Outer || (spec.n_outer < n && !(mask & ~outer_mask))) return Span::Outer;
    return mask & (1u << order[n - 1]) ? Span::Full : Span::Inv;
  };
  auto join = [](Span a, Span b) {
    if (a == Span::Uniform) return b;
    if (b == Span::Uniform || a == b) return a;
    return Span::Full;
  };
  span.resize(spec.instrs.size());
  uses.assign(spec.instrs.size(), 0);
  for (size_t k = 0; k < spec.instrs.size(); ++k) {
    const Instr& i = spec.instrs[k];
    Span s = Span::Uniform;
    switch (i.kind) {
      case InstrKind::Const:
      case InstrKind::Arg:
        break;
      case InstrKind::Reduce:
        s = Span::Outer;
        break;
      case InstrKind::Compute:
        for (int a : i.arg)
          if (a >= 0) s = join(s, span[a]);
        break;
      default: {
        uint32_t mask = i.kind == InstrKind::InBounds ? 0 : mask_of(i.map);
        for (const Bound& b : i.bounds) mask |= mask_of(b.at);
        s = leaf(mask, i.level);
        if (i.indirect >= 0) s = join(s, span[i.indirect]);
      }
    }
    span[k] = s;
    for (int a : i.arg)
      if (a >= 0) ++uses[a];
    if (i.indirect >= 0) ++uses[i.indirect];
  }
  for (const Store& s : spec.stores) ++uses[s.value];
}

// ---- Tiles

void Analysis::choose_tiles() {
  Plan& p = plan;
  const int n = p.n_axes;
  p.work = 1;
  for (int k = 0; k < n; ++k) p.work *= p.extent[k];
  p.inner_size = spec.inner_size();
  const bool rowish = elem_rounds() > 1;
  if (spec.n_outer == n) {  // Map
    const int last = n - 1;
    int across = -1;  // another axis along which some memory is dense
    auto look = [&](const Affine& m) {
      if (last < 0 || m.stride[order[last]] == 0 || m.stride[order[last]] == 1) return;
      for (int k = 0; k < last; ++k)
        if (m.stride[order[k]] == 1 && p.extent[k] >= 4) across = k;
    };
    for (const Instr& i : spec.instrs)
      if (i.kind == InstrKind::Load && i.indirect < 0) look(i.map);
    for (const Store& s : spec.stores) look(s.map);
    if (across >= 0 && p.extent[last] >= 4) {
      for (int k = 0; k < n; ++k) p.tile[k] = 1;
      p.tile[last] = std::min<int64_t>(p.extent[last], 64);
      p.tile[across] = std::min<int64_t>(p.extent[across], 64);
      if (p.tile[last] < 32)
        p.tile[across] = std::min<int64_t>(p.extent[across], 2048 / p.tile[last]);
      if (p.tile[across] < 32)
        p.tile[last] = std::min<int64_t>(p.extent[last], 2048 / p.tile[across]);
    } else {
      int lo = 0;
      bool gathers = false;  // several rows per tile, so that the next can be prefetched
      for (const Instr& i : spec.instrs) gathers |= i.indirect >= 0;
      if (n > 0 && p.extent[last] >= kWideRow && !gathers) {
        lo = last;  // broadcast operands of whole rows then need no copies
        for (int k = 0; k < last; ++k) p.tile[k] = 1;
      }
      take(p, lo, n, gathers ? 4 * kTile : kTile);
    }
  } else if (p.by_columns) {
    if (suits_column_code(*this)) {  // long runs of columns, and rows enough to pay for a visit
      take(p, p.outer_lo, p.outer_hi, 2 * kTile);
      take(p, p.inner_lo, p.inner_hi, std::clamp<int64_t>(p.inner_size / 32 / 8 * 8, 64, 256));
    } else {
      int64_t r = kTile;
      const bool direct = !rowish && only_sums_of_memory();
      if (direct) r = 2 * kTile;
      if (rowish) r = std::max<int64_t>(16, std::min<int64_t>(256, kPanel / p.inner_size));
      const int64_t R = take(p, p.outer_lo, p.outer_hi, r);
      take(p, p.inner_lo, p.inner_hi,
           direct ? std::max<int64_t>(8, kTile / R) : std::max<int64_t>(1, kTile / R));
    }
  } else {
    // Sums read memory in place: the longer the run, the better hardware prefetchers work.
    const int64_t c = p.inner_size <= kRowTile && rowish ? kRowTile
                      : !rowish && only_sums_of_memory() ? 16 * kTile
                                                         : kTile;
    const int64_t C = take(p, p.inner_lo, p.inner_hi, c);
    const int64_t r = C == p.inner_size && C < kWideRow ? kTile / C : 1;
    take(p, p.outer_lo, p.outer_hi, r);
  }
  p.R = p.C = p.boxes = p.inner_tiles = 1;
  for (int k = 0; k < n; ++k) {
    p.tiles[k] = ceil_div(p.extent[k], p.tile[k]);
    const bool outer = k >= p.outer_lo && k < p.outer_hi;
    (outer ? p.R : p.C) *= p.tile[k];
    (outer ? p.boxes : p.inner_tiles) *= p.tiles[k];
  }
}

bool Analysis::plain_load(int k) const {
  const Instr& i = spec.instrs[k];
  return i.kind == InstrKind::Load && i.bounds.empty() && i.indirect < 0 && !is_half(i.dtype) &&
         span[k] == Span::Full;
}

/// A Reduce kernel that reads memory and reduces it, with nothing between and nothing stored per
/// element.
bool Analysis::only_sums_of_memory() const {
  for (size_t k = 0; k < spec.instrs.size(); ++k) {
    if (spec.instrs[k].kind == InstrKind::Reduce && !plain_load(spec.instrs[k].arg[0]))
      return false;
    if (span[k] == Span::Full && !plain_load(static_cast<int>(k))) return false;
  }
  for (const Store& s : spec.stores)
    if (spec.instrs[s.value].level == Level::Elem) return false;
  return true;
}

int64_t Analysis::pitch(int k) const {
  if (!plan.by_columns || !plain_load(k)) return 0;
  const Access at = access(spec.instrs[k].map);
  int64_t pitch = 0;
  for (int q = plan.inner_lo; q < plan.inner_hi; ++q)
    if (plan.tile[q] > 1) {
      if (pitch) return 0;  // several axes
      pitch = at.stride[q];
    }
  return pitch > 0 && dense(at, Span::Outer) ? pitch : 0;
}

void Analysis::choose_split() {
  Plan& p = plan;
  p.tiles_per_split = p.inner_tiles;
  if (!spec.has_reduce() || p.boxes >= 16 || p.inner_tiles < 4 || p.work < 2 * kSplitWork) return;
  const int64_t want =
      std::min({kMaxSplitTasks / p.boxes, p.work / p.boxes * p.boxes / kSplitWork, p.inner_tiles});
  if (want < 2) return;
  p.tiles_per_split = ceil_div(p.inner_tiles, want);
  p.splits = ceil_div(p.inner_tiles, p.tiles_per_split);
}

void Analysis::positions(Span s, int& lo, int& hi) const {
  lo = 0;
  hi = plan.n_axes;
  if (s == Span::Inv) --hi;
  if (s == Span::Uniform) hi = 0;
  if (s == Span::Outer) {
    lo = plan.outer_lo;
    hi = plan.outer_hi;
  }
}

bool Analysis::dense(const Access& at, Span s) const {
  int lo, hi;
  positions(s, lo, hi);
  int64_t product = 1;
  bool cut = false;  // a later axis is cut in pieces, the last of which may be shorter
  for (int k = hi - 1; k >= lo; --k) {
    if (plan.tile[k] == 1) continue;
    if (cut || at.stride[k] != product) return false;
    product *= plan.tile[k];
    cut = plan.tile[k] < plan.extent[k];
  }
  return true;
}

bool Analysis::sequential(const Access& at) const {
  if (plan.by_columns || plan.boxes * plan.inner_tiles == 1) return false;
  int64_t product = 1;
  for (int k = plan.n_axes - 1; k >= 0; --k) {
    if (at.stride[k] != product) return false;
    product *= plan.extent[k];
  }
  return true;
}

bool Analysis::is_scalar(Span s) const {
  int lo, hi;
  positions(s, lo, hi);
  for (int k = lo; k < hi; ++k)
    if (plan.tile[k] > 1) return false;
  return true;
}

// ---- Rounds

void Analysis::find_rounds() {
  round.assign(spec.instrs.size(), 0);
  n_rounds = 1;
  for (size_t k = 0; k < spec.instrs.size(); ++k) {
    const Instr& i = spec.instrs[k];
    auto from = [&](int a) {
      if (a < 0) return;
      const bool after = spec.instrs[a].kind == InstrKind::Reduce;
      round[k] = std::max(round[k], round[a] + (after ? 1 : 0));
    };
    for (int a : i.arg) from(a);
    from(i.indirect);
    n_rounds = std::max(n_rounds, round[k] + 1 + (i.kind == InstrKind::Reduce ? 1 : 0));
  }
}

int Analysis::elem_rounds() const {
  int last = 0;
  for (size_t k = 0; k < spec.instrs.size(); ++k)
    if (span[k] == Span::Full || span[k] == Span::Inv || spec.instrs[k].kind == InstrKind::Reduce)
      last = std::max(last, round[k]);
  for (const Store& s : spec.stores)
    if (spec.instrs[s.value].level == Level::Elem) last = std::max(last, round[s.value]);
  return last + 1;
}

bool Analysis::rebind(int k) const {
  const Instr& i = spec.instrs[k];
  return i.kind == InstrKind::Load && i.bounds.empty() && i.indirect < 0 && !is_half(i.dtype) &&
         dense(access(i.map), span[k]);
}

bool Analysis::alias_cast(int k) const {
  const Instr& i = spec.instrs[k];
  if (i.kind != InstrKind::Compute || i.op != Op::Cast) return false;
  const DType from = spec.instrs[i.arg[0]].dtype;
  return tile_type(from) == tile_type(i.dtype) && (!is_half(i.dtype) || from == i.dtype);
}

/// Values are computed as late as their first use allows. One needed in several rounds is kept,
/// unless it is just an address, or rounds are separate passes (split), where nothing is kept.
void Analysis::place_rounds() {
  const size_t n = spec.instrs.size();
  needed.assign(n, 0);
  computed.assign(n, 0);
  // A store to memory that is also read must come after the last read.
  int last_alias_load = 0;
  for (size_t k = 0; k < n; ++k)
    if (spec.instrs[k].kind == InstrKind::Load && spec.buffers[spec.instrs[k].buffer].may_alias)
      last_alias_load = elem_rounds() - 1;
  for (const Store& s : spec.stores) {
    const bool alias =
        spec.buffers[s.buffer].may_alias && spec.instrs[s.value].level == Level::Elem;
    const bool from_reduce = spec.instrs[s.value].kind == InstrKind::Reduce;
    store_round.push_back(
        std::max(round[s.value] + (from_reduce ? 1 : 0), alias ? last_alias_load : 0));
    needed[s.value] |= uint64_t{1} << store_round.back();
  }
  for (size_t k = n; k-- > 0;) {
    const Instr& i = spec.instrs[k];
    if (i.kind == InstrKind::Reduce) {
      if (needed[k]) computed[k] = uint64_t{1} << round[k];
    } else if (span[k] == Span::Full || span[k] == Span::Inv) {
      const bool again =
          plan.splits > 1 || alias_cast(static_cast<int>(k)) ||
          (plan.inner_tiles > 1 && (span[k] == Span::Inv || rebind(static_cast<int>(k))));
      computed[k] = again ? needed[k] : needed[k] & (~needed[k] + 1);
    } else if (needed[k]) {
      computed[k] = uint64_t{1} << round[k];  // Outer values stay for all later rounds
    }
    for (int a : i.arg)
      if (a >= 0) needed[a] |= computed[k];
    if (i.indirect >= 0) needed[i.indirect] |= computed[k];
  }
}

}  // namespace ingot::cpu
