// See move.h. Boxes are reduced to their essential axes first, so that nearly every call ends in
// memcpy, a fill, a strided run or a blocked transposition in registers.
#include "backend/cpu/support/move.h"

#include <cstring>

#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/support/move.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// dst[i*dp + j] = src[i + j*sq], i < p, j < q.
template <class T>
void transpose_scalar(T* dst, int64_t dp, const T* src, int64_t sq, int64_t p, int64_t q) {
  for (int64_t i0 = 0; i0 < p; i0 += 16) {
    const int64_t i1 = i0 + 16 < p ? i0 + 16 : p;
    for (int64_t j = 0; j < q; ++j)
      for (int64_t i = i0; i < i1; ++i) dst[i * dp + j] = src[j * sq + i];
  }
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
/// dst[to(i) + j] = src[i + j*sq], i < 8, j < 8. In eight registers: pairs, quads, halves.
template <class T, class To>
HWY_INLINE void transpose_eight(T* dst, To to, const T* src, int64_t sq) {
  const hn::FixedTag<T, 8> d;
  const hn::FixedTag<uint64_t, 4> dw;
  auto row = [&](int j) HWY_ATTR { return hn::LoadU(d, src + j * sq); };
  const auto a0 = row(0), a1 = row(1), a2 = row(2), a3 = row(3), a4 = row(4), a5 = row(5),
             a6 = row(6), a7 = row(7);
  auto wide = [&](auto v) HWY_ATTR { return hn::BitCast(dw, v); };
  const auto b0 = wide(hn::InterleaveLower(d, a0, a1)), b1 = wide(hn::InterleaveUpper(d, a0, a1));
  const auto b2 = wide(hn::InterleaveLower(d, a2, a3)), b3 = wide(hn::InterleaveUpper(d, a2, a3));
  const auto b4 = wide(hn::InterleaveLower(d, a4, a5)), b5 = wide(hn::InterleaveUpper(d, a4, a5));
  const auto b6 = wide(hn::InterleaveLower(d, a6, a7)), b7 = wide(hn::InterleaveUpper(d, a6, a7));
  const auto c0 = hn::InterleaveLower(dw, b0, b2), c1 = hn::InterleaveUpper(dw, b0, b2);
  const auto c2 = hn::InterleaveLower(dw, b1, b3), c3 = hn::InterleaveUpper(dw, b1, b3);
  const auto c4 = hn::InterleaveLower(dw, b4, b6), c5 = hn::InterleaveUpper(dw, b4, b6);
  const auto c6 = hn::InterleaveLower(dw, b5, b7), c7 = hn::InterleaveUpper(dw, b5, b7);
  auto put = [&](int i, auto v) HWY_ATTR { hn::StoreU(hn::BitCast(d, v), d, dst + to(i)); };
  put(0, hn::ConcatLowerLower(dw, c4, c0));
  put(1, hn::ConcatLowerLower(dw, c5, c1));
  put(2, hn::ConcatLowerLower(dw, c6, c2));
  put(3, hn::ConcatLowerLower(dw, c7, c3));
  put(4, hn::ConcatUpperUpper(dw, c4, c0));
  put(5, hn::ConcatUpperUpper(dw, c5, c1));
  put(6, hn::ConcatUpperUpper(dw, c6, c2));
  put(7, hn::ConcatUpperUpper(dw, c7, c3));
}
#endif

#if HWY_TARGET == HWY_AVX3
constexpr int64_t kSide = 16;

/// dst[to(i) + j] = src[i + j*sq], i < n, j < 16; n <= 16. A register is loaded with quarters of
/// four rows, which leaves only pairs and quads to be transposed.
template <bool kStream = false, class T, class To>
HWY_INLINE void transpose_block(T* dst, To to, const T* src, int64_t sq, int64_t n) {
  const hn::FixedTag<T, 16> d;
  const hn::FixedTag<uint64_t, 8> dw;
  const auto four = hn::FirstN(d, 4), eight = hn::FirstN(d, 8), twelve = hn::FirstN(d, 12);
#pragma GCC unroll 4
  for (int64_t c = 0; c < n; c += 4) {
    const T* from = src + c;
    int64_t step = sq;
    HWY_ALIGN T rest[16 * 4] = {};
    if (c + 4 > n) {  // nothing is read past a row: another thread may be writing there
      for (int64_t j = 0; j < 16; ++j)
        std::memcpy(rest + j * 4, from + j * sq, static_cast<size_t>(n - c) * sizeof(T));
      from = rest;
      step = 4;
    }
    auto rows = [&](int64_t j) HWY_ATTR {
      auto part = [&](int64_t k) HWY_ATTR { return hn::LoadDup128(d, from + k * step); };
      const auto v = hn::IfThenElse(twelve, part(j + 8), part(j + 12));
      return hn::IfThenElse(four, part(j), hn::IfThenElse(eight, part(j + 4), v));
    };
    const auto a0 = rows(0), a1 = rows(1), a2 = rows(2), a3 = rows(3);
    auto wide = [&](auto v) HWY_ATTR { return hn::BitCast(dw, v); };
    const auto b0 = wide(hn::InterleaveLower(d, a0, a1)), b1 = wide(hn::InterleaveUpper(d, a0, a1));
    const auto b2 = wide(hn::InterleaveLower(d, a2, a3)), b3 = wide(hn::InterleaveUpper(d, a2, a3));
    auto put = [&](int64_t i, auto v) HWY_ATTR {
      if (c + i >= n) return;
      if constexpr (kStream)
        hn::Stream(hn::BitCast(d, v), d, dst + to(c + i));
      else
        hn::StoreU(hn::BitCast(d, v), d, dst + to(c + i));
    };
    put(0, hn::InterleaveLower(dw, b0, b2));
    put(1, hn::InterleaveUpper(dw, b0, b2));
    put(2, hn::InterleaveLower(dw, b1, b3));
    put(3, hn::InterleaveUpper(dw, b1, b3));
  }
}
#elif HWY_TARGET == HWY_AVX2
constexpr int64_t kSide = 8;

/// dst[to(i) + j] = src[i + j*sq], i < n, j < 8; n <= 8.
template <bool kStream = false, class T, class To>
HWY_INLINE void transpose_block(T* dst, To to, const T* src, int64_t sq, int64_t n) {
  if (n == 8) return transpose_eight(dst, to, src, sq);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < 8; ++j) dst[to(i) + j] = src[j * sq + i];
}
#else
constexpr int64_t kSide = 4;
template <bool kStream = false, class T, class To>
HWY_INLINE void transpose_block(T* dst, To to, const T* src, int64_t sq, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < kSide; ++j) dst[to(i) + j] = src[j * sq + i];
}
#endif

/// dst[i*dp + j] = src[i + j*sq], i < p, j < q.
void transpose32(uint32_t* dst, int64_t dp, const uint32_t* src, int64_t sq, int64_t p, int64_t q,
                 Far far) {
  const int64_t blocks = (p + kSide - 1) / kSide, across = q / kSide;
  const bool stream =
      far == Far::Memory && dp % 16 == 0 && reinterpret_cast<uintptr_t>(dst) % 64 == 0;
  auto block = [&](int64_t i, int64_t j) HWY_ATTR {
    auto to = [&](int64_t k) HWY_ATTR { return k * dp; };
    uint32_t* at = dst + i * dp + j;
    if (stream && i + kSide <= p)
      transpose_block<true>(at, to, src + j * sq + i, sq, kSide);
    else if (i + kSide <= p)  // a constant for full squares, so that their loop is unrolled
      transpose_block(at, to, src + j * sq + i, sq, kSide);
    else
      transpose_block(at, to, src + j * sq + i, sq, p - i);
  };
  if (far != Far::Source) {
    for (int64_t i = 0; i < blocks; ++i)
      for (int64_t j = 0; j < across; ++j) block(i * kSide, j * kSide);
  } else {
    for (int64_t j = 0; j < across; ++j)
      for (int64_t i = 0; i < blocks; ++i) {
        if (j + 1 < across && i * kSide % 16 == 0)  // distant rows: hardware does not prefetch them
          for (int64_t n = kSide; n < 2 * kSide; ++n)
            __builtin_prefetch(src + (j * kSide + n) * sq + i * kSide, 0, 2);
        block(i * kSide, j * kSide);
      }
  }
  int64_t done = across * kSide;
#if HWY_TARGET == HWY_AVX3
  if (done + 8 <= q) {
    auto to = [&](int64_t k) HWY_ATTR { return k * dp; };
    const int64_t whole = p / 8 * 8;
    for (int64_t i = 0; i < whole; i += 8)
      transpose_eight(dst + i * dp + done, to, src + done * sq + i, sq);
    if (whole < p)
      transpose_scalar(dst + whole * dp + done, dp, src + done * sq + whole, sq, p - whole, 8);
    done += 8;
  }
#endif
  if (done < q) transpose_scalar(dst + done, dp, src + done * sq, sq, p, q - done);
}

void TurnToRows(float* dst, const int64_t* to, const float* src, int64_t stride, int64_t n,
                int64_t width) {
  const int64_t done = width / kSide * kSide;
  for (int64_t i = 0; i < n; i += kSide) {
    auto row = [&](int64_t k) HWY_ATTR { return to[i + k]; };
    for (int64_t j = 0; j < done; j += kSide)
      if (i + kSide <= n)
        transpose_block(dst + j, row, src + j * stride + i, stride, kSide);
      else
        transpose_block(dst + j, row, src + j * stride + i, stride, n - i);
  }
  for (int64_t i = 0; i < n && done < width; ++i)
    for (int64_t j = done; j < width; ++j) dst[to[i] + j] = src[j * stride + i];
}

void TurnFromRows(float* dst, int64_t stride, const float* src, const int64_t* from, int64_t n,
                  int64_t width, int64_t count, int64_t step) {
  // A square at a time: its rows are summed, then transposed.
  HWY_ALIGN float rows[kSide * kSide] = {};
  for (int64_t i = 0; i < n; i += kSide)
    for (int64_t j = 0; j < width; j += kSide) {
      const int64_t deep = n - i < kSide ? n - i : kSide,
                    wide = width - j < kSide ? width - j : kSide;
      for (int64_t r = 0; r < deep; ++r) {
        const float* at = src + from[i + r] + j;
        float* sum = rows + r * kSide;
        for (int64_t k = 0; k < wide; ++k) sum[k] = at[k];
        for (int64_t c = 1; c < count; ++c) {
          at += step;
          for (int64_t k = 0; k < wide; ++k) sum[k] += at[k];
        }
      }
      float* to = dst + j * stride + i;
      if (deep == kSide && wide == kSide)
        transpose_block(
            to, [&](int64_t k) HWY_ATTR { return k * stride; }, rows, kSide, kSide);
      else
        for (int64_t k = 0; k < wide; ++k)
          for (int64_t r = 0; r < deep; ++r) to[k * stride + r] = rows[r * kSide + k];
    }
}

template <class T>
void transpose(void* dst, int64_t dp, const void* src, int64_t sq, int64_t p, int64_t q, Far far) {
  if constexpr (sizeof(T) == 4)
    transpose32(static_cast<uint32_t*>(dst), dp, static_cast<const uint32_t*>(src), sq, p, q, far);
  else
    transpose_scalar(static_cast<T*>(dst), dp, static_cast<const T*>(src), sq, p, q);
}

template <class T>
HWY_INLINE void run(T* dst, int64_t ds, const T* src, int64_t ss, int64_t n) {
  if (ds == 1 && ss == 1) {
    if (n * sizeof(T) > 256) {
      std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(T));
    } else {
      INGOT_IVDEP
      for (int64_t i = 0; i < n; ++i) dst[i] = src[i];
    }
  } else if (ds == 1 && ss == 0) {
    const T v = *src;
    for (int64_t i = 0; i < n; ++i) dst[i] = v;
  } else if (ds == 1) {
    for (int64_t i = 0; i < n; ++i) dst[i] = src[i * ss];
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i * ds] = src[i * ss];
  }
}

struct Axis {
  int64_t e, d, s;
};

/// Drops axes of size 1 and merges axes that are contiguous together. Returns how many are left (at
/// least 1).
HWY_INLINE int essential(Axis* ax, const int64_t* ds, const int64_t* ss, const int64_t* e, int nd) {
  int n = 0;
  for (int a = 0; a < nd; ++a) {
    if (e[a] == 1) continue;
    if (n && ax[n - 1].d == ds[a] * e[a] && ax[n - 1].s == ss[a] * e[a])
      ax[n - 1] = {ax[n - 1].e * e[a], ds[a], ss[a]};
    else
      ax[n++] = {e[a], ds[a], ss[a]};
  }
  if (n == 0) ax[n++] = {1, 1, 1};
  return n;
}

template <class T, class Body>
HWY_INLINE void odometer(const Axis* ax, int n, T* dst, const T* src, Body body) {
  int64_t i[kMaxAxes] = {};
  for (;;) {
    body(dst, src);
    int a = n - 1;
    for (; a >= 0; --a) {
      dst += ax[a].d;
      src += ax[a].s;
      if (++i[a] < ax[a].e) break;
      dst -= ax[a].d * ax[a].e;
      src -= ax[a].s * ax[a].e;
      i[a] = 0;
    }
    if (a < 0) return;
  }
}

template <class T>
void copy_typed(void* out, const int64_t* ds, const void* in, const int64_t* ss, const int64_t* e,
                int nd, Far far) {
  Axis ax[kMaxAxes];
  int n = essential(ax, ds, ss, e, nd);
  T* dst = static_cast<T*>(out);
  const T* src = static_cast<const T*>(in);
  // Blocked transposition: one axis unit-stride in the source, another in the destination.
  int p = -1, q = -1;
  for (int a = 0; a < n; ++a) {
    if (ax[a].s == 1 && ax[a].d != 1 && ax[a].e >= 4) p = a;
    if (ax[a].d == 1 && ax[a].s != 1 && ax[a].s != 0 && ax[a].e >= 4) q = a;
  }
  if (p >= 0 && q >= 0) {
    const Axis P = ax[p], Q = ax[q];
    int m = 0;
    for (int a = 0; a < n; ++a)
      if (a != p && a != q) ax[m++] = ax[a];
    odometer(ax, m, dst, src,
             [&](T* t, const T* f) HWY_ATTR { transpose<T>(t, P.d, f, Q.s, P.e, Q.e, far); });
    return;
  }
  const Axis last = ax[n - 1];
  odometer(ax, n - 1, dst, src,
           [&](T* t, const T* f) HWY_ATTR { run(t, last.d, f, last.s, last.e); });
}

void CopyBox(void* dst, const int64_t* ds, const void* src, const int64_t* ss, const int64_t* e,
             int nd, int esize, Far far) {
  switch (esize) {
    case 1:
      return copy_typed<uint8_t>(dst, ds, src, ss, e, nd, far);
    case 2:
      return copy_typed<uint16_t>(dst, ds, src, ss, e, nd, far);
    case 4:
      return copy_typed<uint32_t>(dst, ds, src, ss, e, nd, far);
    default:
      return copy_typed<uint64_t>(dst, ds, src, ss, e, nd, far);
  }
}

template <class T>
void repeat_typed(T* dst, const T* src, int64_t count, int64_t times) {
  for (int64_t c = 0; c < count; ++c, dst += times) {
    const T v = src[c];
    for (int64_t i = 0; i < times; ++i) dst[i] = v;
  }
}

void RepeatEach(void* dst, const void* src, int esize, int64_t count, int64_t times) {
  switch (esize) {
    case 1:
      return repeat_typed(static_cast<uint8_t*>(dst), static_cast<const uint8_t*>(src), count,
                          times);
    case 2:
      return repeat_typed(static_cast<uint16_t*>(dst), static_cast<const uint16_t*>(src), count,
                          times);
    case 4:
      return repeat_typed(static_cast<uint32_t*>(dst), static_cast<const uint32_t*>(src), count,
                          times);
    default:
      return repeat_typed(static_cast<uint64_t*>(dst), static_cast<const uint64_t*>(src), count,
                          times);
  }
}

HWY_INLINE void stream(void* out, const void* in, int64_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  uint8_t* dst = static_cast<uint8_t*>(out);
  const uint8_t* src = static_cast<const uint8_t*>(in);
  const int64_t head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(dst) & 63);
  if (bytes < head + 128) {
    std::memcpy(dst, src, static_cast<size_t>(bytes));
    return;
  }
  if (head) std::memcpy(dst, src, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + N <= bytes; i += N) hn::Stream(hn::LoadU(d, src + i), d, dst + i);
  if (i < bytes) std::memcpy(dst + i, src + i, static_cast<size_t>(bytes - i));
}

void StreamCopy(void* out, const void* in, int64_t bytes) { stream(out, in, bytes); }
void StreamRows(void* out, int64_t pitch, const void* in, int64_t rows, int64_t bytes) {
  for (int64_t r = 0; r < rows; ++r)
    stream(static_cast<char*>(out) + r * pitch, static_cast<const char*>(in) + r * bytes, bytes);
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {

void copy_box(void* dst, const int64_t* ds, const void* src, const int64_t* ss, const int64_t* e,
              int nd, int esize) {
  INGOT_DISPATCH(CopyBox)(dst, ds, src, ss, e, nd, esize, Far::Source);
}
static void dense_strides(int64_t* d, const int64_t* e, int nd) {
  int64_t s = 1;
  for (int a = nd - 1; a >= 0; --a) {
    d[a] = s;
    s *= e[a];
  }
}
void gather_box(void* dst, const void* src, const int64_t* ss, const int64_t* e, int nd,
                int esize) {
  int64_t d[kMaxAxes];
  dense_strides(d, e, nd);
  copy_box(dst, d, src, ss, e, nd, esize);
}
void scatter_box(void* dst, const int64_t* ds, const void* src, const int64_t* e, int nd, int esize,
                 Far far) {
  int64_t d[kMaxAxes];
  dense_strides(d, e, nd);
  INGOT_DISPATCH(CopyBox)(dst, ds, src, d, e, nd, esize, far);
}
void transpose_to_rows(float* dst, const int64_t* to, const float* src, int64_t stride, int64_t n,
                       int64_t width) {
  INGOT_DISPATCH(TurnToRows)(dst, to, src, stride, n, width);
}
void transpose_from_rows(float* dst, int64_t stride, const float* src, const int64_t* from,
                         int64_t n, int64_t width, int64_t count, int64_t step) {
  INGOT_DISPATCH(TurnFromRows)(dst, stride, src, from, n, width, count, step);
}
void fill_elements(void* dst, const void* value, int esize, int64_t n) {
  repeat_each(dst, value, esize, 1, n);
}
void repeat_each(void* dst, const void* src, int esize, int64_t count, int64_t times) {
  INGOT_DISPATCH(RepeatEach)(dst, src, esize, count, times);
}
void repeat_all(void* dst, const void* src, int esize, int64_t count, int64_t times) {
  const size_t bytes = static_cast<size_t>(count * esize);
  for (int64_t t = 0; t < times; ++t)
    std::memcpy(static_cast<char*>(dst) + static_cast<size_t>(t) * bytes, src, bytes);
}
void stream_copy(void* dst, const void* src, int64_t bytes) {
  INGOT_DISPATCH(StreamCopy)(dst, src, bytes);
}
void stream_rows(void* dst, int64_t pitch, const void* src, int64_t rows, int64_t bytes) {
  INGOT_DISPATCH(StreamRows)(dst, pitch, src, rows, bytes);
}
void finish_stream() { hwy::FlushStream(); }

}  // namespace ingot::cpu
#endif
