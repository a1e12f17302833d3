// Rewrites that change no bit of a result. One forward pass: every value is first given its inputs'
// replacements, then looked up among the values seen so far.
#include <unordered_map>

#include "base/hash.h"
#include "compile/ir.h"
#include "runtime/backend.h"

namespace ingot {
namespace {

bool same_value(const Val& a, const Val& b) {
  if (a.op != b.op || a.dtype != b.dtype || a.device != b.device || a.n_in != b.n_in ||
      a.slot != b.slot || !(a.shape == b.shape))
    return false;
  for (int i = 0; i < a.n_in; ++i)
    if (a.in[i] != b.in[i]) return false;
  return a.attrs == b.attrs;
}

uint64_t hash_value(const Val& v) {
  Hasher h;
  h.add(static_cast<uint64_t>(v.op) | static_cast<uint64_t>(v.dtype) << 8);
  h.add(v.attrs.hash());
  h.add(v.slot);
  for (int i = 0; i < v.n_in; ++i) h.add(v.in[i]);
  for (int64_t d : v.shape) h.add(d);
  return h.value();
}

// The value this one is equal to without any work, or -1.
int identity_of(const Graph& g, const Val& v) {
  if (v.n_in == 0 || v.copied) return -1;
  const Val& in = g.vals[v.in[0]];
  switch (v.op) {
    case Op::Alias:
      return v.in[0];
    case Op::Reshape:
    case Op::Expand:
      return in.shape == v.shape ? v.in[0] : -1;
    case Op::Cast:
      return in.dtype == v.dtype ? v.in[0] : -1;
    case Op::Permute: {
      const Dims& p = v.attrs.as<PermuteAttrs>().order;
      for (int i = 0; i < p.size(); ++i)
        if (p[i] != i) return -1;
      return v.in[0];
    }
    case Op::Slice: {
      if (!(in.shape == v.shape)) return -1;
      const auto& [start, step] = v.attrs.as<SliceAttrs>();
      for (int i = 0; i < v.shape.size(); ++i)
        if (start[i] != 0 || (step[i] != 1 && v.shape[i] > 1)) return -1;
      return v.in[0];
    }
    case Op::Pad:
      return in.shape == v.shape ? v.in[0] : -1;
    case Op::Sum:
    case Op::Prod:
    case Op::Max:
    case Op::Min:
      return in.shape == v.shape && in.dtype == v.dtype ? v.in[0] : -1;
    case Op::ToDevice:
      return in.device == v.device ? v.in[0] : -1;
    default:
      return -1;
  }
}

// Reshape of a reshape, permutation of a permutation: look through the first.
void shorten(Graph& g, Val& v) {
  if (v.n_in == 0) return;
  const Val& in = g.vals[v.in[0]];
  if (v.op == Op::Reshape && in.op == Op::Reshape) v.in[0] = in.in[0];
  if (v.op == Op::Permute && in.op == Op::Permute) {
    const Dims &outer = v.attrs.as<PermuteAttrs>().order,
               &inner = in.attrs.as<PermuteAttrs>().order;
    PermuteAttrs both;
    for (int64_t axis : outer) both.order.push_back(inner[static_cast<int>(axis)]);
    v.in[0] = in.in[0];
    v.attrs = both;
  }
}

// The operand k of v, found to be the same as value `to`. A library call, and what an assignment
// begins from, needs a buffer: views that came down to a constant, index or random value are then
// carried out instead of looked through.
int stored_if_needed(Graph& g, const Val& v, int k, int to) {
  int from = v.in[k];
  bool wants_buffer = v.op == Op::Assign || v.op == Op::SliceAssign ? k == 0 : is_library(v.op);
  if (v.op == Op::Gather) wants_buffer = k == 0;
  if (to == from || !wants_buffer || !g.vals[to].source()) return to;
  Val& stored = g.vals[from];
  stored.become(Op::Reshape);
  stored.n_in = 1;
  stored.in[0] = to;
  stored.copied = true;
  return from;
}

}  // namespace

void Graph::count_users() {
  users.assign(vals.size(), 0);
  for (const Val& v : vals)
    for (int i = 0; i < v.n_in; ++i) ++users[v.in[i]];
  for (size_t i = 0; i < vals.size(); ++i) users[i] += vals[i].output;
}

void simplify(Graph& g) {
  int n = static_cast<int>(g.vals.size());
  std::vector<int> same(n);
  std::unordered_multimap<uint64_t, int> seen;
  seen.reserve(n);
  for (int i = 0; i < n; ++i) {
    same[i] = i;
    Val& v = g.vals[i];
    for (int k = 0; k < v.n_in; ++k) v.in[k] = stored_if_needed(g, v, k, same[v.in[k]]);
    shorten(g, v);
    int id = identity_of(g, v);
    // An output keeps an entry of its own (its node gets a buffer), but its users need not know.
    if (id >= 0) {
      same[i] = id;
      continue;
    }
    if (v.op == Op::Fence || v.op == Op::Assign || v.op == Op::SliceAssign) continue;
    uint64_t h = hash_value(v);
    auto [b, e] = seen.equal_range(h);
    for (auto it = b; it != e; ++it)
      if (same_value(g.vals[it->second], v)) {
        same[i] = it->second;
        break;
      }
    if (same[i] == i) seen.emplace(h, i);
  }
  // A gradient may be asked through a merged value under any of its names.
  for (int i = 0; i < n; ++i)
    if (same[i] != i && g.vals[i].history) g.vals[same[i]].history = true;
  drop_dead(g);
}

void drop_dead(Graph& g) {
  g.count_users();
  for (int i = static_cast<int>(g.vals.size()) - 1; i >= 0; --i) {
    Val& v = g.vals[i];
    if (v.op == Op::Result && g.users[i] == 0 && v.n_in && g.users[v.in[0]] > 1)
      g.users[i] = 1;  // its call writes it anyway
    if (g.users[i] > 0) continue;
    for (int k = 0; k < v.n_in; ++k) --g.users[v.in[k]];
    v.n_in = 0;
  }
}

namespace {

// Is b a value of shape [N] (leading ones allowed) that a [..., N] result adds to every row?
bool is_bias(const Val& b, const Val& product) {
  if (b.shape.empty() || b.dtype != product.dtype || b.device != product.device) return false;
  int64_t n = product.shape.back();
  return b.shape.back() == n && b.numel() == n && n > 1;
}

}  // namespace

namespace {

// Does v exchange the last two dims of its input, and nothing else?
bool is_transpose(const Val& v) {
  if (v.op != Op::Permute || v.n_in != 1) return false;
  const Dims& order = v.attrs.as<PermuteAttrs>().order;
  const int r = order.size();
  if (r < 2 || order[r - 1] != r - 2 || order[r - 2] != r - 1) return false;
  for (int i = 0; i < r - 2; ++i)
    if (order[i] != i) return false;
  return true;
}

}  // namespace

// The gradient of a weight that was used transposed is (X^T G)^T: it is computed as G^T X, so that
// what reads it (an optimiser, a norm) finds its rows where they lie. The sums over the inner dim
// stay the same, term by term.
void turn_products(Graph& g) {
  for (Val& v : g.vals) {
    if (!is_transpose(v)) continue;
    const int m = v.in[0];
    Val& product = g.vals[m];
    if (product.op != Op::Matmul || product.n_in != 2 || product.output || product.history ||
        g.users[m] != 1)
      continue;
    const Val& left = g.vals[product.in[0]];
    if (!is_transpose(left) || left.copied || g.vals[left.in[0]].source()) continue;
    const int x = left.in[0], right = product.in[1];
    product.become(Op::Permute, v.attrs);
    product.n_in = 1;
    product.in[0] = right;
    product.shape = g.vals[right].shape;
    std::swap(product.shape[product.shape.size() - 1], product.shape[product.shape.size() - 2]);
    v.become(Op::Matmul);
    v.copied = false;
    v.n_in = 2;
    v.in[0] = m;
    v.in[1] = x;
  }
  g.count_users();
}

namespace {

/// The product behind v's operand m, if nobody else sees it; a reshape between that keeps rows
/// ([B*T, N] -> [B, T, N]) is looked through. -1: there is none.
int product_behind(const Graph& g, int m) {
  const Val& top = g.vals[m];
  int product = m;
  if (top.op == Op::Reshape && g.users[m] == 1 && !top.shape.empty() &&
      !g.vals[top.in[0]].shape.empty() && top.shape.back() == g.vals[top.in[0]].shape.back())
    product = top.in[0];
  const Val& mm = g.vals[product];
  if (mm.op != Op::Matmul || g.users[product] != 1 || !is_float(mm.dtype) || mm.output ||
      top.output)
    return -1;
  return product;
}

/// v is now the product itself, in v's shape; as an output it is v's node that gets the buffer.
void become_product(Graph& g, Val& v, int product) {
  Val& mm = g.vals[product];
  mm.history = mm.history || v.history;
  mm.node = v.node;
  mm.output = v.output;
  v.output = false;
  v.become(Op::Reshape);
  v.in[0] = product;
  v.n_in = 1;
}

// A value per output channel, added to a convolution.
bool fuse_conv_bias(Graph& g, Val& v) {
  for (int side = 0; side < 2; ++side) {
    const int c = v.in[side], b = v.in[1 - side];
    Val& conv = g.vals[c];
    const Val& bias = g.vals[b];
    if (conv.op != Op::Conv || conv.bias || g.users[c] != 1 || conv.output ||
        !is_float(conv.dtype) || b > c)
      continue;
    bool fits = bias.dtype == conv.dtype && bias.device == conv.device &&
                bias.shape.size() == conv.shape.size() && v.shape == conv.shape;
    for (int d = 0; fits && d < bias.shape.size(); ++d)
      fits = bias.shape[d] == (d == 1 ? conv.shape[1] : 1);
    if (!fits) continue;
    conv.bias = true;
    conv.in[2] = b;
    conv.n_in = 3;
    become_product(g, v, c);
    return true;
  }
  return false;
}

// where(y > 0, dy W, 0), y being what a product's ReLU gave.
bool fuse_relu_gradient(Graph& g, Val& v) {
  if (v.op != Op::Where || v.history || v.shape.size() != 2) return false;
  auto is_zero = [&](int c) {
    return g.vals[c].op == Op::Const && g.vals[c].attrs.as<ConstAttrs>().f == 0;
  };
  const Val& positive = g.vals[v.in[0]];
  if (positive.op != Op::Gt || !is_zero(positive.in[1]) || !is_zero(v.in[2])) return false;
  int y = positive.in[0];
  while (g.vals[y].op == Op::Reshape && !g.vals[y].copied) y = g.vals[y].in[0];
  const int product = product_behind(g, v.in[1]);
  if (product < 0 || !g.vals[y].relu || y >= product) return false;
  Val& mm = g.vals[product];
  if (mm.bias || mm.relu || mm.history || mm.dtype != g.vals[y].dtype || mm.shape != v.shape ||
      mm.shape != g.vals[y].shape)
    return false;
  Backend* b = backend_for(mm.device.type());
  if (!b ||
      !b->takes(Epilogue::ReluGrad, mm.dtype, mm.shape[0], mm.shape[1], g.vals[mm.in[0]].shape[1]))
    return false;
  mm.relu_grad = true;
  mm.in[2] = y;
  mm.n_in = 3;
  become_product(g, v, product);
  return true;
}

}  // namespace

void fuse_epilogues(Graph& g) {
  for (Val& v : g.vals) {
    if (fuse_relu_gradient(g, v)) continue;
    if (v.op == Op::Relu) {
      int product = product_behind(g, v.in[0]);
      if (product < 0 || g.vals[product].dtype == DType::Float64 || g.vals[product].relu ||
          g.vals[product].relu_grad)
        continue;
      g.vals[product].relu = true;
      become_product(g, v, product);
      continue;
    }
    if (v.op != Op::Add || v.n_in != 2 || fuse_conv_bias(g, v)) continue;
    for (int side = 0; side < 2; ++side) {
      int b = v.in[1 - side], product = product_behind(g, v.in[side]);
      if (product < 0 || g.vals[product].bias || g.vals[product].relu || g.vals[product].relu_grad)
        continue;
      if (!is_bias(g.vals[b], v) || v.numel() != g.vals[product].numel() || b > product) continue;
      g.vals[product].bias = true;
      g.vals[product].in[2] = b;
      g.vals[product].n_in = 3;
      become_product(g, v, product);
      break;
    }
  }
  g.count_users();
}

void verify(const Graph& g) {
  for (size_t i = 0; i < g.vals.size(); ++i) {
    const Val& v = g.vals[i];
    for (int k = 0; k < v.n_in; ++k)
      if (v.in[k] < 0 || v.in[k] >= static_cast<int>(i))
        throw Error(ErrorKind::Internal, "verify",
                    "value " + std::to_string(i) + " uses a later value");
    if (v.op == Op::Reshape && v.n_in == 1 && g.vals[v.in[0]].numel() != v.numel())
      throw Error(ErrorKind::Internal, "verify", "reshape changes the number of elements");
  }
}

}  // namespace ingot
