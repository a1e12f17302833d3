// Loops that reduce tiles into accumulators. A tile holds C elements for each of R outer points,
// either row by row (rows: the C elements of a point are neighbours) or column by column (cols: the
// R points are neighbours).
//
// Sums and products accumulate in float64 or int64, with float32 lanes inside a tile only, so
// accuracy does not depend on how long the reduced axis is. Max, Min keep the type. ArgMax, ArgMin
// keep int64 positions, then the values.
#pragma once
#include "backend/cpu/kernel/tile_types.h"

namespace ingot::cpu {

struct Reducer {
  TileType acc_type;  // what `finish` reads: the accumulator is an array of these (positions for
                      // ArgMax, ArgMin)
  int acc_bytes;      // per outer point
  void (*init)(void* acc, int64_t R);
  /// index0: position, in the reduced axes, of the first of the C elements.
  void (*rows)(void* acc, const void* x, int64_t R, int64_t C, int64_t index0);
  /// pitch: elements between the rows of x (R in a dense tile).
  void (*cols)(void* acc, const void* x, int64_t R, int64_t C, int64_t index0, int64_t pitch);
  /// acc = acc combined with `later`, which covers later positions.
  void (*merge)(void* acc, const void* later, int64_t R);
  /// Sum of float32 products, each rounded, without a tile of them: with the signatures of rows and
  /// cols; nullptr for other reductions.
  void (*dot_rows)(void* acc, const void* x, const void* y, int64_t R, int64_t C) = nullptr;
  void (*dot_cols)(void* acc, const void* x, const void* y, int64_t R, int64_t C) = nullptr;
};
const Reducer& find_reducer(Op op, TileType in);

}  // namespace ingot::cpu
