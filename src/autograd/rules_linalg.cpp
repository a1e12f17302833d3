// Gradients of Op::Linalg, written with the same functions, so that they can be differentiated
// again.
#include "autograd/rules.h"
#include "graph/lift.h"
#include "ingot/linalg.h"
#include "ingot/movement.h"

namespace ingot::autograd {
namespace {

// a x = b (or a^T x = b): b's gradient solves the transposed system, a's is minus an outer product
// of the two.
void solve_back(const RuleCall& c) {
  const LinalgAttrs& f = c.attrs<LinalgAttrs>();
  Tensor a = lift(c.input(0)), x = lift(&c.n);
  LinalgAttrs back = f;
  back.transposed = !f.transposed;
  Tensor gb = make(Op::Linalg, {node_of(a), node_of(c.g)}, {back});
  if (c.wants(1)) c.out[1] = gb;
  if (!c.wants(0)) return;
  Tensor ga = f.transposed ? -matmul(x, mT(gb)) : -matmul(gb, mT(x));
  if (f.kind == LinalgKind::Triangular) {
    int64_t k = f.unit_diagonal ? 1 : 0;  // ones on the diagonal: it was not read
    ga = f.upper ? triu(ga, k) : tril(ga, -k);
  }
  c.out[0] = ga;
}

// Murray's formula: l^-T phi(l^T g) l^-1, phi taking the lower triangle with half the diagonal;
// made symmetric, as its argument is.
void cholesky_back(const RuleCall& c) {
  Tensor l = lift(&c.n), p = tril(matmul(mT(l), c.g));
  Tensor phi = p - diag_embed(diagonal(p, 0, -2, -1)) * 0.5;
  Tensor left = solve_triangular(mT(l), phi, true);    // l^-T phi
  Tensor s = solve_triangular(l, left, false, false);  // ... l^-1
  c.out[0] = (s + mT(s)) * 0.5;
}

}  // namespace

void gradient::linalg(const RuleCall& c) {
  switch (c.attrs<LinalgAttrs>().kind) {
    case LinalgKind::Solve:
    case LinalgKind::Triangular:
      return solve_back(c);
    case LinalgKind::Inverse: {
      Tensor y = mT(lift(&c.n));
      c.out[0] = -matmul(matmul(y, c.g), y);
      return;
    }
    case LinalgKind::Cholesky:
      return cholesky_back(c);
    case LinalgKind::Slogdet:
      c.out[0] = narrow(c.g, -1, 1, 1).unsqueeze(-1) * mT(inv(lift(c.input(0))));
      return;
  }
}

}  // namespace ingot::autograd
