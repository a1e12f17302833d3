// The choice of schedule, and the sizes that follow from it for each part.
//
// Everything here that reaches the text is a bucket: powers of two, or a short list. What is not a
// bucket (splits, chunks, blocks) is a number of the launch.
#include "backend/cuda/emit/schedule.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "backend/cuda/emit/values.h"

namespace ingot::cuda {
namespace {

constexpr size_t kStaticShared = 48 * 1024;  // what a kernel may declare

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t pow2_ceil(int64_t x) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(x, 1))));
}

/// A memory access: a Load or a Store.
struct Access {
  const Affine* map;
  DType dtype;
  Level level;
  const Instr* load;  // nullptr: a store
  double positions;   // distinct elements, about
};

std::vector<Access> accesses(const KernelSpec& k) {
  std::vector<Access> all;
  auto positions = [&](const Affine& a) {
    double n = 1;
    for (int x = 0; x < k.n_axes(); ++x)
      if (a.stride[x] != 0) n *= static_cast<double>(k.extent[x]);
    return n;
  };
  for (const Instr& in : k.instrs)
    if (in.kind == InstrKind::Load)
      all.push_back({&in.map, k.buffers[in.buffer].dtype, in.level, &in, positions(in.map)});
  for (const Store& s : k.stores)
    all.push_back(
        {&s.map, k.buffers[s.buffer].dtype, k.instrs[s.value].level, nullptr, positions(s.map)});
  return all;
}

/// Bytes whose unit stride is along the given axis.
double unit_bytes(std::span<const KernelSpec> parts, int axis) {
  double sum = 0;
  if (axis < 0) return 0;
  for (const KernelSpec& k : parts)
    for (const Access& a : accesses(k))
      if (a.level == Level::Elem && std::abs(a.map->stride[axis]) == 1)
        sum += a.positions * static_cast<double>(size_of(a.dtype));
  return sum;
}

int64_t power_of_two_in(int64_t x, int limit) {
  int64_t p = limit;
  while (p > 1 && x % p != 0) p /= 2;
  return p;
}

/// How many of `lanes` consecutive elements one access can take: the alignment that all numbers
/// share.
int width_of(const KernelSpec& k, const Affine& map, const Instr* load, int axis, int lanes,
             const std::vector<bool>& uniform) {
  if (axis < 0 || map.stride[axis] != 1) return 1;
  int64_t w = power_of_two_in(map.offset, lanes);
  for (int x = 0; x < k.n_axes(); ++x)
    if (x != axis) w = std::min(w, power_of_two_in(map.stride[x], lanes));
  if (load == nullptr) return static_cast<int>(w);
  for (const Bound& b : load->bounds) {
    if (b.at.stride[axis] == 0) continue;
    // A group that is completely inside or completely outside (a piece of a concatenation) can
    // still be one access.
    bool whole = b.at.stride[axis] == 1 && b.at.offset % lanes == 0 && b.extent % lanes == 0;
    for (int x = 0; x < k.n_axes(); ++x)
      whole = whole && (x == axis || b.at.stride[x] % lanes == 0);
    if (!whole || w < lanes) return 1;
  }
  if (load->indirect >= 0) {
    if (!uniform[load->indirect]) return 1;
    w = std::min(w, power_of_two_in(load->indirect_stride, lanes));
  }
  return static_cast<int>(w);
}

bool lanes_fit(std::span<const KernelSpec> parts, Mode mode, int lanes) {
  for (const KernelSpec& k : parts) {
    int axis = lane_axis(k, mode);
    if (axis < 0) return false;
    bool ragged = k.extent[axis] % lanes != 0 && k.extent[axis] < 8 * lanes;
    if (ragged && (parts.size() == 1 || k.n_axes() > 1)) return false;
    double most = 0;
    auto all = accesses(k);
    for (const Access& a : all) most = std::max(most, a.positions);
    auto uniform = lane_uniform(k, mode);
    bool any = false;
    for (const Access& a : all) {
      if (a.map->stride[axis] != 1 || a.positions * 2 < most) continue;
      if (width_of(k, *a.map, a.load, axis, lanes, uniform) < lanes) return false;
      any = true;
    }
    if (!any) return false;
  }
  return true;
}

/// Loads of about as many elements as the largest access has.
int large_loads(const KernelSpec& k) {
  double largest = 0;
  for (const Access& a : accesses(k)) largest = std::max(largest, a.positions);
  int count = 0;
  for (const Access& a : accesses(k)) count += a.load != nullptr && a.positions * 2 >= largest;
  return count;
}

int choose_lanes(std::span<const KernelSpec> parts, Mode mode) {
  const KernelSpec& k = parts[0];
  int axis = lane_axis(k, mode);
  if (axis < 0) return 1;
  // Sixteen bytes of the widest large operand: more per thread would leave gaps between the threads
  // of a warp.
  double largest = 0;
  size_t widest = 1;
  for (const Access& a : accesses(k)) largest = std::max(largest, a.positions);
  for (const Access& a : accesses(k))
    if (a.map->stride[axis] == 1 && a.positions * 2 >= largest)
      widest = std::max(widest, size_of(a.dtype));
  // A column with several operands has enough under way with four lanes, and needs its registers
  // elsewhere.
  bool few = k.instrs.size() > 80 || (mode == Mode::Column && k.has_reduce() && large_loads(k) > 1);
  int most = static_cast<int>(std::clamp<size_t>(16 / widest, 1, few ? 4 : 8));
  for (int v = most; v > 1; v /= 2)
    if (lanes_fit(parts, mode, v)) return v;
  return 1;
}

/// Where the rows of an access begin, modulo the lanes: equal signatures are aligned together.
std::vector<int64_t> row_signature(const KernelSpec& k, const Affine& a, int lanes) {
  std::vector<int64_t> sig{a.offset & (lanes - 1)};
  for (int x = 0; x < k.n_outer; ++x) sig.push_back(a.stride[x] & (lanes - 1));
  return sig;
}

/// Rows of odd length: lanes are possible when the large accesses begin at the same address modulo
/// the lanes.
bool try_shifted_lanes(std::span<const KernelSpec> parts, Schedule& s) {
  if (parts.size() != 1 || parts[0].n_inner() != 1) return false;
  const KernelSpec& k = parts[0];
  int axis = k.n_axes() - 1;
  auto all = accesses(k);
  double most = 0;
  size_t narrowest = 16;
  for (const Access& a : all) most = std::max(most, a.positions);
  auto heavy = [&](const Affine& m, double positions) {
    return m.stride[axis] == 1 && positions * 2 >= most;
  };
  for (const Access& a : all)
    if (heavy(*a.map, a.positions)) narrowest = std::min(narrowest, size_of(a.dtype));
  int lanes = static_cast<int>(std::clamp<size_t>(16 / narrowest, 1, 8));
  if (lanes == 1 || k.extent[axis] < 16 * lanes) return false;
  const Affine* first = nullptr;
  for (const Access& a : all) {
    if (!heavy(*a.map, a.positions)) continue;
    bool plain = a.load == nullptr || (a.load->indirect < 0 && a.load->bounds.empty());
    if (first == nullptr) first = a.map;
    if (!plain || row_signature(k, *a.map, lanes) != row_signature(k, *first, lanes)) return false;
  }
  if (first == nullptr) return false;
  s.lanes = lanes;
  s.shifted = s.tail = true;
  auto sig = row_signature(k, *first, lanes);
  auto width = [&](const Affine& m) {
    return m.stride[axis] == 1 && row_signature(k, m, lanes) == sig ? lanes : 1;
  };
  s.load_width.assign(k.instrs.size(), 1);
  s.store_width.assign(k.stores.size(), 1);
  for (size_t i = 0; i < k.instrs.size(); ++i) {
    const Instr& in = k.instrs[i];
    if (in.kind != InstrKind::Load || in.indirect >= 0 || !in.bounds.empty()) continue;
    s.load_width[i] = width(in.map);
    if (&in.map == first) s.shift_load = static_cast<int>(i);
  }
  for (size_t i = 0; i < k.stores.size(); ++i) {
    s.store_width[i] = width(k.stores[i].map);
    if (&k.stores[i].map == first) s.shift_store = static_cast<int>(i);
  }
  return true;
}

void fill_widths(std::span<const KernelSpec> parts, Schedule& s) {
  const KernelSpec& first = parts[0];
  s.load_width.assign(first.instrs.size(), s.lanes);
  s.store_width.assign(first.stores.size(), s.lanes);
  s.tail = false;
  for (const KernelSpec& k : parts) {
    int axis = lane_axis(k, s.mode);
    auto uniform = lane_uniform(k, s.mode);
    if (axis >= 0 && k.extent[axis] % s.lanes != 0) s.tail = true;
    for (size_t i = 0; i < k.instrs.size(); ++i) {
      const Instr& in = k.instrs[i];
      bool mapped = in.kind == InstrKind::Load || in.kind == InstrKind::Random;
      if (mapped)
        s.load_width[i] =
            std::min(s.load_width[i], width_of(k, in.map, &in, axis, s.lanes, uniform));
    }
    for (size_t i = 0; i < k.stores.size(); ++i)
      s.store_width[i] =
          std::min(s.store_width[i], width_of(k, k.stores[i].map, nullptr, axis, s.lanes, uniform));
  }
  int axis = lane_axis(first, s.mode);
  for (size_t i = 0; i < first.instrs.size(); ++i)
    for (const Bound& b : first.instrs[i].bounds)
      if (axis >= 0 && b.at.stride[axis] != 0 && s.load_width[i] < s.lanes) s.load_width[i] = 1;
}

/// Largest absolute value that an affine map takes, and what an indirect load adds to it.
int64_t reach(const KernelSpec& k, const Affine& a, const Instr* load) {
  int64_t r = std::abs(a.offset);
  for (int x = 0; x < k.n_axes(); ++x) r += std::abs(a.stride[x]) * k.extent[x];
  if (load != nullptr && load->indirect >= 0)
    r += std::abs(load->indirect_stride) * load->indirect_extent;
  return r;
}

bool needs_wide(const KernelSpec& k) {
  if (k.outer_size() >= kNarrowLimit || k.inner_size() >= kNarrowLimit) return true;
  if (k.outer_size() * k.inner_size() >= (kNarrowLimit << 5)) return true;
  for (const Instr& in : k.instrs) {
    bool mapped =
        in.kind == InstrKind::Load || in.kind == InstrKind::Index || in.kind == InstrKind::Random;
    if (mapped && reach(k, in.map, &in) >= kNarrowLimit) return true;
    for (const Bound& b : in.bounds)
      if (reach(k, b.at, nullptr) >= kNarrowLimit || b.extent >= kNarrowLimit) return true;
  }
  for (const Store& st : k.stores)
    if (reach(k, st.map, nullptr) >= kNarrowLimit) return true;
  return false;
}

/// Static shared memory of a block whose columns are combined.
size_t column_bytes(const KernelSpec& k, const Schedule& s) {
  size_t widest = 0;
  for (const Instr& in : k.instrs)
    if (in.kind == InstrKind::Reduce) widest = std::max(widest, partial_bytes(k, in));
  return widest * static_cast<size_t>(s.lanes * s.threads());
}

/// The bucket at or above x.
int bucket(int64_t x) {
  for (int b : {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64})
    if (x <= b) return b;
  return 1 << 30;
}

struct Sizes {
  int64_t outer = 1,
          inner = 1;  // largest over the parts: outer points, lane groups along the inner axes
};

Sizes sizes_of(std::span<const KernelSpec> parts, const Schedule& s, const CudaTarget& target) {
  Sizes z;
  for (const KernelSpec& k : parts) {
    Geometry g = geometry(s, k, target);
    z.outer = std::max(z.outer, g.outer_groups);
    z.inner = std::max(z.inner, g.inner_groups);
  }
  return z;
}

/// Values of the columns that the rows use: they stay in registers.
int swept_values(const KernelSpec& k) {
  std::vector<bool> used(k.instrs.size());
  for (const Instr& in : k.instrs)
    for (int a : in.arg)
      if (a >= 0 && in.level == Level::Elem && k.instrs[a].level == Level::Outer) used[a] = true;
  int count = 0;
  for (size_t i = 0; i < used.size(); ++i)
    count += used[i] && k.instrs[i].kind != InstrKind::Const && k.instrs[i].kind != InstrKind::Arg;
  return count;
}

/// A window that one thread walks: as many of its positions in flight as divide it.
int window_groups(int64_t inner) {
  for (int g = 7; g > 1; --g)
    if (inner % g == 0) return g;
  return static_cast<int>(std::min<int64_t>(inner, 4));
}

/// What a thread keeps from position to position of a window.
int window_registers(const KernelSpec& k, int lanes) {
  int words = swept_values(k);
  for (const Instr& in : k.instrs)
    if (in.kind == InstrKind::Reduce)
      words += static_cast<int>(ceil_div(static_cast<int64_t>(register_bytes(in.dtype)), 4));
  return words * lanes;
}

/// Reduce without a later round: one pass over memory, any number of groups per thread.
void choose_reduce_team(std::span<const KernelSpec> parts, const CudaTarget& target, Schedule& s) {
  Sizes z = sizes_of(parts, s, target);
  if (s.mode == Mode::Column && z.inner <= 32 &&
      z.outer >= int64_t{1024} * target.multiprocessors) {
    s.side = 256;  // columns enough for all threads: none is shared
    s.groups = window_groups(z.inner);
    s.min_blocks =
        window_registers(parts[0], s.lanes) <= 48 && parts[0].instrs.size() <= 40 ? 4 : 0;
    return;
  }
  s.groups = 4;
  if (s.mode == Mode::Row) {
    int64_t team = std::clamp<int64_t>(pow2_ceil(ceil_div(z.inner, 4)),
                                       std::min<int64_t>(8, pow2_ceil(z.inner)), 256);
    s.team = static_cast<int>(team);
    s.side = 256 / s.team;
  } else {
    s.side = static_cast<int>(std::clamp<int64_t>(pow2_ceil(z.outer), 1, 32));
    s.team = 256 / s.side;
    while (s.team > 1 && s.team >= 2 * z.inner) {  // few rows: more columns instead
      s.team /= 2;
      s.side *= 2;
    }
  }
  if (ceil_div(z.inner, s.team) < 4) s.groups = bucket(ceil_div(z.inner, s.team));
  double blocks = 0;
  for (const KernelSpec& k : parts) blocks += static_cast<double>(geometry(s, k, target).blocks[0]);
  s.split = parts[0].has_reduce() && blocks < 2.0 * target.multiprocessors &&
            z.inner >= int64_t{s.team} * 16;
  if (!s.split) return;
  // No more blocks than this are launched (see geometry). Said aloud, or the compiler makes room
  // for more of them and loads one group after the other.
  s.min_blocks = 1024 / s.threads();
  bool few = z.outer <= 2 * target.multiprocessors;
  s.stage2_team = s.mode == Mode::Row ? (few ? 256 : 32) : (few ? 32 : 8);
  s.stage2_side = s.mode == Mode::Row ? 256 / s.stage2_team : 256 / s.stage2_team;
}

/// A map over columns and rows: a thread keeps what belongs to its columns and walks rows.
void choose_sweep(std::span<const KernelSpec> parts, const CudaTarget& target, Schedule& s) {
  const KernelSpec& k = parts[0];
  Sizes z = sizes_of(parts, s, target);
  s.sweep = true;
  s.side = static_cast<int>(std::min<int64_t>(pow2_ceil(z.outer), 32));
  while (s.side < 256 && z.outer % (2 * s.side) == 0)
    s.side *= 2;  // whole rows, where that is possible
  s.team = 256 / s.side;
  int loads = std::max(large_loads(k), 1);
  s.groups = loads == 1 ? 4 : loads <= 3 ? 2 : 1;
  int words = static_cast<int>(ceil_div(s.lanes * 4, 8));  // of a group that was loaded
  int registers = 32 + swept_values(k) * s.lanes + loads * s.groups * words;
  s.min_blocks = std::clamp(65536 / (256 * static_cast<int>(ceil_div(registers, 8) * 8)), 1, 4);
}

/// How many blocks a multiprocessor should hold: what the held words and a guess for the rest leave
/// room for.
int blocks_for_registers(const KernelSpec& k, const Schedule& s, double held) {
  double registers = held + 32;
  for (const Instr& in : k.instrs) {
    bool elem_load = in.kind == InstrKind::Load && in.level == Level::Elem;
    if (elem_load && k.n_outer > 0 &&
        std::all_of(in.map.stride.begin(), in.map.stride.begin() + k.n_outer,
                    [](int64_t x) { return x == 0; }))
      registers += s.lanes;  // shared by all rows: loaded beside what is held
  }
  auto rounded = static_cast<int>(ceil_div(static_cast<int64_t>(registers), 8) * 8);
  return std::clamp(65536 / (rounded * s.threads()), 1, 2048 / s.threads());
}

/// Rounds of reduce and broadcast: the row stays in registers if it fits, else in shared memory,
/// else is read again.
void choose_row_team(std::span<const KernelSpec> parts, const CudaTarget& target, Schedule& s) {
  Rounds rounds = find_rounds(parts[0]);
  Sizes z = sizes_of(parts, s, target);
  double words = std::max(rounds.held_words, 0.5) * s.lanes;  // per lane group
  double budget = 32;                                         // registers for what is held
  int most = s.mode == Mode::Row ? 1024 : 32;
  int64_t team = 1;
  if (s.mode == Mode::Row) {
    team = std::min<int64_t>(pow2_ceil(z.inner), 32);
    while (team<most&& static_cast<double>(ceil_div(z.inner, team)) * words> budget) team *= 2;
    s.team = static_cast<int>(team);
    s.side = std::max(1, 128 / s.team);
  } else {
    s.side = static_cast<int>(std::clamp<int64_t>(pow2_ceil(z.outer), 1, 32));
    while (team<most&& static_cast<double>(ceil_div(z.inner, team)) * words> budget / 4) team *= 2;
    s.team = static_cast<int>(team);
    if (s.team * s.side < 128)
      s.side = std::min<int>(128 / s.team, static_cast<int>(pow2_ceil(z.outer)));
    while (s.team > 1 && column_bytes(parts[0], s) > kStaticShared) s.team /= 2;
  }
  int groups = bucket(ceil_div(z.inner, s.team));
  double packed = std::max(rounds.packed_words, 0.5) * s.lanes;
  if (s.team == 1024) budget = 24;  // of 64 registers
  if (groups * packed <= budget && groups <= 32) {
    s.hold = Hold::Registers;
    s.packed = groups * words > budget;
    s.groups = groups;
    // One row is one block, whatever registers it takes.
    s.min_blocks = parts[0].n_outer == 0 ? 0 : blocks_for_registers(parts[0], s, groups * packed);
    // Rows of 32 bits out of memory: with fewer blocks to make room for, the compiler asks for a
    // whole row at once.
    if (s.streaming && s.mode == Mode::Row && s.lanes == 4 && !s.packed)
      s.min_blocks = std::min(s.min_blocks, 2);
    return;
  }
  s.groups = 4;
  s.team = std::min(s.team, 512);
  for (bool keep_sources : {false, true}) {
    s.keep_sources = keep_sources;
    s.hold = Hold::Shared;
    size_t bytes = shared_bytes(parts[0], s, z.inner) + 2048;
    if (s.mode != Mode::Row || s.side > 1 || bytes > target.shared_per_block) continue;
    s.groups = 2;  // few registers: what waits for the row of one block is covered by another
                   // block's arithmetic
    if (2 * bytes > target.shared_per_block)
      s.team = 1024;  // one block alone on its multiprocessor
    return;
  }
  s.hold = Hold::None;
  s.team = s.mode == Mode::Row ? 1024 : s.team;
}

/// Do the groups that a thread walks never pass the end? Rows of model dimensions usually fit.
bool is_exact(std::span<const KernelSpec> parts, const CudaTarget& target, const Schedule& s) {
  int64_t step = int64_t{s.team} * s.groups;
  for (const KernelSpec& k : parts) {
    int64_t n = geometry(s, k, target).inner_groups;
    if (s.hold == Hold::Registers ? n != step : n % step != 0) return false;
  }
  return true;
}

/// The axis that loads and stores of a Map are contiguous along when it is not the last one; -1: no
/// such axis.
int other_unit_axis(const KernelSpec& k) {
  int last = k.n_outer - 1;
  if (k.n_axes() < 2 || k.has_reduce() || k.n_inner() > 0) return -1;
  std::vector<double> bytes(k.n_axes());
  for (const Access& a : accesses(k)) {
    if (a.load != nullptr && a.load->indirect >= 0) continue;
    if (a.map->stride[last] == 0 || a.map->stride[last] == 1) continue;
    for (int x = 0; x < last; ++x)
      if (a.map->stride[x] == 1) bytes[x] += a.positions * static_cast<double>(size_of(a.dtype));
  }
  auto best = std::max_element(bytes.begin(), bytes.end());
  int axis = static_cast<int>(best - bytes.begin());
  if (*best == 0 || k.extent[axis] < 16 || k.extent[last] < 16) return -1;
  size_t shared = 0;
  for (const Access& a : accesses(k))
    if (is_staged(k, *a.map, a.load, axis))
      shared += size_of(a.dtype) <= 2 ? 64 * 65 * size_of(a.dtype) : 32 * 33 * size_of(a.dtype);
  return shared <= kStaticShared ? axis : -1;
}

/// Two lanes when all that is staged has elements of at most two bytes and pairs of them are
/// aligned along either axis.
int tile_lanes(std::span<const KernelSpec> parts, int tile) {
  for (const KernelSpec& k : parts) {
    int last = k.n_outer - 1;
    auto uniform = lane_uniform(k, Mode::Tile);
    if (k.extent[last] % 2 != 0 || k.extent[tile] % 2 != 0) return 1;
    for (const Access& a : accesses(k)) {
      if (a.map->stride[last] == 0) continue;
      bool staged = is_staged(k, *a.map, a.load, tile);
      if (a.load != nullptr && (!a.load->bounds.empty() || a.load->indirect >= 0)) return 1;
      if (size_of(a.dtype) > 2 || width_of(k, *a.map, a.load, staged ? tile : last, 2, uniform) < 2)
        return 1;
    }
  }
  return 2;
}

}  // namespace

bool is_staged(const KernelSpec& k, const Affine& map, const Instr* load, int tile_axis) {
  if (load != nullptr && load->indirect >= 0) return false;
  int64_t last = map.stride[k.n_outer - 1];
  return last != 1 && (last != 0 || load == nullptr) && map.stride[tile_axis] == 1;
}

size_t shared_bytes(const KernelSpec& k, const Schedule& s, int64_t inner_groups) {
  if (s.hold != Hold::Shared) return 0;
  Rounds rounds = find_rounds(k, s.keep_sources);
  auto uniform = lane_uniform(k, s.mode);
  size_t per_group = 0;
  for (size_t i = 0; i < rounds.held.size(); ++i)
    if (rounds.held[i])
      per_group += memory_bytes(k.instrs[i].dtype) * static_cast<size_t>(uniform[i] ? 1 : s.lanes);
  return per_group * static_cast<size_t>(ceil_div(inner_groups, 16) * 16);
}

size_t partial_bytes(const KernelSpec& k, const Instr& reduce) {
  if (reduce.op == Op::ArgMax || reduce.op == Op::ArgMin) return 16;
  (void)k;
  return register_bytes(reduce.dtype);
}

Schedule choose_schedule(std::span<const KernelSpec> parts, const CudaTarget& target) {
  const KernelSpec& k = parts[0];
  Schedule s;
  for (const KernelSpec& p : parts) s.wide = s.wide || needs_wide(p);
  double bytes = 0;
  for (const KernelSpec& p : parts)
    for (const BufferSpec& b : p.buffers)
      bytes += static_cast<double>(b.numel) * static_cast<double>(size_of(b.dtype));
  s.streaming = bytes > static_cast<double>(target.cache_bytes);

  int tile = other_unit_axis(k);
  for (const KernelSpec& p : parts)
    if (other_unit_axis(p) != tile) tile = -1;
  if (tile >= 0) {
    s.mode = Mode::Tile;
    s.tile_axis = tile;
    s.team = 8;
    s.side = 32;
    s.lanes = tile_lanes(parts, tile);
    s.groups = 4 * s.lanes;
    fill_widths(parts, s);
    return s;
  }
  if (k.n_inner() == 0 && !k.has_reduce()) {
    s.mode = Mode::Map;
    s.side = 256;
    s.lanes = choose_lanes(parts, s.mode);
    fill_widths(parts, s);
    return s;
  }
  double row = unit_bytes(parts, k.n_inner() > 0 ? k.n_axes() - 1 : -1),
         column = unit_bytes(parts, k.n_outer - 1);
  s.mode = column > row ? Mode::Column : Mode::Row;
  s.lanes = choose_lanes(parts, s.mode);
  fill_widths(parts, s);
  if (s.mode == Mode::Row && s.lanes == 1) try_shifted_lanes(parts, s);
  if (!k.has_reduce()) {
    choose_sweep(parts, target, s);
  } else if (find_rounds(k).last > 0) {
    choose_row_team(parts, target, s);
  } else {
    choose_reduce_team(parts, target, s);
  }
  s.exact = is_exact(parts, target, s);
  return s;
}

Geometry geometry(const Schedule& s, const KernelSpec& k, const CudaTarget& target) {
  Geometry g;
  g.outer = k.outer_size();
  int64_t inner = k.inner_size();
  int axis = lane_axis(k, s.mode);
  int64_t along = axis >= 0 ? k.extent[axis] : 1;
  g.lane_groups = ceil_div(along + (s.shifted ? s.lanes - 1 : 0), s.lanes);
  g.outer_groups = s.lanes_outer() ? g.outer / along * g.lane_groups : g.outer;
  g.inner_groups = s.lanes_outer() ? inner : inner / along * g.lane_groups;
  if (s.mode == Mode::Tile) {
    int64_t a = k.extent[k.n_outer - 1], b = k.extent[s.tile_axis];
    int64_t edge = int64_t{32} * s.lanes;
    g.column_blocks = ceil_div(a, edge) * ceil_div(b, edge);
    g.blocks[0] = g.column_blocks * (g.outer / a / b);
    return g;
  }
  g.column_blocks = ceil_div(g.outer_groups, s.side);
  g.chunk = g.inner_groups;
  if (s.in_chunks()) {
    // A reduction: as many as run at once. A sweep: four times as many, since the last ones end
    // apart.
    int64_t blocks = int64_t{4} * (s.sweep ? s.min_blocks : 1) * target.multiprocessors;
    int64_t wanted = ceil_div(blocks, g.column_blocks);
    int64_t most = std::max<int64_t>(g.inner_groups / (int64_t{s.team} * 4),
                                     1);  // at least four groups a thread
    g.chunk = ceil_div(g.inner_groups, std::min(wanted, most));
    int64_t step = int64_t{s.team} * s.groups;
    g.chunk = ceil_div(g.chunk, step) * step;
    g.splits = ceil_div(g.inner_groups, g.chunk);
  }
  if (s.split) {
    g.blocks[1] = ceil_div(g.outer, s.stage2_side);
    for (const Instr& in : k.instrs) {
      if (in.kind != InstrKind::Reduce) continue;
      g.scratch.push_back(g.scratch_bytes);
      int64_t bytes = g.outer * g.splits * static_cast<int64_t>(partial_bytes(k, in));
      g.scratch_bytes += ceil_div(bytes, 256) * 256;
    }
  }
  g.blocks[0] = g.column_blocks * g.splits;
  return g;
}

std::string describe(const Schedule& s) {
  static const char* names[] = {"map", "column", "row", "tile"};
  std::string d = names[static_cast<int>(s.mode)];
  d += ", " + std::to_string(s.lanes) + (s.lanes == 1 ? " lane" : " lanes");
  if (s.mode == Mode::Row || s.mode == Mode::Column)
    d += ", " + std::to_string(s.team) + " threads per row, " + std::to_string(s.side) +
         " rows per block, " + std::to_string(s.groups) + " groups";
  if (s.hold == Hold::Registers) d += " in registers";
  if (s.hold == Hold::Shared) d += ", row in shared memory";
  if (s.split) d += ", two stages";
  if (s.sweep) d += ", sweep";
  if (s.packed) d += ", packed";
  if (s.exact) d += ", exact";
  if (s.shifted) d += ", shifted";
  if (s.tail) d += ", tail";
  if (s.wide) d += ", 64-bit";
  if (s.streaming) d += ", streaming";
  return d;
}

}  // namespace ingot::cuda
