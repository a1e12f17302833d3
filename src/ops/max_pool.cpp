// Max pooling's gradient: all of it goes to the first of a window's largest elements, as a fold of
// single positions. The backward pass finds the positions again; in one plan with the forward pass
// that is no extra work.
#include "graph/lift.h"
#include "ingot/autograd.h"
#include "ops/windows.h"

namespace ingot {
namespace {

Tensor reduce_windows(Op op, const Tensor& x, const Windows& w, const SourceLoc& loc) {
  Tensor view = window_view(x, w, loc);
  ReduceAttrs a;
  for (int d = 0; d < w.n(); ++d) a.axes |= 1u << (view.dim() - 1 - d);
  NodeRef r = record(op, {node_of(view)}, {a}, loc);
  return tensor_of(reshape_to(r.get(), Dims(r->shape.begin(), r->rank() - w.n()), loc));
}

}  // namespace

Tensor windowed_argmax(const Tensor& x, const Windows& w, const SourceLoc& loc) {
  Tensor at = reduce_windows(Op::ArgMax, x, w, loc);
  return w.kernel.numel() <= 256 ? at.to(DType::UInt8) : at.to(DType::Int32);
}

Tensor windowed_max(const Tensor& x, const Windows& w, const SourceLoc& loc) {
  if (!is_grad_enabled() || !x.requires_grad()) return reduce_windows(Op::Max, x, w, loc);
  CustomFunction pool(
      [=](FunctionContext& ctx, const std::vector<Tensor>& in) {
        ctx.save_for_backward({in[0]});
        return std::vector<Tensor>{reduce_windows(Op::Max, in[0], w, loc)};
      },
      [=](FunctionContext& ctx, const std::vector<Tensor>& g) {
        const Tensor& in = ctx.saved()[0];
        Tensor place = windowed_argmax(in.detach(), w, loc);
        return std::vector<Tensor>{fold_windows(g[0], place, w, in.shape(), loc)};
      },
      "max_pool");
  return pool({x}, loc)[0];
}

}  // namespace ingot
