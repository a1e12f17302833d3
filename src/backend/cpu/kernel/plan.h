// A Plan is a KernelSpec as steps over tiles. A tile is a box of the iteration space; its
// points are stored densely, in "layout order" of the axes: outer axes, then inner ones (by rows),
// or, when memory runs along the outer axes, inner axes first (by columns). Values of a tile live
// in a frame of buffers that each thread has; loads and stores of dense memory need no copy and
// work on the memory itself.
//
// Work is split in outer boxes: R outer points whose C inner points are visited tile by tile, once
// per round. A round ends with reductions; their results are Outer values of the next. When there
// are few boxes and long inner axes the inner tiles of a round are split over threads too, in
// pieces that depend on sizes only, and their accumulators are merged in order: results do not
// depend on the number of threads.
#pragma once
#include <memory>
#include <vector>

#include "backend/cpu/kernel/reduce.h"
#include "backend/cpu/kernel/tile_types.h"
#include "codegen/kernel_spec.h"

namespace ingot::cpu {

class RowCode;
class ColumnCode;

/// Is so much stored, in a kernel that accesses so much, that results should bypass the caches?
bool goes_past_caches(const KernelSpec& spec, int64_t stored_bytes);

/// How many elements of a tile a value has.
enum class Span : uint8_t {
  Full,     // one per point of the tile
  Inv,      // does not vary along the last axis of the layout
  Outer,    // one per outer point
  Uniform,  // one
};

/// An Affine with its strides in layout order.
struct Access {
  int64_t offset = 0;
  int64_t stride[kMaxAxes] = {};
};
struct AccessBound {
  Access at;
  int64_t extent = 0;
};

/// Side data of a step that touches memory.
struct MemoryRef {
  Access at;
  std::vector<AccessBound> bounds;
  int buffer = -1;
  int esize = 0;
  DType dtype = DType::Float32;
  uint64_t fill = 0;  // bits of one element
  // Indirect loads
  Span index_span = Span::Full;
  TileType index_type = TileType::I64;
  int64_t index_stride = 0, index_extent = 0;
  int site = -1;
  // Random, Arg
  int slot = -1;
  int64_t counter = 0;
  bool dense = false;  // Index, Random: one run per tile
  bool ahead = false;  // Bind: the next tile follows in memory and is worth prefetching
  bool predicated = false;
  bool stream = false;  // Scatter: rows bypassing the caches
};

enum class StepKind : uint8_t {
  Call,      // fn(dst, a, b, c, n)
  Bind,      // dst := address of dense memory
  BindRow,   // dst := its position in a buffer that holds the full row
  Gather,    // copy of a strided box
  Bounded,   // the same where bounds hold, fill elsewhere
  Indirect,  // positions that depend on the index values a
  Index,
  InBounds,
  Random,
  Arg,
  Expand,   // dst (span) := a (from), repeated
  Store,    // a to dense memory
  Stream,   // the same, bypassing the caches
  Scatter,  // a to a strided box
  InitAcc,
  Reduce,
  Finish,  // accumulator to dst
};

struct Step {
  StepKind kind;
  Span span = Span::Full;                    // of the result
  Span from = Span::Full;                    // Expand
  uint8_t esize = 0;                         // Expand, BindRow
  int32_t dst = -1, a = -1, b = -1, c = -1;  // value indices
  TileFn fn = nullptr;
  const Reducer* reducer = nullptr;
  int32_t ref = -1;  // MemoryRef
  int64_t pitch =
      0;  // Reduce by columns: elements between rows, when they are read in place; 0: a dense tile
  int32_t acc = -1;  // offset of the accumulator in the box's area, per outer point
};

/// Where a value lives. Memory: set by Bind.
enum class Segment : uint8_t { Memory, Constant, Tile, Box };
struct ValuePlace {
  Segment segment = Segment::Memory;
  int64_t offset = 0;
};

struct Round {
  std::vector<Step> outer;  // before the inner tiles
  std::vector<Step> init;   // accumulators
  std::vector<Step> elem;   // per inner tile
  bool reduces = false;
  std::shared_ptr<ColumnCode> columns;  // machine code instead of elem
  std::vector<int32_t> accumulators;    // its accumulators, as offsets in the box's area
};

struct Plan {
  int n_axes = 0, outer_lo = 0, outer_hi = 0, inner_lo = 0,
      inner_hi = 0;  // ranges of layout positions
  bool by_columns = false;
  int64_t extent[kMaxAxes] = {}, tile[kMaxAxes] = {}, tiles[kMaxAxes] = {};
  int64_t boxes = 1, inner_tiles = 1;
  int64_t R = 1, C = 1, inner_size = 1;  // outer points of a box, inner points of a tile
  int64_t work = 0;                      // elements of the space

  std::vector<Step> prologue;  // Uniform values: once per piece of work
  std::vector<Round> rounds;
  std::vector<MemoryRef> refs;
  std::vector<ValuePlace> places;
  std::vector<std::unique_ptr<uint64_t[]>> constants;  // ValuePlace::offset is an index
  int64_t tile_bytes = 0;                              // of the frame
  int64_t box_bytes = 0;  // Outer values; in the frame, or in scratch when split
  int64_t acc_bytes = 0;
  int n_buffers = 0;
  bool all_predicated = false;
  bool streams = false;
  int ahead_lines = 0;  // cache lines of the next tile to prefetch at each loop over this one

  std::shared_ptr<RowCode> rows;  // machine code instead of steps

  /// A thread's memory for it, besides scratch: tiles, then the locations of values, then
  /// addresses for column code.
  size_t values_at() const {
    return static_cast<size_t>((tile_bytes + box_bytes + acc_bytes + 63) / 64 * 64);
  }
  size_t thread_bytes = 0;

  // Split: rounds are separate passes over boxes x splits.
  int64_t splits = 1, tiles_per_split = 0;
  int64_t scratch_bytes() const {
    return splits == 1 ? 0 : boxes * (box_bytes + acc_bytes * (splits + 1));
  }
};

std::unique_ptr<Plan> make_plan(const KernelSpec& spec);

}  // namespace ingot::cpu
