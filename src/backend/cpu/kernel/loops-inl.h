// The generic tile loops: one per row of elementwise.def and type, made from the row's own C
// expression and left to the compiler to vectorise. Included once per instruction set by
// loops_float.cpp and loops_int.cpp.
#if defined(INGOT_CPU_LOOPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_CPU_LOOPS_INL
#undef INGOT_CPU_LOOPS_INL
#else
#define INGOT_CPU_LOOPS_INL
#endif

#include "backend/cpu/kernel/loop_tables.h"
#include "backend/cpu/support/scalar_math.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {

#define INGOT_EW(E, name, arity_, rule_, expr, ga, gb)       \
  struct E##Fn {                                             \
    static constexpr int arity = arity_;                     \
    static constexpr TypeRule rule = TypeRule::rule_;        \
    static constexpr Op op = Op::E;                          \
    template <class T>                                       \
    static HWY_INLINE auto call(T a, [[maybe_unused]] T b) { \
      return expr;                                           \
    }                                                        \
  };
#include "graph/elementwise.def"
#undef INGOT_EW

template <class T, TypeRule rule>
constexpr bool allowed() {
  switch (rule) {
    case TypeRule::Float:
      return is_fp<T>;
    case TypeRule::Int:
      return !is_fp<T>;
    case TypeRule::Num:
      return !std::is_same_v<T, bool>;
    default:
      return true;
  }
}

// ivdep: out may be one of the operands, element for element, which is no dependence between
// iterations.
template <class F, class T, class R, bool sa, bool sb>
void loop(void* out, const void* a, const void* b, const void*, int64_t n) {
  R* HWY_RESTRICT r = static_cast<R*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  const T x0 = sa ? *x : T(0), y0 = sb ? *y : T(0);
  INGOT_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (F::arity == 1)
      r[i] = static_cast<R>(F::template call<T>(x[i], T(0)));
    else
      r[i] = static_cast<R>(F::template call<T>(sa ? x0 : x[i], sb ? y0 : y[i]));
  }
}

template <class F, class T>
void add_loops(OpTable& t, TileType type, bool scalars) {
  if constexpr (allowed<T, F::rule>()) {
    using R = std::conditional_t<F::rule == TypeRule::Bool, bool, T>;
    TileFn* slot = t.fn[static_cast<int>(F::op)][static_cast<int>(type)];
    slot[kNoScalar] = loop<F, T, R, false, false>;
    if constexpr (F::arity == 2 && is_fp<T>) {
      if (scalars) {
        slot[kScalarA] = loop<F, T, R, true, false>;
        slot[kScalarB] = loop<F, T, R, false, true>;
      }
    }
  }
}

template <class T>
void add_type(OpTable& t, TileType type) {
#define INGOT_EW(E, name, arity_, rule_, expr, ga, gb) add_loops<E##Fn, T>(t, type, true);
#include "graph/elementwise.def"
#undef INGOT_EW
}

template <class From, class To>
void cast_loop(void* out, const void* a, const void*, const void*, int64_t n) {
  To* r = static_cast<To*>(out);
  const From* x = static_cast<const From*>(a);
  INGOT_IVDEP
  for (int64_t i = 0; i < n; ++i) r[i] = ig_cast<To, From>(x[i]);
}

template <class From>
void add_casts(OpTable& t, TileType from) {
  TileFn* row = t.cast[static_cast<int>(from)];
  row[static_cast<int>(TileType::F64)] = cast_loop<From, double>;
  row[static_cast<int>(TileType::F32)] = cast_loop<From, float>;
  row[static_cast<int>(TileType::I64)] = cast_loop<From, int64_t>;
  row[static_cast<int>(TileType::I32)] = cast_loop<From, int32_t>;
  row[static_cast<int>(TileType::I16)] = cast_loop<From, int16_t>;
  row[static_cast<int>(TileType::I8)] = cast_loop<From, int8_t>;
  row[static_cast<int>(TileType::U8)] = cast_loop<From, uint8_t>;
  row[static_cast<int>(TileType::Bool)] = cast_loop<From, bool>;
}

template <class T, bool sb, bool sc>
void where_loop(void* out, const void* a, const void* b, const void* c, int64_t n) {
  T* r = static_cast<T*>(out);
  const uint8_t* m = static_cast<const uint8_t*>(a);
  const T* x = static_cast<const T*>(b);
  const T* y = static_cast<const T*>(c);
  const T x0 = sb ? *x : T(0), y0 = sc ? *y : T(0);
  INGOT_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    const T p = sb ? x0 : x[i], q = sc ? y0 : y[i];
    r[i] = m[i] ? p : q;
  }
}

template <class T>
void add_where(OpTable& t, TileType type) {
  TileFn* slot = t.fn[static_cast<int>(Op::Where)][static_cast<int>(type)];
  slot[0] = where_loop<T, false, false>;
  slot[kScalarB] = where_loop<T, true, false>;
  slot[kScalarC] = where_loop<T, false, true>;
  slot[kScalarB | kScalarC] = where_loop<T, true, true>;
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
