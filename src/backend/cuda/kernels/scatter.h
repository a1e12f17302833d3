// ScatterAdd and Scatter: out[.., index, ..] combined with value, the same bits every time, without
// float atomics. ScatterAdd begins with 0 and adds; Scatter begins with base and sets, multiplies,
// or takes the larger or smaller. Two kernels: a thread per line (scatter_lines.cpp), and sorting
// by index (scatter_sorted.cpp), for rows of values that share an index (embeddings) and for lines
// that are long and few.
#pragma once
#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {

INGOT_KERNEL_PARAMS(ScatterParams, {
  Address operands[4];  // out, base (Scatter), index, value
  long long
      positions;     // of a line, along the axis; of all lines when each value is sorted by itself
  long long extent;  // of the indexed axis
  long long site;    // for the error record
  long long out_stride;  // along the axis
  long long index_stride;
  long long value_stride;
  long long out_offset;
  long long index_offset;
  long long value_offset;
  long long elements;  // of out
  long long columns;   // lines, or values of a row
  long long line_length;
  // Sorting: see scatter_sorted.cpp.
  long long tiles;
  long long chunks;
  long long column_blocks;
  struct {
    long long keys;
    long long positions;
  } copies[2];  // byte offsets in scratch, of counts and pieces too
  long long counts;
  long long pieces;
  long long keys;  // below this, a key stands for a place in out
  long long line_dims;
  struct {
    long long size;
    long long out;
    long long index;
    long long value;
  } dims[10];
  long long base_offset;
  long long base_dims;
  struct {
    long long size;
    long long stride;
  } base[10];
});

/// Device text: combining, place() and begin().
extern const char* const kScatterText;
/// D, Index, Op (how values combine), kBased (a Scatter) and kIndex (the operand).
CallTraits scatter_traits(const LibrarySpec& spec);
CudaKernel scatter_lines(const LibrarySpec& spec, const ScatterParams& p, int multiprocessors);
/// `singles`: each value is sorted by its place in out; else each row by its index.
CudaKernel scatter_sorted(const LibrarySpec& spec, ScatterParams p, bool singles,
                          int multiprocessors);
/// Blocks of 256 threads for a grid-stride loop.
int64_t sweep_blocks(int64_t work, int64_t most);

inline constexpr int64_t kScatterChunk = 64, kScatterColumns = 128;

}  // namespace ingot::cuda
