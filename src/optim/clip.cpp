#include <cmath>

#include "ingot/autograd.h"
#include "ingot/ops.h"
#include "optim/update.h"

namespace ingot::optim {

// Pairwise, so that many small terms are not lost in one large sum.
static Tensor sum_of(std::vector<Tensor> terms) {
  while (terms.size() > 1) {
    std::vector<Tensor> half;
    for (size_t i = 0; i + 1 < terms.size(); i += 2) half.push_back(terms[i] + terms[i + 1]);
    if (terms.size() % 2) half.push_back(terms.back());
    terms = std::move(half);
  }
  return terms[0];
}

namespace {

Tensor joint_norm(const std::vector<Tensor>& tensors, double norm_type) {
  std::vector<Tensor> parts;
  const bool largest = std::isinf(norm_type);
  for (Tensor g : tensors) {
    if (!g.defined() || g.numel() == 0) continue;
    if (DType t = compute_type(g); g.dtype() != t) g = g.to(t);
    Tensor part = largest          ? abs(g).amax()
                  : norm_type == 2 ? (g * g).sum()
                                   : pow(abs(g), norm_type).sum();
    if (!parts.empty() && part.device() != parts[0].device()) part = part.to(parts[0].device());
    if (!parts.empty() && part.dtype() != parts[0].dtype()) part = part.to(parts[0].dtype());
    parts.push_back(part);
  }
  if (parts.empty()) return zeros({});
  if (largest) return stack(parts).amax();
  Tensor sum = sum_of(std::move(parts));
  return norm_type == 2 ? sqrt(sum) : pow(sum, 1 / norm_type);
}

void check_kind(double norm_type, const char* op, const SourceLoc& loc) {
  if (!(norm_type > 0)) throw Error(ErrorKind::Value, op, "norm_type must be positive", loc);
}

}  // namespace

std::vector<Tensor> gradients_of(const std::vector<Tensor>& params, const SourceLoc& loc) {
  std::vector<Tensor> gradients;
  for (const Tensor& p : params) gradients.push_back(p.grad(loc));
  return gradients;
}

Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_kind(norm_type, "get_total_norm", loc);
  NoGrad guard;
  return joint_norm(tensors, norm_type);
}

Tensor clip_grad_norm_(const std::vector<Tensor>& params, double max_norm, double norm_type,
                       SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  if (!(max_norm >= 0))
    throw Error(ErrorKind::Value, "clip_grad_norm_", "max_norm must not be negative", loc);
  check_kind(norm_type, "clip_grad_norm_", loc);
  NoGrad guard;
  Tensor norm = joint_norm(gradients_of(params, loc), norm_type);
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
  if (!(limit >= 0))
    throw Error(ErrorKind::Value, "clip_grad_value_", "the limit must not be negative",
                user_loc(loc));
  NoGrad guard;
  for (const Tensor& p : params)
    if (Tensor g = p.grad(loc); g.defined()) p.set_grad(clamp(g, -limit, limit));
}

}  // namespace ingot::optim
