// Generic tile loops of float32 and float64.
#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernel/loops_float.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "backend/cpu/kernel/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {

template <class T>
void uniform_loop(void* out, const void* a, const void*, const void*, int64_t n) {
  T* r = static_cast<T*>(out);
  const uint32_t* x = static_cast<const uint32_t*>(a);
  INGOT_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (sizeof(T) == 4)
      r[i] = static_cast<float>(static_cast<int32_t>(x[i] >> 8)) * 0x1p-24f;
    else
      r[i] = static_cast<double>(x[i]) * 0x1p-32;
  }
}

void FillFloat(OpTable& t) {
  add_type<float>(t, TileType::F32);
  add_type<double>(t, TileType::F64);
  add_casts<float>(t, TileType::F32);
  add_casts<double>(t, TileType::F64);
  add_where<float>(t, TileType::F32);
  add_where<double>(t, TileType::F64);
  t.uniform[0] = uniform_loop<double>;
  t.uniform[1] = uniform_loop<float>;
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {

void fill_float_loops(OpTable& t) { INGOT_DISPATCH(FillFloat)(t); }

const OpTable& op_table() {
  static const OpTable* table = [] {
    auto* t = new OpTable;
    fill_float_loops(*t);
    fill_int_loops(*t);
    fill_simd_loops(*t);
    return t;
  }();
  return *table;
}

TileFn find_op(Op op, TileType in, int scalars) {
  return op_table().fn[static_cast<int>(op)][static_cast<int>(in)][scalars];
}
TileFn find_cast(TileType from, TileType to) {
  return op_table().cast[static_cast<int>(from)][static_cast<int>(to)];
}
TileFn find_uniform(TileType to) { return op_table().uniform[static_cast<int>(to)]; }
static int half(DType t) { return t == DType::BFloat16; }
TileFn find_round(DType to) { return op_table().round[half(to)]; }
TileFn find_widen(DType from) { return op_table().widen[half(from)]; }
TileFn find_narrow(DType to) { return op_table().narrow[half(to)]; }

TileFn find_exp_of_difference(int scalars) { return op_table().exp_sub[scalars]; }

TileFn find_pair(Op inner, Op outer, bool swapped, int scalars) {
  auto number = [](Op op) {
    return op == Op::Add ? 0 : op == Op::Sub ? 1 : op == Op::Mul ? 2 : -1;
  };
  const int i = number(inner), o = number(outer);
  return i < 0 || o < 0 ? nullptr : op_table().pair[i][o][swapped][scalars];
}

}  // namespace ingot::cpu
#endif
