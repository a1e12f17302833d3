// See overlap.h.
#include "backend/cuda/runtime/overlap.h"

#include <algorithm>

namespace ingot::cuda {
namespace {

/// Bytes from the buffer's address to the end of what an operand can reach.
size_t reach(const OperandSpec& o) {
  int64_t last = o.offset;
  for (int i = 0; i < o.shape.size(); ++i) {
    if (o.shape[i] == 0) return 0;
    last += std::max<int64_t>(0, (o.shape[i] - 1) * o.stride[i]);
  }
  return static_cast<size_t>(last + 1) * size_of(o.dtype);
}

}  // namespace

Touches touches_of(std::span<const KernelSpec> parts) {
  Touches t;
  for (const KernelSpec& k : parts) {
    for (const BufferSpec& b : k.buffers)
      t.buffers.push_back({static_cast<size_t>(b.numel) * size_of(b.dtype), b.written});
    for (const Instr& in : k.instrs)
      t.may_fail = t.may_fail || (in.kind == InstrKind::Load && in.indirect >= 0);
    for (const Store& s : k.stores) t.predicated = t.predicated || s.predicated;
  }
  return t;
}

Touches touches_of(const LibrarySpec& spec) {
  Touches t;
  for (size_t i = 0; i < spec.operands.size(); ++i)
    t.buffers.push_back({reach(spec.operands[i]), static_cast<int>(i) < spec.written});
  switch (spec.op) {
    case Op::Matmul:
    case Op::Attention:
    case Op::AttentionGrad:
      break;
    default:
      t.may_fail = !is_recurrent(spec.op);  // an index may be bad
  }
  return t;
}

// Begins a segment there, with what is known of the memory around it.
void Overlap::split(uintptr_t at) {
  auto next = segments_.lower_bound(at);
  if (next != segments_.end() && next->first == at) return;
  Segment before;
  if (next != segments_.begin()) before = std::prev(next)->second;
  segments_.emplace_hint(next, at, std::move(before));
}

void Overlap::wait_for(int launch, PerLane& newest) const {
  if (launch < 0) return;
  int& n = newest[static_cast<size_t>(lane_of_[static_cast<size_t>(launch)])];
  n = std::max(n, launch);
}

Overlap::Place Overlap::add(std::span<const Access> accesses, bool may_fail, bool predicated) {
  size_t lanes = tail_.size();
  int me = static_cast<int>(lane_of_.size());
  PerLane needs(lanes, -1);
  for (const Access& a : accesses) {
    if (a.bytes == 0) continue;
    split(a.begin);
    split(a.begin + a.bytes);
    for (auto s = segments_.find(a.begin); s->first != a.begin + a.bytes; ++s) {
      wait_for(s->second.writer, needs);
      if (a.written)
        for (int r : s->second.readers) wait_for(r, needs);
    }
  }
  if (predicated)
    for (int f : may_fail_) wait_for(f, needs);

  // Behind the newest of what it waits for, if that is the end of its lane; else on the lane that
  // has been quiet longest.
  Place place;
  int best = -2;
  for (size_t l = 0; l < lanes; ++l)
    if (needs[l] >= 0 && needs[l] == tail_[l] && needs[l] > best)
      best = needs[l], place.lane = static_cast<int>(l);
  if (best == -2)
    place.lane = static_cast<int>(std::min_element(tail_.begin(), tail_.end()) - tail_.begin());

  auto lane = static_cast<size_t>(place.lane);
  PerLane over = tail_[lane] >= 0 ? waited_[static_cast<size_t>(tail_[lane])] : PerLane(lanes, -1);
  over[lane] = tail_[lane];
  for (size_t l = 0; l < lanes; ++l) {
    if (needs[l] <= over[l]) continue;
    place.after.push_back(needs[l]);
    const PerLane& theirs = waited_[static_cast<size_t>(needs[l])];
    for (size_t k = 0; k < lanes; ++k) over[k] = std::max(over[k], theirs[k]);
    over[l] = needs[l];
  }
  lane_of_.push_back(place.lane);
  waited_.push_back(over);
  tail_[lane] = me;
  if (may_fail) {
    may_fail_.resize(lanes, -1);
    may_fail_[lane] = me;
  }
  for (bool writes : {false, true})  // a launch that reads what it writes counts as its writer
    for (const Access& a : accesses) {
      if (a.bytes == 0 || a.written != writes) continue;
      for (auto s = segments_.find(a.begin); s->first != a.begin + a.bytes; ++s) {
        if (writes) {
          s->second.writer = me;
          s->second.readers.clear();
        } else {
          s->second.readers.resize(lanes, -1);
          s->second.readers[lane] = me;
        }
      }
    }
  return place;
}

}  // namespace ingot::cuda
