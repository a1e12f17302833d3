// GELU (by tanh) and its gradient as epilogues of the products beside them, where the backend has
// such ones. Both are recorded as chains of elementwise operations in float32 around values of 16
// bits; the chains are found again by their shape. Forward, the product gives what GELU is applied
// to (the gradient asks for it) and GELU of it: result 1. Backward, the product of the gradient is
// multiplied by GELU's derivative before it is rounded.
#include "compile/ir.h"
#include "runtime/backend.h"

namespace ingot {
namespace {

constexpr double kCubic = 0.044715, kScale = 0.7978845608028654;

class Matcher {
 public:
  explicit Matcher(const Graph& g) : g_(g) {}

  struct Parts {
    int x = -1, dy = -1;
  };
  /// x, if v is x / 2 * (1 + tanh(kScale * (x + kCubic * x^3))).
  int value(int v) const {
    for (int side = 0; side < 2; ++side) {
      int half = factor(v, side), sum = factor(v, 1 - side);
      int x = scaled(half, 0.5);
      if (x >= 0 && is_sum(sum, x)) return x;
    }
    return -1;
  }

  /// x and dy, if v is dy times the derivative, as autograd records it.
  Parts gradient(int v) const {
    // ((direct + by_tanh) + cubic x^2) + cubic x x + cubic x x
    int once = term(v, 1), rest = term(v, 0);
    if (once < 0 || term(rest, 1) != once) return {};
    rest = term(rest, 0);
    int last = term(rest, 1), both = term(rest, 0);
    int direct = term(both, 0), by_tanh = term(both, 1);
    int whole = scaled(direct, 0.5), dy = factor(whole, 0), sum = factor(whole, 1),
        t = tanh_of(sum);
    int slope = scaled(by_tanh, kScale), half_dy = factor(slope, 0);
    int half = factor(half_dy, 1), x = scaled(half, 0.5);
    if (t < 0 || x < 0 || factor(half_dy, 0) != dy || !is_sum(sum, x) ||
        !is_slope(factor(slope, 1), t))
      return {};
    int square = factor(last, 1), cubic = factor(last, 0);
    bool same = scaled(cubic, kCubic) == by_tanh && is_product(square, x, x) &&
                is_product(factor(once, 0), cubic, x) && factor(once, 1) == x;
    return same ? Parts{x, dy} : Parts{};
  }

 private:
  int operand(int v, Op op, int k) const {
    return v >= 0 && g_.vals[v].op == op && g_.vals[v].n_in > k ? g_.vals[v].in[k] : -1;
  }
  int factor(int v, int k) const { return operand(v, Op::Mul, k); }
  int term(int v, int k) const { return operand(v, Op::Add, k); }
  bool is_const(int v, double c) const {
    return v >= 0 && g_.vals[v].op == Op::Const &&
           static_cast<float>(g_.vals[v].attrs.as<ConstAttrs>().f) == static_cast<float>(c);
  }
  bool is_product(int v, int a, int b) const {
    return v >= 0 && factor(v, 0) == a && factor(v, 1) == b;
  }
  /// What v is c times of.
  int scaled(int v, double c) const { return is_const(factor(v, 1), c) ? factor(v, 0) : -1; }
  int tanh_of(int sum) const {
    return is_const(term(sum, 1), 1) ? operand(term(sum, 0), Op::Tanh, 0) : -1;
  }
  /// 1 + tanh(kScale * (x + kCubic * x * x * x))
  bool is_sum(int v, int x) const {
    int inner = scaled(tanh_of(v), kScale), cube = scaled(term(inner, 1), kCubic);
    return cube >= 0 && term(inner, 0) == x && factor(cube, 1) == x &&
           is_product(factor(cube, 0), x, x);
  }
  /// 1 - tanh(t)^2
  bool is_slope(int v, int t) const {
    int square = operand(v, Op::Sub, 1), th = factor(square, 0);
    return is_const(operand(v, Op::Sub, 0), 1) && th >= 0 && factor(square, 1) == th &&
           operand(th, Op::Tanh, 0) == t;
  }

  const Graph& g_;
};

/// The matrix product of 16 bits that `wide` (float32) is a copy of, seen through a reshape that
/// keeps rows; -1: there is none.
int product_of(const Graph& g, int wide, DType type) {
  const Val& cast = g.vals[wide];
  if (cast.op != Op::Cast || cast.n_in != 1) return -1;
  int p = cast.in[0];
  const Val& top = g.vals[p];
  if (top.op == Op::Reshape && !top.copied && !top.output) p = top.in[0];
  const Val& v = g.vals[p];
  bool fits = v.op == Op::Matmul && v.dtype == type && v.shape.size() == 2 && v.stride.empty() &&
              !v.relu && !top.shape.empty() && top.shape.back() == v.shape.back();
  return fits ? p : -1;
}

bool takes_epilogue(const Val& v) {
  if (v.op != Op::Cast || v.n_in != 1 || !is_half(v.dtype)) return false;
  Backend* b = backend_for(v.device.type());
  return b && b->gelu_epilogue();
}

// What only the chains used is gone; products whose sum nobody else reads give GELU alone.
void settle(Graph& g) {
  drop_dead(g);
  for (Val& v : g.vals) {
    if (v.op != Op::Result || v.n_in != 1 || g.vals[v.in[0]].gelu != Gelu::Both) continue;
    Val& product = g.vals[v.in[0]];
    if (g.users[v.in[0]] != 1 || product.output || product.history) continue;
    product.gelu = Gelu::Result;
    product.node = v.node;
    product.output = v.output;
    v.output = false;
    v.become(Op::Reshape);
  }
  g.count_users();
}

}  // namespace

void fuse_gelu(Graph& g) {
  const Matcher find(g);
  bool found = false;
  for (size_t i = 0; i < g.vals.size(); ++i) {
    Val& v = g.vals[i];
    if (!takes_epilogue(v)) continue;
    if (int x = find.value(v.in[0]); x >= 0) {
      int product = product_of(g, x, v.dtype);
      if (product < 0 || v.history || g.vals[product].gelu != Gelu::None) continue;
      g.vals[product].gelu = Gelu::Both;
      v.become(Op::Result, ResultAttrs{1});
      v.in[0] = product;
      found = true;
      continue;
    }
    const Matcher::Parts parts = find.gradient(v.in[0]);
    if (parts.x < 0 || g.users[v.in[0]] != 1 || g.users[parts.dy] != 2) continue;
    int product = product_of(g, parts.dy, v.dtype), sum = product_of(g, parts.x, v.dtype);
    if (product < 0 || sum < 0 || sum >= product || v.history || g.users[product] != 1 ||
        g.users[g.vals[parts.dy].in[0]] != 1)
      continue;
    Val& mm = g.vals[product];
    if (mm.bias || mm.output || mm.history || mm.gelu != Gelu::None ||
        !(mm.shape == g.vals[sum].shape))
      continue;
    mm.gelu = Gelu::Gradient;
    mm.in[2] = sum;
    mm.n_in = 3;
    mm.node = v.node;
    mm.output = v.output;
    v.output = false;
    v.become(Op::Reshape);
    v.in[0] = product;
    found = true;
  }
  if (found) settle(g);
}

}  // namespace ingot
