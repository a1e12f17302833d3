#include "compile/library_queries.h"

#include "graph/handle.h"
#include "runtime/backend.h"

namespace ingot::library_queries {

bool lstm(const Node& z, const Node& weight) {
  Backend* b = backend_for(z.device.type());
  if (!b || is_eager() || !is_float(z.dtype) || z.dtype == DType::Float64 || z.rank() != 3 ||
      z.numel() == 0)
    return false;
  const DType wide = DType::Float32;
  const Dims h{z.shape[0], z.shape[1], weight.shape[1]}, one{h[1], h[2]};
  LibrarySpec s;
  s.op = Op::Lstm;
  s.attrs = RecurrentAttrs{};
  s.written = 3;
  s.results = 7;
  auto add = [&](DType t, const Dims& shape) {
    s.operands.push_back({t, shape, row_major(shape), 0});
  };
  add(z.dtype, h);
  add(z.dtype, z.shape);
  add(wide, h);
  add(z.dtype, z.shape);
  add(z.dtype, one);
  add(wide, one);
  add(z.dtype, weight.shape);
  return static_cast<bool>(b->best_offer(s));
}

}  // namespace ingot::library_queries
