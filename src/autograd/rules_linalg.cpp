// Gradients of Op::Linalg, written with the same functions, so that they can be differentiated again.
#include "autograd/lift.h"
#include "autograd/rules.h"
#include "ingot/linalg.h"
#include "ingot/movement.h"

namespace ingot::autograd {
namespace {

// a x = b (or a^T x = b): b's gradient solves the transposed system, a's is minus an outer product of the
// two.
void solve_back(const RuleCall& c, LinalgKind kind, int flags) {
  Tensor a = lift(c.input(0)), x = lift(&c.n);
  Attrs at;
  at.i = static_cast<int64_t>(kind) | (flags ^ 1) << 8;
  Tensor gb = make(Op::Linalg, {node_of(a), node_of(c.g)}, at);
  if (c.wants(1)) c.out[1] = gb;
  if (!c.wants(0)) return;
  Tensor ga = flags & 1 ? -matmul(x, mT(gb)) : -matmul(gb, mT(x));
  if (kind == LinalgKind::Triangular) {
    int64_t k = flags & 4 ? 1 : 0;  // ones on the diagonal: it was not read
    ga = flags & 2 ? triu(ga, k) : tril(ga, -k);
  }
  c.out[0] = ga;
}

// Murray's formula: l^-T phi(l^T g) l^-1, phi taking the lower triangle with half the diagonal; made
// symmetric, as its argument is.
void cholesky_back(const RuleCall& c) {
  Tensor l = lift(&c.n), p = tril(matmul(mT(l), c.g));
  Tensor phi = p - diag_embed(diagonal(p, 0, -2, -1)) * 0.5;
  Tensor left = solve_triangular(mT(l), phi, true);    // l^-T phi
  Tensor s = solve_triangular(l, left, false, false);  // ... l^-1
  c.out[0] = (s + mT(s)) * 0.5;
}

}  // namespace

bool linalg_rule(const RuleCall& c) {
  if (c.n.op != Op::Linalg) return false;
  LinalgKind kind = static_cast<LinalgKind>(c.n.imm_i & 255);
  switch (kind) {
    case LinalgKind::Solve:
    case LinalgKind::Triangular:
      solve_back(c, kind, static_cast<int>(c.n.imm_i >> 8));
      break;
    case LinalgKind::Inverse: {
      Tensor y = mT(lift(&c.n));
      c.out[0] = -matmul(matmul(y, c.g), y);
      break;
    }
    case LinalgKind::Cholesky:
      cholesky_back(c);
      break;
    case LinalgKind::Slogdet:
      c.out[0] = narrow(c.g, -1, 1, 1).unsqueeze(-1) * mT(inv(lift(c.input(0))));
      break;
  }
  return true;
}

}  // namespace ingot::autograd
