// Scan: running values along an axis, in an order that depends on the shape alone. Two kernels: one
// for axes that are dense in memory (scan_rows.cpp), one for axes whose neighbouring lines are
// (scan_columns.cpp). Where lines are few, both cut each line into chunks: the chunks' totals are
// found first, then scanned, then each chunk starts from what came before it.
#pragma once
#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {

INGOT_KERNEL_PARAMS(ScanParams, {
  Address out;
  Address in;
  long long lines;
  long long length;      // of a line
  long long chunk;       // elements
  long long chunks;      // of a line
  long long out_stride;  // along the axis
  long long in_stride;
  long long out_offset;
  long long in_offset;
  long long line_dims;
  struct {
    long long size;
    long long out;
    long long in;
  } dims[14];
});

/// Device text: the states a scan may carry, and line_at().
std::string scan_text();
/// The state of a call: a type of scan_text().
std::string scan_state(const LibrarySpec& spec);
CudaKernel scan_rows(const LibrarySpec& spec, ScanParams p);
CudaKernel scan_columns(const LibrarySpec& spec, ScanParams p);

}  // namespace ingot::cuda
