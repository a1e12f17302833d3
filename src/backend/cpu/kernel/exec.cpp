// See exec.h: frames, boxes, tiles and the dispatch of steps. Steps that address memory are in
// exec_memory.cpp.
#include "backend/cpu/kernel/exec.h"

#include <atomic>
#include <cstring>

#include "backend/cpu/jit/column_code.h"
#include "backend/cpu/support/move.h"
#include "backend/cpu/support/threads.h"

namespace ingot::cpu {

Exec::Exec(const Plan& plan, void* const* buffers, const RunArgs& run)
    : p_(plan), buffers_(buffers), run_(run) {
  frame_ = thread_memory(plan.thread_bytes);
  vals_ = reinterpret_cast<char**>(frame_ + plan.values_at());
  addresses_ = vals_ + plan.places.size();
  const ValuePlace* place = plan.places.data();
  for (size_t v = 0; v < plan.places.size(); ++v) {
    if (place[v].segment == Segment::Tile)
      vals_[v] = frame_ + place[v].offset;
    else if (place[v].segment == Segment::Constant)
      vals_[v] =
          reinterpret_cast<char*>(plan.constants[static_cast<size_t>(place[v].offset)].get());
  }
  use_areas(frame_ + plan.tile_bytes, frame_ + plan.tile_bytes + plan.box_bytes);
  if (plan.prologue.empty()) return;
  for (int k = 0; k < plan.n_axes; ++k) e_[k] = plan.tile[k];
  count_points();
  steps(plan.prologue);
}

void Exec::use_areas(char* box_area, char* acc) {
  acc_ = acc;
  if (!p_.box_bytes) return;
  for (size_t v = 0; v < p_.places.size(); ++v)
    if (p_.places[v].segment == Segment::Box) vals_[v] = box_area + p_.places[v].offset;
}

// ---- Boxes

void Exec::set_box(int64_t box) {
  for (int k = p_.outer_hi - 1; k >= p_.outer_lo; --k) {
    const int64_t t = p_.tiles[k] == 1 ? 0 : box % p_.tiles[k];
    if (p_.tiles[k] != 1) box /= p_.tiles[k];
    start_[k] = t * p_.tile[k];
    const int64_t left = p_.extent[k] - start_[k];
    e_[k] = left < p_.tile[k] ? left : p_.tile[k];
  }
}

void Exec::set_inner(int64_t tile) {
  inner_tile_ = tile;
  int64_t index0 = 0, scale = 1;
  for (int k = p_.inner_hi - 1; k >= p_.inner_lo; --k) {
    const int64_t t = p_.tiles[k] == 1 ? 0 : tile % p_.tiles[k];
    if (p_.tiles[k] != 1) tile /= p_.tiles[k];
    start_[k] = t * p_.tile[k];
    const int64_t left = p_.extent[k] - start_[k];
    e_[k] = left < p_.tile[k] ? left : p_.tile[k];
    index0 += start_[k] * scale;
    scale *= p_.extent[k];
  }
  inner_index0_ = index0;
}

void Exec::count_points() {
  int64_t outer = 1, all = 1;
  for (int k = 0; k < p_.n_axes; ++k) all *= e_[k];
  for (int k = p_.outer_lo; k < p_.outer_hi; ++k) outer *= e_[k];
  n_[static_cast<int>(Span::Full)] = all;
  n_[static_cast<int>(Span::Outer)] = outer;
  n_[static_cast<int>(Span::Inv)] = p_.n_axes ? all / e_[p_.n_axes - 1] : 1;
}

void Exec::elem_tiles(const Round& r, int64_t begin, int64_t end) {
  if (r.elem.empty() && !r.columns) return;
  for (int64_t t = begin; t < end; ++t) {
    if (p_.inner_tiles > 1) {
      set_inner(t);
      count_points();
    }
    if (r.columns)
      columns(r);
    else
      steps(r.elem);
  }
}

void Exec::columns(const Round& r) {
  char** to = addresses_;
  for (const ColumnCode::Pointer& p : r.columns->pointers())
    *to++ = static_cast<char*>(buffers_[p.buffer]) + position(p.at) * 4;
  for (int32_t acc : r.accumulators) *to++ = acc_ + acc;
  const int64_t R = n_[static_cast<int>(Span::Outer)];
  r.columns->run({addresses_, to}, n_[static_cast<int>(Span::Full)] / R, R);
}

void Exec::boxes(int64_t begin, int64_t end) {
  set_inner(0);
  for (int64_t b = begin; b < end; ++b) {
    if (p_.all_predicated && failed()) return;
    set_box(b);
    count_points();
    for (const Round& r : p_.rounds) {
      if (!r.outer.empty()) steps(r.outer);
      if (!r.init.empty()) steps(r.init);
      elem_tiles(r, 0, p_.inner_tiles);
    }
  }
  if (p_.streams) finish_stream();
}

void Exec::piece(int64_t box, int64_t split, size_t round, char* box_area, char* acc) {
  if (p_.all_predicated && failed()) return;
  use_areas(box_area, acc);
  set_inner(0);
  set_box(box);
  count_points();
  for (size_t r = 0; r <= round;
       ++r)  // Outer values that are addresses: looked up, nothing is computed
    for (const Step& s : p_.rounds[r].outer)
      if (s.kind == StepKind::Bind) memory_step(s);
  const Round& r = p_.rounds[round];
  steps(r.init);
  const int64_t begin = split * p_.tiles_per_split, end = begin + p_.tiles_per_split;
  elem_tiles(r, begin, end < p_.inner_tiles ? end : p_.inner_tiles);
  if (p_.streams) finish_stream();
}

void Exec::merge(int64_t box, size_t round, char* acc, int64_t splits) {
  set_inner(0);
  set_box(box);
  count_points();
  const int64_t R = n_[static_cast<int>(Span::Outer)];
  for (const Step& s : p_.rounds[round].init) {
    s.reducer->init(acc + s.acc, R);
    for (int64_t k = 1; k <= splits; ++k)
      s.reducer->merge(acc + s.acc, acc + k * p_.acc_bytes + s.acc, R);
  }
}

void Exec::between(int64_t box, size_t round, char* box_area, char* acc) {
  use_areas(box_area, acc);
  set_inner(0);
  set_box(box);
  count_points();
  for (size_t r = 0; r < round; ++r)
    for (const Step& s : p_.rounds[r].outer)
      if (s.kind == StepKind::Bind) memory_step(s);
  steps(p_.rounds[round].outer);
}

/// A few cache lines of the next tile. The loops access new memory in bursts, which hardware
/// prefetchers do not bridge; prefetching all of it at once would only move the wait.
void Exec::prefetch() {
  for (int lines = p_.ahead_lines; lines > 0 && n_ahead_ > 0; --lines) {
    Ahead& a = ahead_[n_ahead_ - 1];
    __builtin_prefetch(a.next, 0, 2);
    a.next += 64;
    if (a.next >= a.end) --n_ahead_;
  }
}

// ---- Steps

void Exec::steps(const std::vector<Step>& list) {
  char** v = vals_;
  for (const Step& s : list) {
    switch (s.kind) {
      case StepKind::Call:
        if (n_ahead_) prefetch();
        s.fn(v[s.dst], v[s.a], s.b >= 0 ? v[s.b] : nullptr, s.c >= 0 ? v[s.c] : nullptr,
             n_[static_cast<int>(s.span)]);
        break;
      case StepKind::Bind: {
        const MemoryRef& m = p_.refs[static_cast<size_t>(s.ref)];
        char* at = static_cast<char*>(buffers_[m.buffer]) + position(m.at) * m.esize;
        v[s.dst] = at;
        if (m.ahead && n_ahead_ < 8) {
          const int64_t bytes = n_[static_cast<int>(Span::Full)] * m.esize;
          ahead_[n_ahead_++] = {at + bytes, at + 2 * bytes};
        }
        break;
      }
      case StepKind::Expand:
        expand(s);
        break;
      case StepKind::InitAcc:
        s.reducer->init(acc_ + s.acc, n_[static_cast<int>(Span::Outer)]);
        break;
      case StepKind::Reduce: {
        if (n_ahead_) prefetch();
        const int64_t R = n_[static_cast<int>(Span::Outer)],
                      C = n_[static_cast<int>(Span::Full)] / R;
        if (s.b >= 0)
          (p_.by_columns ? s.reducer->dot_cols : s.reducer->dot_rows)(acc_ + s.acc, v[s.a], v[s.b],
                                                                      R, C);
        else if (p_.by_columns)
          s.reducer->cols(acc_ + s.acc, v[s.a], R, C, inner_index0_, s.pitch ? s.pitch : R);
        else
          s.reducer->rows(acc_ + s.acc, v[s.a], R, C, inner_index0_);
        break;
      }
      case StepKind::Finish:
        s.fn(v[s.dst], acc_ + s.acc, nullptr, nullptr, n_[static_cast<int>(Span::Outer)]);
        break;
      default:
        memory_step(s);
    }
  }
}

void Exec::expand(const Step& s) {
  const int64_t have = n_[static_cast<int>(s.from)], want = n_[static_cast<int>(s.span)];
  if (s.from == Span::Outer && p_.by_columns)
    repeat_all(vals_[s.dst], vals_[s.a], s.esize, have, want / have);
  else
    repeat_each(vals_[s.dst], vals_[s.a], s.esize, have, want / have);
}

bool Exec::failed() const {
  return run_.status &&
         std::atomic_ref<int32_t>(run_.status->code).load(std::memory_order_relaxed) != 0;
}

}  // namespace ingot::cpu
