// The gradient of a bias as part of the product that gives the weight's: both are sums over the
// rows of the gradient that comes down, dW = dY^T X and db = the column sums of dY, and a library
// that multiplies by dY^T can add its columns on the way.
#include <algorithm>
#include <queue>
#include <unordered_map>

#include "compile/ir.h"
#include "runtime/backend.h"

namespace ingot {
namespace {

// For gradients up to this size a launch costs more than reading them again. The library's products
// that have such an epilogue are half again as slow as the plain ones (cuBLASLt 13.1 on an H200),
// so large ones are summed apart.
constexpr int64_t kSmall = 1 << 20;

/// What v is once reshapes that keep the last dim are looked through; `columns` is that dim.
int root_of(const Graph& g, int v, int64_t columns) {
  for (;;) {
    const Val& val = g.vals[v];
    if (val.shape.empty() || val.shape.back() != columns) return -1;
    if (val.op != Op::Reshape || val.copied || val.output) return v;
    v = val.in[0];
  }
}

bool swaps_two_dims(const Val& v) {
  return v.op == Op::Permute && !v.copied && v.n_in == 1 && v.shape.size() == 2 &&
         v.attrs.as<PermuteAttrs>().order[0] == 1;
}

/// dY of a product dY^T X that may give the sum as well; -1: it is none.
int gradient_of(const Graph& g, const Val& v) {
  if (v.op != Op::Matmul || v.n_in != 2 || v.shape.size() != 2 || v.relu || v.relu_grad ||
      v.gelu != Gelu::None || v.history || !v.stride.empty())
    return -1;
  const Val& turned = g.vals[v.in[0]];
  if (!swaps_two_dims(turned) || turned.dtype != v.dtype) return -1;
  Backend* b = backend_for(v.device.type());
  if (!b || !b->takes(Epilogue::BiasGrad, v.dtype, v.shape[0], v.shape[1], turned.shape[1]))
    return -1;
  return root_of(g, turned.in[0], turned.shape[0]);
}

/// Does v sum over all dims but the last?
bool sums_columns(const Graph& g, const Val& v) {
  if (v.op != Op::Sum || v.n_in != 1 || v.history) return false;
  const Val& in = g.vals[v.in[0]];
  const int r = in.shape.size();
  return r >= 2 && in.dtype == v.dtype && v.attrs.as<ReduceAttrs>().axes == (1u << (r - 1)) - 1 &&
         v.numel() == in.shape.back();
}

/// Ids in an order in which inputs come first again; what need not move keeps its place.
void sort_again(Graph& g) {
  const size_t n = g.vals.size();
  std::vector<int> waits(n, 0), id(n, -1);
  std::vector<std::vector<int>> users(n);
  for (size_t i = 0; i < n; ++i)
    for (int k = 0; k < g.vals[i].n_in; ++k) {
      ++waits[i];
      users[static_cast<size_t>(g.vals[i].in[k])].push_back(static_cast<int>(i));
    }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t i = 0; i < n; ++i)
    if (waits[i] == 0) ready.push(static_cast<int>(i));
  std::vector<Val> sorted;
  sorted.reserve(n);
  while (!ready.empty()) {
    const int v = ready.top();
    ready.pop();
    id[static_cast<size_t>(v)] = static_cast<int>(sorted.size());
    sorted.push_back(g.vals[static_cast<size_t>(v)]);
    for (int u : users[static_cast<size_t>(v)])
      if (--waits[static_cast<size_t>(u)] == 0) ready.push(u);
  }
  for (Val& v : sorted)
    for (int k = 0; k < v.n_in; ++k) v.in[k] = id[static_cast<size_t>(v.in[k])];
  g.vals = std::move(sorted);
}

}  // namespace

void fuse_bias_gradients(Graph& g) {
  std::unordered_map<int, int> product;  // by the gradient it multiplies with
  for (size_t i = 0; i < g.vals.size(); ++i) {
    const Val& v = g.vals[i];
    if (g.users[i] == 0 || v.op != Op::Matmul) continue;
    if (int dy = gradient_of(g, v); dy >= 0) product.emplace(dy, static_cast<int>(i));
  }
  bool found = false;
  for (size_t i = 0; i < g.vals.size() && !product.empty(); ++i) {
    Val& v = g.vals[i];
    if (g.users[i] == 0 || !sums_columns(g, v)) continue;
    auto p = product.find(root_of(g, v.in[0], g.vals[v.in[0]].shape.back()));
    if (p == product.end()) continue;
    Val& mm = g.vals[static_cast<size_t>(p->second)];
    if (mm.dtype != v.dtype || mm.shape[0] != v.numel() || g.vals[v.in[0]].bytes() > kSmall)
      continue;
    mm.bias_grad = true;
    v.become(Op::Result, ResultAttrs{1});
    v.in[0] = p->second;
    product.erase(p);
    found = true;
  }
  if (!found) return;
  sort_again(g);
  g.count_users();
}

}  // namespace ingot
