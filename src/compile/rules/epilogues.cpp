// What follows a product or a convolution becomes its epilogue, where the kernel that runs the call
// takes it: a bias, ReLU and its gradient, GELU (by tanh) and its gradient, and, as a second
// result, a bias's gradient.
#include <unordered_map>

#include "compile/rewrite.h"
#include "graph/composite.h"

namespace ingot {
namespace {

enum { kProduct, kBias, kPositive, kZero };

bool is_zero(const Rewriter& r, int v) {
  return r[v].op == Op::Const && r[v].attrs.as<ConstAttrs>().f == 0;
}
bool is_float_product(const Rewriter& r, int v) { return is_float(r[v].dtype); }

Pattern product() { return Pattern(Op::Matmul).rows().once().where(is_float_product).as(kProduct); }

/// The root becomes the call, which has one epilogue more.
bool absorb(Rewriter& r, const Match& m, Epilogue e, int operand = -1) {
  const int call = m[kProduct];
  if (operand > call || !takes_epilogue(r.graph(), call, e, operand)) return false;
  r.edit(call).epilogues.set(e);
  if (operand >= 0) r.add_input(call, operand);
  r.replace(m.root, call);
  return true;
}

// A bias: [N], leading ones allowed, added to every row of a [..., N] result.
bool add_bias(Rewriter& r, const Match& m) {
  const Val &b = r[m[kBias]], &sum = r[m.root], &product = r[m[kProduct]];
  if (!product.epilogues.empty() || b.shape.empty() || b.dtype != sum.dtype ||
      b.device != sum.device || sum.numel() != product.numel())
    return false;
  const int64_t n = sum.shape.back();
  if (b.shape.back() != n || b.numel() != n || n <= 1) return false;
  return absorb(r, m, Epilogue::Bias, m[kBias]);
}

// A value per output channel, added to a convolution.
bool add_conv_bias(Rewriter& r, const Match& m) {
  const Val &b = r[m[kBias]], &conv = r[m[kProduct]];
  if (!conv.epilogues.empty() || !is_float(conv.dtype) || b.dtype != conv.dtype ||
      b.device != conv.device || b.shape.size() != conv.shape.size() ||
      !(r[m.root].shape == conv.shape))
    return false;
  for (int d = 0; d < b.shape.size(); ++d)
    if (b.shape[d] != (d == 1 ? conv.shape[1] : 1)) return false;
  return absorb(r, m, Epilogue::Bias, m[kBias]);
}

bool add_relu(Rewriter& r, const Match& m) {
  if (!r[m[kProduct]].epilogues.within({Epilogue::Bias})) return false;
  return absorb(r, m, Epilogue::Relu);
}

// where(y > 0, dy W, 0), y being what a product's ReLU gave.
bool add_relu_gradient(Rewriter& r, const Match& m) {
  const Val &v = r[m.root], &product = r[m[kProduct]];
  int y = m[kPositive];
  while (r[y].op == Op::Reshape && !r[y].copied) y = r[y].in[0];
  if (v.history || v.shape.size() != 2 || product.history || !product.epilogues.empty() ||
      !r[y].epilogues.has(Epilogue::Relu) || product.dtype != r[y].dtype ||
      !(product.shape == v.shape) || !(product.shape == r[y].shape))
    return false;
  return absorb(r, m, Epilogue::ReluGrad, y);
}

/// The 16-bit product that v is, or reshapes keeping rows; -1: there is none.
int half_product(const Rewriter& r, int v) {
  const Val& top = r[v];
  if (top.op == Op::Reshape && !top.copied && !top.output) v = top.in[0];
  const Val& p = r[v];
  const bool fits = p.op == Op::Matmul && p.dtype == top.dtype && is_half(p.dtype) &&
                    p.shape.size() == 2 && p.stride.empty() && !top.shape.empty() &&
                    top.shape.back() == p.shape.back();
  return fits ? v : -1;
}

bool is_gelu(const Rewriter& r, int v) {
  return r[v].attrs.as<CompositeAttrs>().what->name == std::string_view("gelu_tanh");
}

// GELU of a product; where more than that reads the product, both are its results.
bool add_gelu(Rewriter& r, const Match& m) {
  const int product = half_product(r, r[m.root].in[0]);
  if (product < 0 || r[m.root].history || r[m.root].dtype != r[product].dtype ||
      !r[product].epilogues.within({Epilogue::Bias}))
    return false;
  const int x = r[m.root].in[0];
  const bool alone = r.used_once(product) && !r[product].history &&
                     (x == product || (r.used_once(x) && !r[x].history));
  if (alone && takes_epilogue(r.graph(), product, Epilogue::GeluTanh)) {
    r.edit(product).epilogues.set(Epilogue::GeluTanh);
    r.replace(m.root, product);
    return true;
  }
  Graph asked = call_alone(r.graph(), product);
  asked.vals[0].epilogues.set(Epilogue::GeluTanh);
  if (!takes_epilogue(r.graph(), product, Epilogue::GeluTanh) ||
      !takes_epilogue(asked, 0, Epilogue::KeepSum))
    return false;
  r.edit(product).epilogues.set(Epilogue::GeluTanh);
  r.edit(product).epilogues.set(Epilogue::KeepSum);
  r.become(m.root, Op::Result, {product}, ResultAttrs{1});
  return true;
}

// GELU's gradient at a product, times what another product gives.
bool add_gelu_gradient(Rewriter& r, const Match& m) {
  const Val& root = r[m.root];
  if (root.history || root.n_in != 2) return false;
  const int dy = root.in[1], sum = half_product(r, root.in[0]), product = half_product(r, dy);
  if (sum < 0 || product < 0 || sum >= product || !r.used_once(product) || !r.used_once(dy))
    return false;
  const Val& call = r[product];
  if (!call.epilogues.empty() || call.history || !(call.shape == r[sum].shape) ||
      root.dtype != call.dtype || !takes_epilogue(r.graph(), product, Epilogue::GeluTanhGrad, sum))
    return false;
  r.edit(product).epilogues.set(Epilogue::GeluTanhGrad);
  r.add_input(product, sum);
  r.replace(m.root, product);
  return true;
}

const Rule kRules[] = {
    {"GELU of a product", Pattern(Op::Composite).where(is_gelu), add_gelu},
    {"GELU's gradient of a product", Pattern(Op::CompositeGrad).where(is_gelu), add_gelu_gradient},
    {"ReLU's gradient of a product",
     Pattern(Op::Where,
             {Pattern(Op::Gt, {Pattern::any().as(kPositive), Pattern::any().where(is_zero)}),
              product(), Pattern::any().where(is_zero)}),
     add_relu_gradient},
    {"ReLU of a product", Pattern(Op::Relu, {product()}), add_relu},
    {"bias of a convolution",
     Pattern(Op::Add, {Pattern(Op::Conv).once().as(kProduct), Pattern::any().as(kBias)})
         .commutative(),
     add_conv_bias},
    {"bias of a product", Pattern(Op::Add, {product(), Pattern::any().as(kBias)}).commutative(),
     add_bias},
};

// kBiasGradient: a bias's gradient as part of the product that gives the weight's: both are sums
// over the rows of the gradient that comes down, dW = dY^T X and db = the column sums of dY, and a
// kernel that multiplies by dY^T can add its columns on the way.

// For gradients up to this size a launch costs more than reading them again. The library's products
// that have such an epilogue are half again as slow as the plain ones (cuBLASLt 13.1 on an H200),
// so large ones are summed by a kernel.
constexpr int64_t kSmall = 1 << 20;

/// What v is once reshapes that keep the last dim are looked through; `columns` is that dim.
int root_of(const Graph& g, int v, int64_t columns) {
  for (;;) {
    const Val& val = g.vals[static_cast<size_t>(v)];
    if (val.shape.empty() || val.shape.back() != columns) return -1;
    if (val.op != Op::Reshape || val.copied || val.output) return v;
    v = val.in[0];
  }
}

/// dY of a product dY^T X that may give the sum as well; -1: it is none.
int gradient_of(const Graph& g, int v) {
  const Val& product = g.vals[static_cast<size_t>(v)];
  if (product.op != Op::Matmul || product.n_in != 2 || product.shape.size() != 2 ||
      !product.epilogues.empty() || product.history || !product.stride.empty())
    return -1;
  const Val& left = g.vals[static_cast<size_t>(product.in[0])];
  const bool transposed = left.op == Op::Permute && !left.copied && left.n_in == 1 &&
                          left.shape.size() == 2 && left.attrs.as<PermuteAttrs>().order[0] == 1;
  if (!transposed || left.dtype != product.dtype || !takes_epilogue(g, v, Epilogue::BiasGrad))
    return -1;
  return root_of(g, left.in[0], left.shape[0]);
}

/// Does v sum over all dims but the last?
bool sums_columns(const Graph& g, const Val& v) {
  if (v.op != Op::Sum || v.n_in != 1 || v.history) return false;
  const Val& in = g.vals[static_cast<size_t>(v.in[0])];
  const int rank = in.shape.size();
  return rank >= 2 && in.dtype == v.dtype &&
         v.attrs.as<ReduceAttrs>().axes == (1u << (rank - 1)) - 1 && v.numel() == in.shape.back();
}

void add_bias_gradients(Graph& g) {
  std::unordered_map<int, int> product;  // by the gradient it multiplies with
  for (size_t v = 0; v < g.vals.size(); ++v)
    if (g.users[v] > 0 && g.vals[v].op == Op::Matmul)
      if (int dy = gradient_of(g, static_cast<int>(v)); dy >= 0)
        product.emplace(dy, static_cast<int>(v));
  if (product.empty()) return;
  Rewriter r(g);
  bool any = false;
  for (size_t i = 0; i < g.vals.size() && !product.empty(); ++i) {
    const int v = static_cast<int>(i);
    const Val& sum = g.vals[i];
    if (g.users[i] == 0 || !sums_columns(g, sum)) continue;
    const Val& in = g.vals[static_cast<size_t>(sum.in[0])];
    auto p = product.find(root_of(g, sum.in[0], in.shape.back()));
    if (p == product.end()) continue;
    const Val& call = r[p->second];
    if (call.dtype != sum.dtype || call.shape[0] != sum.numel() || in.bytes() > kSmall) continue;
    r.edit(p->second).epilogues.set(Epilogue::BiasGrad);
    r.become(v, Op::Result, {p->second}, ResultAttrs{1});
    product.erase(p);
    any = true;
  }
  if (any) r.settle();
}

}  // namespace

std::span<const Rule> epilogue_rules() { return kRules; }
void add_epilogues(Graph& g) {
  rewrite(g, kRules);
  add_bias_gradients(g);
}

}  // namespace ingot
