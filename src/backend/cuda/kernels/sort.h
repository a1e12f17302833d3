// Sort: where the elements along an axis stand in sorted order (a stable argsort), the first
// `wanted` places of each line. Elements become unsigned keys of the same order. Short lines are
// sorted in shared memory (sort_short.cpp), long ones by a radix sort (sort_long.cpp).
#pragma once
#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {

INGOT_KERNEL_PARAMS(SortParams, {
  Address out;
  Address in;
  long long lines;
  long long length;      // of a line
  long long wanted;      // places of each line
  long long out_stride;  // along the axis
  long long in_stride;
  long long out_offset;
  long long in_offset;
  long long size;  // short lines: the smallest power of two that holds one
  long long lines_per_block;
  long long tiles;  // long lines: of a line
  struct {
    long long keys;
    long long places;
  } copies[2];  // long lines: byte offsets in scratch, of the counts too
  long long counts;
  long long line_dims;
  struct {
    long long size;
    long long out;
    long long in;
  } dims[10];
});

/// Device text: line_at() and SortKey, the key of an element.
std::string sort_text();
CudaKernel sort_short(const LibrarySpec& spec, SortParams p);
CudaKernel sort_long(const LibrarySpec& spec, SortParams p);

}  // namespace ingot::cuda
