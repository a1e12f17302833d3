// Generic tile loops of the integer types and bool.
#include "backend/cpu/support/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernel/loops_int.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "backend/cpu/kernel/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {

template <class T>
void add_int(OpTable& t, TileType type) {
  add_type<T>(t, type);
  add_casts<T>(t, type);
  add_where<T>(t, type);
}

void FillInt(OpTable& t) {
  add_int<int64_t>(t, TileType::I64);
  add_int<int32_t>(t, TileType::I32);
  add_int<int16_t>(t, TileType::I16);
  add_int<int8_t>(t, TileType::I8);
  add_int<uint8_t>(t, TileType::U8);
  add_int<bool>(t, TileType::Bool);
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {
void fill_int_loops(OpTable& t) { INGOT_DISPATCH(FillInt)(t); }
}  // namespace ingot::cpu
#endif
