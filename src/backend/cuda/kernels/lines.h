// Kernels along an axis (scan, sort): a line is all elements along it, and a line's number gives
// its place in the other dims.
#pragma once
#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {

/// Fills in lines, line_dims, dims and the two offsets of Params from the call's operands: 0 the
/// result, 1 the input.
template <class Params>
void set_lines(Params& p, const LibrarySpec& spec) {
  const OperandSpec &out = spec.operands[0], &in = spec.operands[1];
  p.out_offset = out.offset, p.in_offset = in.offset;
  p.lines = 1;
  for (int d = 0; d < in.shape.size(); ++d) {
    if (d == axis_of(spec) || in.shape[d] == 1) continue;
    p.lines *= in.shape[d];
    p.dims[p.line_dims++] = {in.shape[d], out.stride[d], in.stride[d]};
  }
}

/// Device text: line_at(), the offsets of a line in the result and in the input.
extern const char* const kLinesText;

}  // namespace ingot::cuda
