// The tables of tile loops. Each SIMD file fills its part once, for the best instruction set of
// this machine.
#pragma once
#include "backend/cpu/kernel/tile_types.h"

namespace ingot::cpu {

inline constexpr int kOps = static_cast<int>(Op::Count_);
inline constexpr int kScalarVariants = 8;

struct OpTable {
  TileFn fn[kOps][kTileTypes][kScalarVariants] = {};
  TileFn cast[kTileTypes][kTileTypes] = {};
  TileFn uniform[2] = {};                               // float64, float32
  TileFn round[2] = {}, widen[2] = {}, narrow[2] = {};  // float16, bfloat16
  TileFn exp_sub[kScalarVariants] = {};
  TileFn pair[3][3][2][kScalarVariants] = {};  // inner, outer in Add, Sub, Mul; swapped; scalars
};

void fill_float_loops(OpTable& t);
void fill_int_loops(OpTable& t);
void fill_simd_loops(OpTable& t);  // replaces the hot ones: last
const OpTable& op_table();

}  // namespace ingot::cpu
