// A convolution call reduced to what its loops need: three dims always, missing ones of size 1 in
// front.
#pragma once
#include <cstdint>

#include "codegen/kernel_spec.h"

namespace ingot {

struct ConvShape {
  int64_t N, C, O, G;
  int64_t x[3], y[3], k[3], stride[3], dilation[3], pad[3], behind[3];
  /// Strides in elements: batch (or out), channel, dims.
  struct Place {
    int64_t outer = 0, channel = 0, dim[3] = {0, 0, 0}, offset = 0;
    DType dtype = DType::Float32;
  };
  Place px, pw, py;
  int ix, iw, iy;  // which operands they are
  int n;           // dims

  explicit ConvShape(const LibrarySpec& s) {
    iy = s.op == Op::Conv ? 0 : s.op == Op::ConvGradInput ? 1 : 2;
    ix = s.op == Op::ConvGradInput ? 0 : 1;
    iw = s.op == Op::ConvGradWeight ? 0 : 2;
    const OperandSpec &ox = s.operands[ix], &ow = s.operands[iw], &oy = s.operands[iy];
    n = ox.shape.size() - 2;
    N = ox.shape[0];
    C = ox.shape[1];
    O = ow.shape[0];
    const ConvAttrs& a = s.attrs.as<ConvAttrs>();
    G = a.groups;
    px = place(ox);
    pw = place(ow);
    py = place(oy);
    for (int d = 0; d < 3; ++d) {
      const int from = d - (3 - n);
      const bool there = from >= 0;
      x[d] = there ? ox.shape[2 + from] : 1;
      y[d] = there ? oy.shape[2 + from] : 1;
      k[d] = there ? ow.shape[2 + from] : 1;
      stride[d] = there ? a.stride[from] : 1;
      dilation[d] = there ? a.dilation[from] : 1;
      pad[d] = there ? a.front[from] : 0;
      behind[d] = there ? a.behind[from] : 0;
    }
  }
  int64_t xs() const { return x[0] * x[1] * x[2]; }
  int64_t ys() const { return y[0] * y[1] * y[2]; }
  int64_t ks() const { return k[0] * k[1] * k[2]; }

 private:
  Place place(const OperandSpec& o) const {
    Place p;
    p.outer = o.stride[0];
    p.channel = o.stride[1];
    for (int d = 0; d < n; ++d) p.dim[3 - n + d] = o.stride[2 + d];
    p.offset = o.offset;
    p.dtype = o.dtype;
    return p;
  }
};

}  // namespace ingot
