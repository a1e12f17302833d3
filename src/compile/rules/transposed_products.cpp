// The transpose of a product of a transposed value. The gradient of a weight that was used
// transposed is (X^T G)^T: it is computed as G^T X, so that what reads it (an optimiser, a norm)
// finds its rows dense. The sums over the inner dim stay the same, term by term.
#include "compile/rewrite.h"

namespace ingot {
namespace {

enum { kProduct, kLeft, kX, kRight };

// Does v exchange the last two dims of its input, and nothing else?
bool is_transpose(const Rewriter& r, int v) {
  const Dims& order = r[v].attrs.as<PermuteAttrs>().order;
  const int rank = order.size();
  if (rank < 2 || order[rank - 1] != rank - 2 || order[rank - 2] != rank - 1) return false;
  for (int i = 0; i < rank - 2; ++i)
    if (order[i] != i) return false;
  return true;
}

bool is_stored_transpose(const Rewriter& r, int v) {
  return is_transpose(r, v) && !r[v].copied && !r[r[v].in[0]].source();
}

bool plain_product(const Rewriter& r, int v) { return r[v].n_in == 2 && !r[v].history; }

bool transpose(Rewriter& r, const Match& m) {
  const int x = m[kX], right = m[kRight];
  Dims swapped = r[right].shape;
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  const int turned = r.view(Op::Permute, right, swapped, r[m.root].attrs);
  r.become(m.root, Op::Matmul, {turned, x});
  return true;
}

const Rule kRules[] = {
    {"(X^T G)^T is G^T X",
     Pattern(
         Op::Permute,
         {Pattern(
              Op::Matmul,
              {Pattern(Op::Permute, {Pattern::any().as(kX)}).where(is_stored_transpose).as(kLeft),
               Pattern::any().as(kRight)})
              .once()
              .where(plain_product)
              .as(kProduct)})
         .where(is_transpose),
     transpose},
};

}  // namespace

std::span<const Rule> transposed_product_rules() { return kRules; }
void transpose_products(Graph& g) { rewrite(g, kRules); }

}  // namespace ingot
