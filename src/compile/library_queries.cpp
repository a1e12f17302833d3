#include "compile/library_queries.h"

#include "graph/handle.h"
#include "runtime/backend.h"

namespace ingot::library_queries {

bool attention(const Node& q, const Node& k, const Node& v, const Node* bias, bool causal,
               double scale) {
  Backend* b = backend_for(q.device.type());
  // Op by op, the call would run before its other results are asked for.
  if (!b || is_eager()) return false;
  LibrarySpec s;
  s.op = Op::Attention;
  s.attrs = AttentionAttrs{causal ? AttentionMask::Causal : AttentionMask::None, scale};
  s.written = 2;
  s.results = 3;
  Dims o = q.shape;
  o[3] = v.shape[3];
  Dims lse{o[0], o[1], o[2]};
  s.operands = {{q.dtype, o, row_major(o), 0}, {DType::Float32, lse, row_major(lse), 0}};
  for (const Node* n : {&q, &k, &v, bias})
    if (n) s.operands.push_back({n->dtype, n->shape, row_major(n->shape), 0});
  if (!b->best_offer(s)) return false;
  if (!q.requires_grad && !k.requires_grad && !v.requires_grad) return true;
  LibrarySpec g = s;
  g.op = Op::AttentionGrad;
  g.written = 3;
  g.results = 7;
  const auto& x = s.operands;  // o, lse, q, k, v, (bias)
  g.operands = {x[2], x[3], x[4], x[2], x[3], x[4], x[0], x[0], x[1]};
  if (bias) g.operands.push_back(x[5]);
  return static_cast<bool>(b->best_offer(g));
}

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

bool cached_attention(std::span<Node* const> in, double scale) {
  const Node& q = *in[0];
  Backend* b = backend_for(q.device.type());
  if (!b || q.device.type() == DeviceType::Null || is_eager()) return false;
  LibrarySpec s;
  s.op = Op::Attention;
  s.attrs = AttentionAttrs{AttentionMask::Newest, scale};
  s.operands = {{q.dtype, q.shape, row_major(q.shape), 0}};
  for (const Node* n : in) s.operands.push_back({n->dtype, n->shape, row_major(n->shape), 0});
  return static_cast<bool>(b->best_offer(s));
}

}  // namespace ingot::library_queries
