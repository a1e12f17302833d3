// See reduce.h. The loops keep many independent lanes so that the compiler vectorises them.
#include "backend/cpu/kernel/reduce.h"

#include <limits>
#include <type_traits>

#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernel/reduce.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

#ifndef INGOT_CPU_REDUCE_TABLE
#define INGOT_CPU_REDUCE_TABLE
namespace ingot::cpu {
struct ReduceTable {
  Reducer r[6][kTileTypes];
};
}  // namespace ingot::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kLanes = 64, kFlush = 4096;

template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
/// What the lanes of a tile hold: float32 sums stay float32 for at most kFlush / kLanes steps.
template <class T>
using Lane = std::conditional_t<std::is_same_v<T, float>, float, Wide<T>>;

template <class T>
struct SumOf {
  using Acc = Wide<T>;
  using L = Lane<T>;
  static constexpr L start() { return 0; }
  static HWY_INLINE L step(L a, L b) { return static_cast<L>(a + b); }
  static HWY_INLINE Acc join(Acc a, Acc b) { return a + b; }
};
template <class T>
struct ProdOf {
  using Acc = Wide<T>;
  using L =
      Wide<T>;  // products of a tile may leave the range of float32 though the result does not
  static constexpr L start() { return 1; }
  static HWY_INLINE L step(L a, L b) { return a * b; }
  static HWY_INLINE Acc join(Acc a, Acc b) { return a * b; }
};
template <class T, bool max>
struct BestOf {
  using Acc = T;
  using L = T;
  static constexpr L start() {
    using lim = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>)
      return max ? -lim::infinity() : lim::infinity();
    else
      return max ? lim::min() : lim::max();
  }
  static HWY_INLINE L step(L a, L b) { return ((max ? b > a : b < a) || b != b) ? b : a; }
  static HWY_INLINE Acc join(Acc a, Acc b) { return step(a, b); }
};

template <class Op, class T>
HWY_INLINE typename Op::Acc reduce_run(const T* x, int64_t n) {
  using L = typename Op::L;
  using A = typename Op::Acc;
  A total = static_cast<A>(Op::start());
  int64_t i = 0;
  while (n - i >= kLanes) {
    L lane[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) lane[l] = Op::start();
    const int64_t end = i + (n - i < kFlush ? (n - i) / kLanes * kLanes : kFlush);
    for (; i < end; i += kLanes)
      for (int64_t l = 0; l < kLanes; ++l) lane[l] = Op::step(lane[l], static_cast<L>(x[i + l]));
    for (int64_t half = kLanes / 2; half >= 8; half /= 2)
      for (int64_t l = 0; l < half; ++l) lane[l] = Op::step(lane[l], lane[l + half]);
    for (int64_t l = 0; l < 8; ++l) total = Op::join(total, static_cast<A>(lane[l]));
  }
  for (; i < n; ++i) total = Op::join(total, static_cast<A>(static_cast<L>(x[i])));
  return total;
}

template <class Op, class T>
void rows_loop(void* acc, const void* x, int64_t R, int64_t C, int64_t) {
  auto* a = static_cast<typename Op::Acc*>(acc);
  const T* p = static_cast<const T*>(x);
  for (int64_t r = 0; r < R; ++r, p += C) a[r] = Op::join(a[r], reduce_run<Op, T>(p, C));
}

template <class Op, class T>
void cols_loop(void* acc, const void* x, int64_t R, int64_t C, int64_t, int64_t pitch) {
  using L = typename Op::L;
  using A = typename Op::Acc;
  auto* HWY_RESTRICT a = static_cast<A*>(acc);
  const T* HWY_RESTRICT p = static_cast<const T*>(x);
  auto two = [](const T* q, int64_t step)
                 HWY_ATTR { return Op::step(static_cast<L>(q[0]), static_cast<L>(q[step])); };
  int64_t c = 0;
  for (; c + 8 <= C; c += 8, p += 8 * pitch)
    for (int64_t r = 0; r < R; ++r) {
      const T* q = p + r;
      const L s = Op::step(two(q, pitch), two(q + 2 * pitch, pitch)),
              t = Op::step(two(q + 4 * pitch, pitch), two(q + 6 * pitch, pitch));
      a[r] = Op::join(a[r], static_cast<A>(Op::step(s, t)));
    }
  for (; c < C; ++c, p += pitch)
    for (int64_t r = 0; r < R; ++r) a[r] = Op::join(a[r], static_cast<A>(static_cast<L>(p[r])));
}

template <class Op>
void init_loop(void* acc, int64_t R) {
  using A = typename Op::Acc;
  for (int64_t r = 0; r < R; ++r) static_cast<A*>(acc)[r] = static_cast<A>(Op::start());
}
template <class Op>
void merge_loop(void* acc, const void* later, int64_t R) {
  using A = typename Op::Acc;
  auto* HWY_RESTRICT a = static_cast<A*>(acc);
  const A* HWY_RESTRICT b = static_cast<const A*>(later);
  for (int64_t r = 0; r < R; ++r) a[r] = Op::join(a[r], b[r]);
}

// ---- float32 sums, the hottest

/// Sum of x[i], or of x[i] * y[i], over a run: float32 lanes for at most kFlush elements, float64
/// beyond.
template <bool dot>
HWY_INLINE double sum_run(const float* HWY_RESTRICT x, const float* HWY_RESTRICT y, int64_t n) {
  const hn::ScalableTag<float> d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  auto at = [&](int64_t i) HWY_ATTR {
    if constexpr (dot)
      return hn::Mul(hn::LoadU(d, x + i), hn::LoadU(d, y + i));
    else
      return hn::LoadU(d, x + i);
  };
  double total = 0;
  int64_t i = 0;
  while (n - i >= 4 * N) {
    auto a = hn::Zero(d), b = a, c = a, e = a;
    const int64_t end = n - i < kFlush ? n - (n - i) % (4 * N) : i + kFlush;
    for (; i < end; i += 4 * N) {
      a = hn::Add(a, at(i));
      b = hn::Add(b, at(i + N));
      c = hn::Add(c, at(i + 2 * N));
      e = hn::Add(e, at(i + 3 * N));
    }
    const auto s = hn::Add(hn::Add(a, b), hn::Add(c, e));
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, s)));
  }
  for (; i < n; ++i) total += static_cast<double>(dot ? x[i] * y[i] : x[i]);
  return total;
}

void SumRows(void* acc, const void* x, int64_t R, int64_t C, int64_t) {
  const float* p = static_cast<const float*>(x);
  for (int64_t r = 0; r < R; ++r, p += C) static_cast<double*>(acc)[r] += sum_run<false>(p, p, C);
}
void DotRows(void* acc, const void* x, const void* y, int64_t R, int64_t C) {
  const float *p = static_cast<const float*>(x), *q = static_cast<const float*>(y);
  for (int64_t r = 0; r < R; ++r, p += C, q += C)
    static_cast<double*>(acc)[r] += sum_run<true>(p, q, C);
}
void DotCols(void* acc, const void* x, const void* y, int64_t R, int64_t C) {
  double* HWY_RESTRICT a = static_cast<double*>(acc);
  const float *p = static_cast<const float*>(x), *q = static_cast<const float*>(y);
  int64_t c = 0;
  for (; c + 4 <= C; c += 4, p += 4 * R, q += 4 * R)
    for (int64_t r = 0; r < R; ++r) {
      const float s = p[r] * q[r] + p[R + r] * q[R + r],
                  t = p[2 * R + r] * q[2 * R + r] + p[3 * R + r] * q[3 * R + r];
      a[r] += static_cast<double>(s + t);
    }
  for (; c < C; ++c, p += R, q += R)
    for (int64_t r = 0; r < R; ++r) a[r] += static_cast<double>(p[r] * q[r]);
}

// ---- Positions

template <class T, bool max>
struct Arg {
  static HWY_INLINE bool better(T b, T a) { return (max ? b > a : b < a) || (b != b && a == a); }
  static int64_t* index(void* acc) { return static_cast<int64_t*>(acc); }
  static T* value(void* acc, int64_t R) { return reinterpret_cast<T*>(index(acc) + R); }

  static void init(void* acc, int64_t R) {
    for (int64_t r = 0; r < R; ++r) {
      index(acc)[r] = -1;
      value(acc, R)[r] = BestOf<T, max>::start();
    }
  }
  static void offer(int64_t& i, T& v, int64_t j, T w) {
    if (i < 0 || better(w, v)) {
      i = j;
      v = w;
    }
  }
  static int64_t first(const T* x, int64_t n, T v) {
    if (v != v) {
      for (int64_t i = 0; i < n; ++i)
        if (x[i] != x[i]) return i;
    }
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      uint8_t any = 0;
      for (int64_t l = 0; l < kLanes; ++l) any = static_cast<uint8_t>(any | (x[i + l] == v));
      if (any) break;
    }
    while (i < n && !(x[i] == v)) ++i;
    return i;
  }
  static void rows(void* acc, const void* x, int64_t R, int64_t C, int64_t index0) {
    const T* p = static_cast<const T*>(x);
    for (int64_t r = 0; r < R; ++r, p += C) {
      const T v = reduce_run<BestOf<T, max>, T>(p, C);
      offer(index(acc)[r], value(acc, R)[r], index0 + first(p, C, v), v);
    }
  }
  static void cols(void* acc, const void* x, int64_t R, int64_t C, int64_t index0, int64_t pitch) {
    const T* HWY_RESTRICT p = static_cast<const T*>(x);
    int64_t* HWY_RESTRICT id = index(acc);
    T* HWY_RESTRICT val = value(acc, R);
    for (int64_t c = 0; c < C; ++c, p += pitch)
      for (int64_t r = 0; r < R; ++r) {
        const bool take = id[r] < 0 || better(p[r], val[r]);
        id[r] = take ? index0 + c : id[r];
        val[r] = take ? p[r] : val[r];
      }
  }
  static void merge(void* acc, const void* later, int64_t R) {
    void* b = const_cast<void*>(later);
    for (int64_t r = 0; r < R; ++r)
      if (index(b)[r] >= 0) offer(index(acc)[r], value(acc, R)[r], index(b)[r], value(b, R)[r]);
  }
};

template <class T>
void add_type(ReduceTable& t, TileType type) {
  const int k = static_cast<int>(type);
  const TileType wide = std::is_floating_point_v<T> ? TileType::F64 : TileType::I64;
  auto plain = [&]<class Op>(Op, TileType acc) {
    return Reducer{acc,
                   static_cast<int>(sizeof(typename Op::Acc)),
                   init_loop<Op>,
                   rows_loop<Op, T>,
                   cols_loop<Op, T>,
                   merge_loop<Op>};
  };
  auto arg = [&]<class A>(A) {
    return Reducer{TileType::I64, static_cast<int>(8 + sizeof(T)), A::init, A::rows, A::cols,
                   A::merge};
  };
  t.r[0][k] = plain(SumOf<T>{}, wide);
  t.r[1][k] = plain(ProdOf<T>{}, wide);
  t.r[2][k] = plain(BestOf<T, true>{}, type);
  t.r[3][k] = plain(BestOf<T, false>{}, type);
  t.r[4][k] = arg(Arg<T, true>{});
  t.r[5][k] = arg(Arg<T, false>{});
}

void FillReduce(ReduceTable& t) {
  add_type<double>(t, TileType::F64);
  add_type<float>(t, TileType::F32);
  add_type<int64_t>(t, TileType::I64);
  add_type<int32_t>(t, TileType::I32);
  add_type<int16_t>(t, TileType::I16);
  add_type<int8_t>(t, TileType::I8);
  add_type<uint8_t>(t, TileType::U8);
  add_type<bool>(t, TileType::Bool);
  Reducer& sum = t.r[0][static_cast<int>(TileType::F32)];
  sum.rows = SumRows;
  sum.dot_rows = DotRows;
  sum.dot_cols = DotCols;
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {
const Reducer& find_reducer(Op op, TileType in) {
  static const ReduceTable* table = [] {
    auto* t = new ReduceTable;
    INGOT_DISPATCH(FillReduce)(*t);
    return t;
  }();
  return table->r[static_cast<int>(op) - static_cast<int>(Op::Sum)][static_cast<int>(in)];
}
}  // namespace ingot::cpu
#endif
