#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "optim/update.h"

namespace ingot::optim {

// Pairwise, so that many small terms do not drown in one large sum.
static Tensor sum_of(std::vector<Tensor> terms) {
  while (terms.size() > 1) {
    std::vector<Tensor> half;
    for (size_t i = 0; i + 1 < terms.size(); i += 2) half.push_back(terms[i] + terms[i + 1]);
    if (terms.size() % 2) half.push_back(terms.back());
    terms = std::move(half);
  }
  return terms[0];
}

Tensor clip_grad_norm_(const std::vector<Tensor>& params, double max_norm, SourceLoc loc) {
  LocScope scope(user_loc(loc));
  if (!(max_norm >= 0)) throw Error(ErrorKind::Value, "clip_grad_norm_", "max_norm must not be negative", user_loc(loc));
  NoGrad guard;
  std::vector<Tensor> squares;
  for (const Tensor& p : params) {
    Tensor g = p.grad(loc);
    if (!g.defined()) continue;
    if (g.dtype() != compute_type(p)) g = g.to(compute_type(p));
    Tensor square = (g * g).sum();
    if (!squares.empty() && square.device() != squares[0].device()) square = square.to(squares[0].device());
    if (!squares.empty() && square.dtype() != squares[0].dtype()) square = square.to(squares[0].dtype());
    squares.push_back(square);
  }
  if (squares.empty()) return zeros({});
  Tensor norm = sqrt(sum_of(std::move(squares)));
  Tensor factor = clamp_max(max_norm / (norm + 1e-6), 1.0);
  for (const Tensor& p : params) {
    Tensor g = p.grad();
    if (!g.defined()) continue;
    Tensor scaled = g.to(compute_type(p)) * as_scalar_of(factor, p);
    p.set_grad(scaled.to(g.dtype()));
  }
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& params, double limit, SourceLoc loc) {
  LocScope scope(user_loc(loc));
  if (!(limit >= 0)) throw Error(ErrorKind::Value, "clip_grad_value_", "the limit must not be negative", user_loc(loc));
  NoGrad guard;
  for (const Tensor& p : params)
    if (Tensor g = p.grad(loc); g.defined()) p.set_grad(clamp(g, -limit, limit));
}

}  // namespace ingot::optim
