// Horizontal merging and ordering of lowered kernels.
#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <unordered_map>

#include "base/hash.h"
#include "compile/group.h"
#include "compile/lowered_launch.h"

namespace ingot {
namespace {

constexpr int kMaxParts = 2048;
constexpr int64_t kFreeDelay = 256 << 10;  // bytes that may stay alive longer: too few to matter

// Bytes that may be allocated from the beginning of a run, so that one launch writes them all.
constexpr int64_t kEarlyBytes = 64 << 20;

bool writes_state(const LoweredLaunch& w) {
  for (const KernelSpec& k : w.parts)
    for (const Store& s : k.stores)
      if (s.predicated) return true;
  return false;
}

struct Links {
  std::vector<std::vector<int>> next, prev;
};

// Who needs whom. Readers of a buffer that an Assign or SliceAssign may overwrite come before it,
// where they can.
Links link(const Graph& g, const std::vector<LoweredLaunch>& lowered) {
  Links l;
  l.next.resize(lowered.size());
  l.prev.resize(lowered.size());
  std::unordered_map<int, std::vector<int>> made;  // one maker, but for the parts of a Cat
  for (size_t i = 0; i < lowered.size(); ++i)
    for (size_t b = 0; b < lowered[i].vals.size(); ++b) {
      if (!written(lowered[i], b)) continue;
      std::vector<int>& makers = made[lowered[i].vals[b]];
      if (makers.empty() || makers.back() != static_cast<int>(i))
        makers.push_back(static_cast<int>(i));
    }
  auto join = [&](int v, int to) {
    auto it = made.find(v);
    if (it == made.end()) return;
    for (int maker : it->second) {
      if (maker == to) continue;
      l.next[maker].push_back(to);
      l.prev[to].push_back(maker);
    }
  };
  for (size_t i = 0; i < lowered.size(); ++i) {
    for (size_t b = 0; b < lowered[i].vals.size(); ++b) {
      int v = lowered[i].vals[b];
      if (!written(lowered[i], b)) join(v, static_cast<int>(i));
      // The old value must be there before the new one is written over it (or copied).
      if (written(lowered[i], b) && (g.vals[v].op == Op::Assign || g.vals[v].op == Op::SliceAssign))
        join(edge_of(g, v, 0).producer, static_cast<int>(i));
    }
    for (int v : lowered[i].after) join(v, static_cast<int>(i));
  }
  return l;
}

uint64_t structure_hash(const LoweredLaunch& w) {
  Hasher h;
  const KernelSpec& k = w.parts[0];
  h.add(k.n_axes());
  h.add(k.n_outer);
  h.add(static_cast<int>(w.device.type()) * 256 + w.device.index());
  for (const Instr& i : k.instrs) {
    h.add(static_cast<uint64_t>(i.kind) | static_cast<uint64_t>(i.op) << 8 |
          static_cast<uint64_t>(i.dtype) << 16);
    h.add_bits(i.fvalue);
    for (int a : i.arg) h.add(a);
  }
  h.add(static_cast<int>(k.stores.size()));
  return h.value();
}

// Bytes that would live longer if this kernel moved to the end.
int64_t delayed_bytes(const Graph& g, const LoweredLaunch& w, const std::vector<char>& long_lived) {
  int64_t n = 0;
  for (size_t b = 0; b < w.vals.size(); ++b) {
    const Val& v = g.vals[w.vals[b]];
    if (!written(w, b) && v.op != Op::Leaf && !v.output && !long_lived[w.vals[b]]) n += v.bytes();
  }
  return n;
}

// The latest level each kernel can run at. Kernels of one level do not depend on each other, and
// all of them can be moved to their levels at once: so merging within a level never closes a
// circle.
std::vector<int> latest_levels(const Links& l) {
  size_t n = l.next.size();
  std::vector<int> open(n), level(n, 0), stack;
  for (size_t i = 0; i < n; ++i) {
    open[i] = static_cast<int>(l.next[i].size());
    if (!open[i]) stack.push_back(static_cast<int>(i));
  }
  while (!stack.empty()) {
    int w = stack.back();
    stack.pop_back();
    for (int p : l.prev[w]) {
      level[p] = std::max(level[p], level[w] + 1);  // counted from the end
      if (--open[p] == 0) stack.push_back(p);
    }
  }
  return level;
}

// May this kernel come first, whatever reads it? (What it reads is asked separately.)
bool may_come_early(const Graph& g, const LoweredLaunch& w, int64_t& bytes) {
  if (w.library_call || w.region >= 0 || !w.after.empty() || writes_state(w)) return false;
  if (w.device.type() == DeviceType::CPU) return false;
  bytes = 0;
  for (size_t b = 0; b < w.vals.size(); ++b) {
    if (!written(w, b)) continue;
    if (g.vals[w.vals[b]].output) return false;
    bytes += g.vals[w.vals[b]].bytes();
  }
  return true;
}

// What is computed from leaves alone (weights cast, scaled, laid out anew; scales of norms) has a
// level from the beginning of the run; the others get -1. Early kernels need early ones only, and
// within a level none needs another.
std::vector<int> early_levels(const Graph& g, const std::vector<LoweredLaunch>& lowered) {
  const Links l = link(g, lowered);
  std::vector<int> level(lowered.size(), -1), open(lowered.size()), ready;
  for (size_t i = 0; i < lowered.size(); ++i) {
    open[i] = static_cast<int>(l.prev[i].size());
    if (!open[i]) ready.push_back(static_cast<int>(i));
  }
  int64_t total = 0, bytes = 0;
  for (size_t next = 0; next < ready.size(); ++next) {
    const int i = ready[next];
    if (!may_come_early(g, lowered[i], bytes) || total + bytes > kEarlyBytes) continue;
    total += bytes;
    level[i] = 0;
    for (int p : l.prev[i]) level[i] = std::max(level[i], level[p] + 1);
    for (int n : l.next[i])
      if (--open[n] == 0) ready.push_back(n);
  }
  return level;
}

void append(LoweredLaunch& into, LoweredLaunch& w) {
  std::move(w.parts.begin(), w.parts.end(), std::back_inserter(into.parts));
  into.vals.insert(into.vals.end(), w.vals.begin(), w.vals.end());
  into.after.insert(into.after.end(), w.after.begin(), w.after.end());
}

// Early kernels of one structure are one launch, however deep in the network their readers are. On
// the CPU a launch costs little, and what was just written is in its caches.
void merge_early(const Graph& g, std::vector<LoweredLaunch>& lowered) {
  const std::vector<int> level = early_levels(g, lowered);
  std::unordered_map<uint64_t, std::vector<int>> buckets;
  for (size_t i = 0; i < lowered.size(); ++i) {
    LoweredLaunch& w = lowered[i];
    if (level[i] < 0) continue;
    Hasher h;
    h.add(structure_hash(w));
    h.add(level[i]);
    std::vector<int>& bucket = buckets[h.value()];
    const auto fits = [&](int b) {
      return level[b] == level[i] && lowered[b].device == w.device &&
             lowered[b].parts.size() + w.parts.size() <= kMaxParts &&
             same_structure(lowered[b].parts[0], w.parts[0]);
    };
    const auto into = std::find_if(bucket.begin(), bucket.end(), fits);
    if (into == bucket.end()) {
      bucket.push_back(static_cast<int>(i));
      continue;
    }
    append(lowered[*into], w);
    lowered[*into].last = std::min(lowered[*into].last, w.last);
    w = LoweredLaunch{};
  }
  std::erase_if(lowered, [](const LoweredLaunch& w) { return w.vals.empty(); });
}

}  // namespace

bool written(const LoweredLaunch& w, size_t b) {
  if (w.library_call) return b < static_cast<size_t>(w.library.written);
  for (const auto* list : {&w.parts, &w.second})
    for (const KernelSpec& k : *list) {
      if (b < k.buffers.size()) return k.buffers[b].written;
      b -= k.buffers.size();
    }
  return false;
}

void merge_horizontally(const Graph& g, std::vector<LoweredLaunch>& lowered) {
  std::vector<char> long_lived(g.vals.size(), 0);
  for (const LoweredLaunch& w : lowered)
    if (writes_state(w))
      for (int v : w.vals) long_lived[v] = 1;
  std::vector<int> level = latest_levels(link(g, lowered));
  std::unordered_map<uint64_t, std::vector<int>> buckets;  // representatives of merged kernels
  bool any = false;
  for (size_t i = 0; i < lowered.size(); ++i) {
    LoweredLaunch& w = lowered[i];
    if (w.library_call || w.region >= 0 || delayed_bytes(g, w, long_lived) > kFreeDelay) continue;
    Hasher h;
    h.add(structure_hash(w));
    h.add(level[i]);
    auto& bucket = buckets[h.value()];
    bool merged = false;
    for (int b : bucket) {
      LoweredLaunch& into = lowered[b];
      if (level[b] != level[i] || into.device != w.device ||
          static_cast<int>(into.parts.size()) >= kMaxParts ||
          !same_structure(into.parts[0], w.parts[0]))
        continue;
      append(into, w);
      into.last = std::max(into.last, w.last);
      w = LoweredLaunch{};
      merged = any = true;
      break;
    }
    if (!merged) bucket.push_back(static_cast<int>(i));
  }
  if (any) std::erase_if(lowered, [](const LoweredLaunch& w) { return w.vals.empty(); });
  merge_early(g, lowered);
}

namespace {

bool single(const LoweredLaunch& w) {
  return !w.library_call && w.parts.size() == 1 && w.second.empty() && w.region < 0 &&
         w.after.empty() && w.parts[0].has_reduce() && !writes_state(w);
}

// The kernel whose results per outer point `w` reduces to one number, or -1. Whatever else it reads
// must be there before that kernel: a leaf, or what that kernel reads too.
int first_stage_of(const Graph& g, const LoweredLaunch& w,
                   const std::vector<LoweredLaunch>& lowered,
                   const std::unordered_map<int, int>& made) {
  if (!single(w) || w.parts[0].is_row() || w.parts[0].outer_size() != 1) return -1;
  int first = -1;
  for (const Instr& i : w.parts[0].instrs) {
    if (i.indirect >= 0) return -1;
    if (i.kind != InstrKind::Load || i.level != Level::Elem) continue;
    auto it = made.find(w.vals[i.buffer]);
    if (it == made.end() || (first >= 0 && it->second != first)) return -1;
    first = it->second;
  }
  if (first < 0 || !single(lowered[first]) || lowered[first].device != w.device) return -1;
  const LoweredLaunch& p = lowered[first];
  if (p.parts[0].outer_size() != w.parts[0].inner_size()) return -1;
  for (size_t b = 0; b < w.vals.size(); ++b) {
    if (written(w, b)) {
      if (g.vals[w.vals[b]].op == Op::Assign) return -1;  // it reuses the old value's memory
      continue;
    }
    auto it = made.find(w.vals[b]);
    const bool before = it == made.end() || it->second == first ||
                        std::find(p.vals.begin(), p.vals.end(), w.vals[b]) != p.vals.end();
    if (!before) return -1;
  }
  for (const Instr& i : w.parts[0].instrs)
    if (i.kind == InstrKind::Load && i.level == Level::Elem)
      for (const Store& s : p.parts[0].stores)
        if (p.vals[s.buffer] == w.vals[i.buffer] &&
            p.parts[0].instrs[s.value].level != Level::Outer)
          return -1;
  return first;
}

}  // namespace

void join_stages(const Graph& g, std::vector<LoweredLaunch>& lowered) {
  std::unordered_map<int, int> made;
  for (size_t i = 0; i < lowered.size(); ++i)
    for (size_t b = 0; b < lowered[i].vals.size(); ++b)
      if (written(lowered[i], b)) made[lowered[i].vals[b]] = static_cast<int>(i);
  bool any = false;
  for (LoweredLaunch& w : lowered) {
    const int first = first_stage_of(g, w, lowered, made);
    if (first < 0) continue;
    LoweredLaunch& p = lowered[first];
    for (size_t b = 0; b < w.vals.size(); ++b)
      if (written(w, b)) made[w.vals[b]] = first;
    p.second.push_back(std::move(w.parts[0]));
    p.vals.insert(p.vals.end(), w.vals.begin(), w.vals.end());
    p.last = std::max(p.last, w.last);
    w = LoweredLaunch{};
    any = true;
  }
  if (any) std::erase_if(lowered, [](const LoweredLaunch& w) { return w.vals.empty(); });
}

std::vector<int> order_launches(const Graph& g, const std::vector<LoweredLaunch>& lowered) {
  Links l = link(g, lowered);
  std::vector<int> waiting(lowered.size());
  using Item = std::pair<int64_t, int>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> ready;
  auto rank = [&](int w) {
    return static_cast<int64_t>(lowered[w].last) +
           (writes_state(lowered[w]) ? int64_t{1} << 40 : 0);
  };
  for (size_t i = 0; i < lowered.size(); ++i) {
    waiting[i] = static_cast<int>(l.prev[i].size());
    if (!waiting[i]) ready.push({rank(static_cast<int>(i)), static_cast<int>(i)});
  }
  std::vector<int> order;
  while (!ready.empty()) {
    int w = ready.top().second;
    ready.pop();
    order.push_back(w);
    for (int n : l.next[w])
      if (--waiting[n] == 0) ready.push({rank(n), n});
  }
  if (order.size() != lowered.size())
    throw Error(ErrorKind::Internal, "compile", "the kernels depend on each other in a cycle");
  return order;
}

}  // namespace ingot
