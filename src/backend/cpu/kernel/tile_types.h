// The element types values have inside a tile, and the shape of the loops that work on tiles.
// 16-bit floats live in tiles as float32 already rounded to their type, so every loop written for
// float32 serves them too.
#pragma once
#include <cstdint>

#include "graph/op.h"
#include "ingot/dtype.h"

namespace ingot::cpu {

enum class TileType : uint8_t { F64, F32, I64, I32, I16, I8, U8, Bool };
inline constexpr int kTileTypes = 8;

constexpr TileType tile_type(DType t) {
  constexpr TileType types[kDTypeCount] = {
      TileType::F64, TileType::F32, TileType::F32, TileType::F32, TileType::I64,
      TileType::I32, TileType::I16, TileType::I8,  TileType::U8,  TileType::Bool};
  return types[static_cast<int>(t)];
}
constexpr int tile_size(TileType t) {
  constexpr int sizes[kTileTypes] = {8, 4, 8, 4, 2, 1, 1, 1};
  return sizes[static_cast<int>(t)];
}
constexpr int tile_size(DType t) { return tile_size(tile_type(t)); }

/// One loop: out[i] = f(a[i], b[i], c[i]) for i < n. out may be exactly one of the operands.
using TileFn = void (*)(void* out, const void* a, const void* b, const void* c, int64_t n);

/// Operands read as one element for the whole loop. Not every loop has such variants:
/// find_op then returns nullptr.
enum ScalarMask : int { kNoScalar = 0, kScalarA = 1, kScalarB = 2, kScalarC = 4 };

/// The loop of an elementwise primitive on operands of type `in` (for Where: the type of its
/// values).
TileFn find_op(Op op, TileType in, int scalars);
/// out = f(f2(a, b), c), the two rounded separately: Add, Sub, Mul after Mul, Add, Sub on float32;
/// nullptr for others. `swapped`: the inner result is the second operand of the outer op.
TileFn find_pair(Op inner, Op outer, bool swapped, int scalars);
/// out = exp(a - b) on float32, b a tile or a scalar.
TileFn find_exp_of_difference(int scalars);
TileFn find_cast(TileType from, TileType to);
/// int32 bits to [0, 1).
TileFn find_uniform(TileType to);
/// float32 rounded to a 16-bit type and widened again, in place or not.
TileFn find_round(DType to);
/// 16-bit memory to float32 tile, and back with rounding to nearest even.
TileFn find_widen(DType from);
TileFn find_narrow(DType to);

}  // namespace ingot::cpu
