// The end of an Emitter's work: stores, which the producing loop does itself where it can,
// and the locations of values.
#include <algorithm>
#include <memory>

#include "backend/cpu/jit/column_code.h"
#include "backend/cpu/jit/row_code.h"
#include "backend/cpu/kernel/emit.h"
#include "backend/cpu/support/move.h"

namespace ingot::cpu {

bool goes_past_caches(const KernelSpec& spec, int64_t stored_bytes) {
  int64_t bytes = 0;
  for (const BufferSpec& b : spec.buffers)
    bytes += b.numel * static_cast<int64_t>(size_of(b.dtype));
  return worth_streaming(stored_bytes, bytes);
}

/// May the step that makes v write to the memory of the store instead of a buffer?
bool Emitter::can_be_direct(const std::vector<Step>& out, int v, const Store& st) const {
  const Value& val = values_[v];
  if (val.bound || val.placed || val.permanent) return false;
  if (st.predicated && !plan_.all_predicated) return false;
  size_t first = out.size();
  for (size_t t = 0; t < out.size() && first == out.size(); ++t)
    if (out[t].dst == v) first = t;
  if (first == out.size()) return false;  // made in another round or in the prologue
  if (v < static_cast<int>(spec_.instrs.size()) && (an_.computed[v] & (an_.computed[v] - 1)))
    return false;
  if (!spec_.buffers[st.buffer].may_alias) return true;
  // Memory that is also read: nothing may read it after it is written.
  auto aliased = [&](int x) { return x >= 0 && values_[x].aliased; };
  for (size_t t = first + 1; t < out.size(); ++t) {
    const Step& s = out[t];
    if (aliased(s.a) || aliased(s.b) || aliased(s.c)) return false;
    const bool reads =
        s.kind == StepKind::Gather || s.kind == StepKind::Bounded || s.kind == StepKind::Indirect;
    if (reads && spec_.buffers[plan_.refs[s.ref].buffer].may_alias) return false;
  }
  return true;
}

void Emitter::store(std::vector<Step>& out, size_t index) {
  const Store& st = spec_.stores[index];
  const Instr& i = spec_.instrs[st.value];
  const Span span = i.level == Level::Outer ? Span::Outer : Span::Full;
  int v = operand(out, st.value, span, false);
  const int r = ref(&st.map, span);
  MemoryRef& m = plan_.refs[r];
  m.buffer = st.buffer;
  m.esize = static_cast<int>(size_of(i.dtype));
  m.predicated = st.predicated && !plan_.all_predicated;
  const bool dense = an_.dense(m.at, span);
  const bool stream = span == Span::Full && goes_past_caches(spec_, plan_.work * m.esize);
  plan_.streams |= stream;
  m.stream = stream;
  if (is_half(i.dtype)) {
    const int raw = new_value(span, 2);
    call(out, find_narrow(i.dtype), span, raw, v);
    v = raw;
  }
  Step s{dense ? (stream ? StepKind::Stream : StepKind::Store) : StepKind::Scatter};
  s.span = span;
  s.a = v;
  s.ref = r;
  if (dense && !stream && can_be_direct(out, v, st)) {
    s.kind = StepKind::Bind;
    s.dst = v;
    s.a = -1;
    values_[v].bound = true;
    size_t first = 0;
    while (out[first].dst != v) ++first;
    out.insert(out.begin() + static_cast<int64_t>(first), s);
    return;
  }
  out.push_back(s);
}

// ---- Locations

/// Bytes of the frame, with an odd number of cache lines between buffers so that they do
/// not conflict in the cache.
int64_t Emitter::frame_slot(int64_t bytes) {
  const int64_t at = plan_.tile_bytes;
  int64_t lines = (bytes + 63) / 64 + 1;
  lines |= 1;
  plan_.tile_bytes += lines * 64;
  return at;
}

void Emitter::place_values() {
  plan_.places.resize(values_.size());
  std::vector<Step*> all;
  for (Step& s : plan_.prologue) all.push_back(&s);
  for (Round& r : plan_.rounds) {
    for (Step& s : r.outer) all.push_back(&s);
    for (Step& s : r.elem) all.push_back(&s);
  }
  const size_t prologue = plan_.prologue.size();
  std::vector<int> last(values_.size(), -1);
  for (size_t t = 0; t < all.size(); ++t)
    for (int v : {all[t]->dst, all[t]->a, all[t]->b, all[t]->c})
      if (v >= 0) last[v] = static_cast<int>(t);

  std::map<int64_t, std::vector<int64_t>> free_slots;  // bytes -> offsets
  auto bytes_of = [&](int v) { return count(values_[v].span) * values_[v].esize; };
  auto in_frame = [&](int v) {
    const Value& x = values_[v];
    return x.placed && !x.permanent && !x.bound && plan_.places[v].segment == Segment::Tile;
  };
  for (size_t t = 0; t < all.size(); ++t) {
    const Step& s = *all[t];
    std::vector<int> dying;
    for (int v : {s.a, s.b, s.c})
      if (v >= 0 && last[v] == static_cast<int>(t) && in_frame(v) &&
          std::find(dying.begin(), dying.end(), v) == dying.end())
        dying.push_back(v);
    const int d = s.dst;
    if (d >= 0 && !values_[d].placed && !values_[d].bound && s.kind != StepKind::InitAcc &&
        s.kind != StepKind::Reduce) {
      Value& x = values_[d];
      x.placed = true;
      if (x.span == Span::Outer && t >= prologue) {
        plan_.places[d] = {Segment::Box, plan_.box_bytes};
        plan_.box_bytes += (plan_.R * x.esize + 127) / 64 * 64;
      } else {
        if (t < prologue) x.permanent = true;
        int64_t at = -1;
        if (s.kind == StepKind::Call && !x.permanent)  // in place
          for (size_t q = 0; q < dying.size() && at < 0; ++q)
            if (values_[dying[q]].esize == x.esize && values_[dying[q]].span == x.span) {
              at = plan_.places[dying[q]].offset;
              dying.erase(dying.begin() + static_cast<int64_t>(q));
            }
        auto& slots = free_slots[bytes_of(d)];
        if (at < 0 && !x.permanent && !slots.empty()) {
          at = slots.back();
          slots.pop_back();
        }
        plan_.places[d] = {Segment::Tile,
                           at >= 0 ? at : frame_slot(std::max<int64_t>(bytes_of(d), 8))};
      }
      if (last[d] == static_cast<int>(t) && in_frame(d)) dying.push_back(d);
    }
    for (int v : dying) free_slots[bytes_of(v)].push_back(plan_.places[v].offset);
  }
}

namespace {
size_t thread_bytes_of(const Plan& p) {
  if (p.rows) return p.rows->thread_bytes();
  size_t addresses = 0;
  for (const Round& r : p.rounds)
    if (r.columns)
      addresses = std::max(addresses, r.columns->pointers().size() + r.accumulators.size());
  return p.values_at() + (p.places.size() + addresses) * sizeof(char*);
}
}  // namespace

std::unique_ptr<Plan> make_plan(const KernelSpec& spec) {
  auto plan = std::make_unique<Plan>();
  Analysis analysis(spec, *plan);
  analysis.run();
  plan->rows = RowCode::make(analysis);
  if (!plan->rows) {
    Emitter emitter(analysis, *plan);
    emitter.columns = ColumnCode::make(analysis);
    emitter.run();
  }
  plan->thread_bytes = thread_bytes_of(*plan);
  return plan;
}

}  // namespace ingot::cpu
