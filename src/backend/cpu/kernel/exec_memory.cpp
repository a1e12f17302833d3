// The steps of an Exec that address memory point by point: strided boxes, padding, gathers, index
// values, random bits.
#include <atomic>
#include <cstring>

#include "backend/cpu/kernel/exec.h"
#include "backend/cpu/kernel/random.h"
#include "backend/cpu/support/half.h"
#include "backend/cpu/support/move.h"

namespace ingot::cpu {

int64_t Exec::position(const Access& a) const {
  int64_t at = a.offset;
  for (int k = 0; k < p_.n_axes; ++k) at += a.stride[k] * start_[k];
  return at;
}

void Exec::range(Span s, int& lo, int& hi) const {
  lo = 0;
  hi = s == Span::Inv ? p_.n_axes - 1 : s == Span::Uniform ? 0 : p_.n_axes;
  if (s == Span::Outer) {
    lo = p_.outer_lo;
    hi = p_.outer_hi;
  }
}

/// f(i, row, last, count) for each run along the last axis of the span: i are the coordinates of
/// its first point, row its number, last the axis (-1: none).
template <class F>
void Exec::rows(Span s, F f) {
  int lo, hi;
  range(s, lo, hi);
  int64_t i[kMaxAxes];
  for (int k = 0; k < p_.n_axes; ++k) i[k] = start_[k];
  const int last = hi > lo ? hi - 1 : -1;
  const int64_t count = last >= 0 ? e_[last] : 1;
  for (int64_t row = 0;; ++row) {
    f(i, row, last, count);
    int k = last - 1;
    for (; k >= lo; --k) {
      if (++i[k] < start_[k] + e_[k]) break;
      i[k] = start_[k];
    }
    if (k < lo) return;
  }
}

static int64_t at(const Access& a, const int64_t* i, int n) {
  int64_t p = a.offset;
  for (int k = 0; k < n; ++k) p += a.stride[k] * i[k];
  return p;
}

/// The part [lo, hi) of a run in which every bound holds.
void Exec::valid_range(const MemoryRef& m, const int64_t* i, int last, int64_t& lo,
                       int64_t& hi) const {
  for (const AccessBound& b : m.bounds) {
    const int64_t p = at(b.at, i, p_.n_axes), s = last >= 0 ? b.at.stride[last] : 0;
    if (s == 0) {
      if (p < 0 || p >= b.extent) hi = lo;
      continue;
    }
    // first and last j with 0 <= p + s*j < extent
    int64_t from, to;
    if (s > 0) {
      from = p >= 0 ? 0 : (-p + s - 1) / s;
      to = p >= b.extent ? 0 : (b.extent - p + s - 1) / s;
    } else {
      from = p < b.extent ? 0 : (p - b.extent) / -s + 1;
      to = p < 0 ? 0 : p / -s + 1;
    }
    if (from > lo) lo = from;
    if (to < hi) hi = to;
  }
  if (hi < lo) hi = lo;
}

namespace {
/// A run of elements with a stride, small enough not to deserve copy_box.
void copy_run(char* dst, const char* src, int64_t stride, int esize, int64_t n) {
  if (stride == 1) {
    std::memcpy(dst, src, static_cast<size_t>(n * esize));
    return;
  }
  const int64_t one = 1;
  copy_box(dst, &one, src, &stride, &n, 1, esize);
}
}  // namespace

void Exec::bounded(const Step& s, const MemoryRef& m) {
  char* out = vals_[s.dst];
  const char* base = static_cast<const char*>(buffers_[m.buffer]);
  rows(s.span, [&](const int64_t* i, int64_t row, int last, int64_t count) {
    int64_t lo = 0, hi = count;
    valid_range(m, i, last, lo, hi);
    char* dst = out + row * count * m.esize;
    if (lo > 0) fill_elements(dst, &m.fill, m.esize, lo < count ? lo : count);
    if (hi > lo) {
      const int64_t stride = last >= 0 ? m.at.stride[last] : 0;
      copy_run(dst + lo * m.esize, base + (at(m.at, i, p_.n_axes) + lo * stride) * m.esize, stride,
               m.esize, hi - lo);
    }
    const int64_t tail = hi > lo ? hi : lo;
    if (tail < count) fill_elements(dst + tail * m.esize, &m.fill, m.esize, count - tail);
  });
}

void Exec::index_error(const MemoryRef& m, int64_t value) const {
  if (!run_.status) return;
  int32_t ok = RunStatus::Ok;
  if (!std::atomic_ref<int32_t>(run_.status->code)
           .compare_exchange_strong(ok, RunStatus::IndexError))
    return;
  run_.status->site = m.site;
  run_.status->value = value;
  run_.status->extent = m.index_extent;
}

template <class T>
void Exec::indirect_typed(const Step& s, const MemoryRef& m) {
  char* out = vals_[s.dst];
  const char* base = static_cast<const char*>(buffers_[m.buffer]);
  const T* index = reinterpret_cast<const T*>(vals_[s.a]);
  const bool per_point = m.index_span == s.span && s.span != Span::Uniform;
  const bool per_row = !per_point && m.index_span == Span::Inv;
  const int64_t n_rows = n_[static_cast<int>(Span::Inv)];
  // The element that index v selects, or -1.
  auto select = [&](T v0) -> int64_t {
    const int64_t v = static_cast<int64_t>(v0);
    if (v >= 0 && v < m.index_extent) return v;
    index_error(m, v);
    return -1;
  };
  rows(s.span, [&](const int64_t* i, int64_t row, int last, int64_t count) {
    int64_t lo = 0, hi = count;
    if (!m.bounds.empty()) valid_range(m, i, last, lo, hi);
    char* dst = out + row * count * m.esize;
    const int64_t p = at(m.at, i, p_.n_axes), stride = last >= 0 ? m.at.stride[last] : 0;
    if (per_point) {
      for (int64_t j = 0; j < count; ++j) {
        const int64_t w = j >= lo && j < hi ? select(index[row * count + j]) : -1;
        const void* from = w < 0 ? static_cast<const void*>(&m.fill)
                                 : base + (p + j * stride + w * m.index_stride) * m.esize;
        switch (m.esize) {
          case 1:
            std::memcpy(dst + j, from, 1);
            break;
          case 2:
            std::memcpy(dst + j * 2, from, 2);
            break;
          case 4:
            std::memcpy(dst + j * 4, from, 4);
            break;
          default:
            std::memcpy(dst + j * 8, from, 8);
        }
      }
      return;
    }
    if (per_row && row + 1 < n_rows) {
      // Approximate, and in unsigned arithmetic: a bad index makes a bad guess, which is harmless.
      const uint64_t next =
          static_cast<uint64_t>(index[row + 1]) * static_cast<uint64_t>(m.index_stride);
      const uintptr_t from = reinterpret_cast<uintptr_t>(base) +
                             (static_cast<uint64_t>(p) + next) * static_cast<uint64_t>(m.esize);
      for (int64_t b = 0; b < count * m.esize && b < 1024; b += 64)
        __builtin_prefetch(reinterpret_cast<const void*>(from + static_cast<uint64_t>(b)), 0, 2);
    }
    const int64_t w = hi > lo ? select(index[per_row ? row : 0]) : -1;
    if (w < 0) hi = lo = count;
    if (lo > 0) fill_elements(dst, &m.fill, m.esize, lo);
    if (hi > lo)
      copy_run(dst + lo * m.esize, base + (p + lo * stride + w * m.index_stride) * m.esize, stride,
               m.esize, hi - lo);
    if (hi < count) fill_elements(dst + hi * m.esize, &m.fill, m.esize, count - hi);
  });
}

void Exec::indirect(const Step& s, const MemoryRef& m) {
  switch (m.index_type) {
    case TileType::I64:
      return indirect_typed<int64_t>(s, m);
    case TileType::I32:
      return indirect_typed<int32_t>(s, m);
    case TileType::I16:
      return indirect_typed<int16_t>(s, m);
    case TileType::I8:
      return indirect_typed<int8_t>(s, m);
    default:
      return indirect_typed<uint8_t>(s, m);
  }
}

void Exec::in_bounds(const Step& s, const MemoryRef& m) {
  char* out = vals_[s.dst];
  rows(s.span, [&](const int64_t* i, int64_t row, int last, int64_t count) {
    int64_t lo = 0, hi = count;
    valid_range(m, i, last, lo, hi);
    char* dst = out + row * count;
    std::memset(dst, 0, static_cast<size_t>(count));
    if (hi > lo) std::memset(dst + lo, 1, static_cast<size_t>(hi - lo));
  });
}

/// Index and Random.
void Exec::generate(const Step& s, const MemoryRef& m) {
  char* out = vals_[s.dst];
  auto run = [&](int64_t first, int64_t stride, int64_t done, int64_t count) {
    if (s.kind == StepKind::Index) {
      int64_t* dst = reinterpret_cast<int64_t*>(out) + done;
      for (int64_t j = 0; j < count; ++j) dst[j] = first + stride * j;
    } else {
      random_run(reinterpret_cast<uint32_t*>(out) + done, count, first, stride,
                 run_.offsets[m.slot] + static_cast<uint64_t>(m.counter), run_.seeds[m.slot]);
    }
  };
  if (m.dense) return run(position(m.at), 1, 0, n_[static_cast<int>(s.span)]);
  rows(s.span, [&](const int64_t* i, int64_t row, int last, int64_t count) {
    run(at(m.at, i, p_.n_axes), last >= 0 ? m.at.stride[last] : 0, row * count, count);
  });
}

void Exec::argument(const Step& s, const MemoryRef& m) {
  const double v = run_.args[m.slot];
  char* out = vals_[s.dst];
  auto put = [&](auto x) { std::memcpy(out, &x, sizeof x); };
  switch (m.dtype) {
    case DType::Float64:
      return put(v);
    case DType::Float32:
      return put(static_cast<float>(v));
    case DType::Float16:
      return put(f32_from_f16(f16_from_f32(static_cast<float>(v))));
    case DType::BFloat16:
      return put(f32_from_bf16(bf16_from_f32(static_cast<float>(v))));
    case DType::Int64:
      return put(static_cast<int64_t>(v));
    case DType::Int32:
      return put(static_cast<int32_t>(static_cast<int64_t>(v)));
    case DType::Int16:
      return put(static_cast<int16_t>(static_cast<int64_t>(v)));
    case DType::Bool:
      return put(static_cast<uint8_t>(v != 0));
    default:
      return put(static_cast<uint8_t>(static_cast<int64_t>(v)));
  }
}

void Exec::store(const Step& s, const MemoryRef& m) {
  if (m.predicated && failed()) return;
  char* dst = static_cast<char*>(buffers_[m.buffer]);
  const char* src = vals_[s.a];
  const int64_t bytes = n_[static_cast<int>(s.span)] * m.esize;
  if (s.kind == StepKind::Scatter) {
    int lo, hi;
    range(s.span, lo, hi);
    const int last = hi - 1;
    if (m.stream && m.at.stride[last] == 1 && e_[last] * m.esize >= 128) {
      // Rows along the last axis; those of one other axis are processed together.
      int with = -1, others = 0;
      for (int k = lo; k < last; ++k)
        if (e_[k] > 1) {
          with = k;
          ++others;
        }
      if (others == 1) {
        stream_rows(dst + position(m.at) * m.esize, m.at.stride[with] * m.esize, src, e_[with],
                    e_[last] * m.esize);
        return;
      }
      rows(s.span, [&](const int64_t* i, int64_t row, int, int64_t count) {
        stream_copy(dst + at(m.at, i, p_.n_axes) * m.esize, src + row * count * m.esize,
                    count * m.esize);
      });
      return;
    }
    scatter_box(dst + position(m.at) * m.esize, m.at.stride + lo, src, e_ + lo, hi - lo, m.esize);
    return;
  }
  dst += position(m.at) * m.esize;
  if (s.kind == StepKind::Stream)
    stream_copy(dst, src, bytes);
  else if (dst != src)
    std::memcpy(dst, src, static_cast<size_t>(bytes));
}

void Exec::memory_step(const Step& s) {
  const MemoryRef& m = p_.refs[static_cast<size_t>(s.ref)];
  switch (s.kind) {
    case StepKind::Bind:
      vals_[s.dst] = static_cast<char*>(buffers_[m.buffer]) + position(m.at) * m.esize;
      return;
    case StepKind::BindRow:
      vals_[s.dst] = frame_ + m.at.offset + inner_tile_ * p_.R * p_.C * s.esize;
      return;
    case StepKind::Gather: {
      int lo, hi;
      range(s.span, lo, hi);
      const char* src = static_cast<const char*>(buffers_[m.buffer]) + position(m.at) * m.esize;
      gather_box(vals_[s.dst], src, m.at.stride + lo, e_ + lo, hi - lo, m.esize);
      return;
    }
    case StepKind::Bounded:
      return bounded(s, m);
    case StepKind::Indirect:
      return indirect(s, m);
    case StepKind::InBounds:
      return in_bounds(s, m);
    case StepKind::Index:
    case StepKind::Random:
      return generate(s, m);
    case StepKind::Arg:
      return argument(s, m);
    default:
      return store(s, m);
  }
}

}  // namespace ingot::cpu
