// See lines.h.
#include "backend/cuda/kernels/lines.h"

namespace ingot::cuda {

const char* const kLinesText = R"cuda(
template <class P> IG_FN void line_at(const P& p, long long line, long long& out, long long& in) {
  out = p.out_offset; in = p.in_offset;
  for (int d = (int)p.line_dims - 1; d >= 0; --d) {
    const auto& dim = p.dims[d];
    const long long at = line % dim.size; line /= dim.size;
    out += at * dim.out; in += at * dim.in;
  }
}
)cuda";

}  // namespace ingot::cuda
