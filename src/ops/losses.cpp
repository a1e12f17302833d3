// Losses and distances of loss.h, composed from primitives. Where a branch that is not taken would
// make a NaN of a gradient, its argument is replaced first.
#include "ingot/loss.h"

#include <cmath>
#include <limits>

#include "ingot/activation.h"
#include "ingot/elementwise.h"
#include "ops/composed.h"
#include "ops/reduction.h"

namespace ingot {
namespace {

// A loss's operands in one floating type, wide enough to compute in, and its parameters.
struct Loss {
  const CompositeArgs& a;
  Tensor operator[](size_t k) const { return a[k].to(compute_type(a.result)); }
  Tensor last() const { return (*this)[a.in.size() - 1]; }
  double f(size_t k) const { return a.f(k + 1); }
  bool flag(size_t k) const { return a.flag(k + 1); }
};

// What is checked of every loss, and how its value for each element is reduced.
struct Setting {
  const char* op;
  SourceLoc loc;
  LocScope scope;
  Reduction how;
  DType dtype = DType::Bool;
  Dims shape;
  Setting(const char* name, std::string_view reduction, const std::vector<const Tensor*>& tensors,
          const SourceLoc& place)
      : op(name), loc(user_loc(place)), scope(loc), how(parse_reduction(reduction, op, loc)) {
    for (const Tensor* t : tensors) {
      NodeRef n = node_of(*t, op, loc);
      Dims before = shape;
      if (!broadcast_shapes(before, n->shape, shape))
        fail(ErrorKind::Shape, op,
             "operands differ in shape: " + describe(*tensors[0]) + " and " + describe(*t), loc,
             "they must have the same shape, or broadcast");
      dtype = promote(dtype, n->dtype);
    }
    if (!is_float(dtype))
      fail(ErrorKind::DType, op, "needs floating types, not " + describe(*tensors[0]), loc,
           "convert with .to(float32)");
  }
  Tensor wide(const Tensor& x) const { return x.to(compute_type(dtype)); }

  /// Records the loss as a composite; f(Loss) gives a value for each element of `shape`.
  template <class F>
  Tensor record(const std::vector<Tensor>& operands, const std::vector<CompositeParam>& params,
                F) const {
    std::vector<CompositeParam> all{static_cast<int>(how)};
    all.insert(all.end(), params.begin(), params.end());
    return composite(
        op, all, operands, how == Reduction::None ? shape : Dims{}, dtype,
        [](const CompositeArgs& a) {
          return reduced(F{}(Loss{a}), static_cast<Reduction>(a.i(0))).to(a.result);
        },
        loc);
  }
};

// log(1 + exp(z)), stable.
Tensor softplus_of(const Tensor& z) { return maximum(z, 0.0) + log1p(exp(-abs(z))); }

// The root never sees a 0, where its gradient is infinite.
Tensor root(const Tensor& s) {
  Tensor zero = s == 0.0;
  return where(zero, 0.0, sqrt(where(zero, 1.0, s)));
}

Tensor p_norm(const Tensor& d, double p, int64_t dim, bool keepdim) {
  if (p == 2) return root((d * d).sum(dim, keepdim));
  if (p == 1) return abs(d).sum(dim, keepdim);
  if (p == 0) return (d != 0.0).to(d.dtype()).sum(dim, keepdim);
  if (std::isinf(p)) return p > 0 ? abs(d).amax(dim, keepdim) : abs(d).amin(dim, keepdim);
  Tensor zero = d == 0.0, powers = where(zero, 0.0, pow(where(zero, 1.0, abs(d)), p)),
         s = powers.sum(dim, keepdim), none = s == 0.0;
  return where(none, 0.0, pow(where(none, 1.0, s), 1.0 / p));
}

}  // namespace

Tensor l1_loss(const Tensor& input, const Tensor& target, std::string_view reduction,
               SourceLoc loc) {
  Setting s("l1_loss", reduction, {&input, &target}, loc);
  return s.record({input, target}, {}, [](const Loss& l) { return abs(l[0] - l[1]); });
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, std::string_view reduction,
                      double beta, SourceLoc loc) {
  Setting s("smooth_l1_loss", reduction, {&input, &target}, loc);
  if (!(beta >= 0))
    fail(ErrorKind::Value, "smooth_l1_loss", "beta cannot be negative: " + text_of(beta), s.loc);
  return s.record({input, target}, {beta}, [](const Loss& l) {
    const double bend = l.f(0);
    Tensor d = l[0] - l[1], a = abs(d);
    return bend == 0 ? a : where(a < bend, d * d * (0.5 / bend), a - 0.5 * bend);
  });
}

Tensor huber_loss(const Tensor& input, const Tensor& target, std::string_view reduction,
                  double delta, SourceLoc loc) {
  Setting s("huber_loss", reduction, {&input, &target}, loc);
  if (!(delta > 0))
    fail(ErrorKind::Value, "huber_loss", "delta must be positive, not " + text_of(delta), s.loc);
  return s.record({input, target}, {delta}, [](const Loss& l) {
    const double bend = l.f(0);
    Tensor d = l[0] - l[1], a = abs(d);
    return where(a <= bend, d * d * 0.5, (a - 0.5 * bend) * bend);
  });
}

// ---- Probabilities

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                            std::string_view reduction, SourceLoc loc) {
  std::vector<const Tensor*> in{&input, &target};
  if (weight.defined()) in.push_back(&weight);
  Setting s("binary_cross_entropy", reduction, in, loc);
  return s.record({input, target, weight}, {weight.defined()}, [](const Loss& of) {
    auto log_of = [](const Tensor& p) {
      Tensor none = p <= 0.0;
      return where(none, -100.0, clamp_min(log(where(none, 1.0, p)), -100.0));
    };
    const SourceLoc at = user_loc(SourceLoc::current());
    Tensor given = of[0], t = of[1];
    NodeRef sound = node_of(logical_and(given >= 0.0, given <= 1.0), "binary_cross_entropy", at);
    Tensor p =
        given + tensor_of(require(sound.get(), Check::BinaryCrossEntropy, at)).to(given.dtype());
    Tensor l = (t - 1.0) * log_of(1.0 - p) - t * log_of(p);
    return of.flag(0) ? l * of[2] : l;
  });
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const Tensor& weight, std::string_view reduction,
                                        const Tensor& pos_weight, SourceLoc loc) {
  std::vector<const Tensor*> in{&input, &target};
  for (const Tensor* w : {&weight, &pos_weight})
    if (w->defined()) in.push_back(w);
  Setting s("binary_cross_entropy_with_logits", reduction, in, loc);
  return s.record({input, target, weight, pos_weight}, {weight.defined(), pos_weight.defined()},
                  [](const Loss& of) {
                    Tensor x = of[0], t = of[1];
                    Tensor l = of.flag(1)
                                   ? (1.0 - t) * x + ((of.last() - 1.0) * t + 1.0) * softplus_of(-x)
                                   : softplus_of(-x) + (1.0 - t) * x;
                    return of.flag(0) ? l * of[2] : l;
                  });
}

Tensor kl_div(const Tensor& input, const Tensor& target, std::string_view reduction,
              bool log_target, SourceLoc loc) {
  const bool batch = reduction == "batchmean";
  Setting s("kl_div", batch ? "sum" : reduction, {&input, &target}, loc);
  Tensor l = s.record({input, target}, {log_target}, [](const Loss& of) {
    Tensor x = of[0], t = of[1];
    return of.flag(0) ? exp(t) * (t - x) : xlogy(t, t) - t * x;
  });
  return batch && input.dim() ? l / static_cast<double>(input.size(0)) : l;
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonOptions& o,
                        SourceLoc loc) {
  Setting s("poisson_nll_loss", o.reduction, {&input, &target}, loc);
  return s.record({input, target}, {o.log_input, o.full, o.eps}, [](const Loss& of) {
    Tensor x = of[0], t = of[1];
    Tensor l = of.flag(0) ? exp(x) - t * x : x - t * log(x + of.f(2));
    if (!of.flag(1)) return l;
    Tensor many = t > 1.0, n = where(many, t, 1.0);
    return l + where(many, n * log(n) - n + log(n * 6.283185307179586) * 0.5, 0.0);
  });
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianOptions& o, SourceLoc loc) {
  SourceLoc at = user_loc(loc);
  NodeRef n = node_of(input, "gaussian_nll_loss", at), v = node_of(var, "gaussian_nll_loss", at);
  Dims without(n->shape.begin(), std::max(0, n->rank() - 1)), one = without;
  one.push_back(1);
  bool missing = !(v->shape == n->shape) && v->shape == without;
  if (!(v->shape == n->shape) && !missing && !(v->shape == one) && v->rank() != 0)
    fail(ErrorKind::Shape, "gaussian_nll_loss",
         "var " + describe(var) + " does not fit input " + describe(input), at,
         "it must have the input's shape, or the last dim 1 or missing");
  Tensor shaped = missing ? var.unsqueeze(-1, at) : var;
  Setting s("gaussian_nll_loss", o.reduction, {&input, &target, &shaped}, loc);
  return s.record({input, target, shaped}, {o.full, o.eps}, [](const Loss& of) {
    Tensor w = of[2], d = of[0] - of[1];
    w = w + (clamp_min(w, of.f(1)) - w).detach();  // the gradient passes as if nothing was clamped
    Tensor l = (log(w) + d * d / w) * 0.5;
    return of.flag(0) ? l + 0.9189385332046727 : l;
  });
}

// ---- Margins

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin,
                            std::string_view reduction, SourceLoc loc) {
  Setting s("hinge_embedding_loss", reduction, {&input, &target}, loc);
  return s.record({input, target}, {margin}, [](const Loss& of) {
    Tensor x = of[0], sign = of.a[1];
    return where(sign != 1, clamp_min(of.f(0) - x, 0.0), 0.0) + where(sign != -1, x, 0.0);
  });
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                           std::string_view reduction, SourceLoc loc) {
  Setting s("margin_ranking_loss", reduction, {&a, &b, &target}, loc);
  return s.record({a, b, target}, {margin},
                  [](const Loss& l) { return clamp_min(-l[2] * (l[0] - l[1]) + l.f(0), 0.0); });
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                             std::string_view reduction, SourceLoc loc) {
  Setting s("cosine_embedding_loss", reduction, {&a, &b}, loc);
  NodeRef t = node_of(target, "cosine_embedding_loss", s.loc);
  if (t->rank() > 1 || a.dim() != t->rank() + 1 || b.dim() != a.dim())
    fail(ErrorKind::Shape, "cosine_embedding_loss",
         "a target of " + describe(target) + " does not go with inputs " + describe(a) + " and " +
             describe(b),
         s.loc, "use inputs [N, D] with a target [N], or [D] with a 0-d target");
  s.shape.erase(s.shape.size() - 1);
  const Dims rows = s.shape;
  if (!broadcast_shapes(rows, t->shape, s.shape))
    fail(ErrorKind::Shape, "cosine_embedding_loss",
         "operands differ in shape: " + describe(a) + " and " + describe(target), s.loc,
         "they must have the same shape, or broadcast");
  return s.record({a, b, target}, {margin}, [](const Loss& l) {
    Tensor x = l[0], y = l[1], sign = l.a[2];
    Tensor size = ((x * x).sum(-1) + 1e-12) * ((y * y).sum(-1) + 1e-12),
           c = (x * y).sum(-1) / sqrt(size);
    return where(sign == 1, 1.0 - c, 0.0) + where(sign == -1, clamp_min(c - l.f(0), 0.0), 0.0);
  });
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletOptions& o, SourceLoc loc) {
  Setting s("triplet_margin_loss", o.reduction, {&anchor, &positive, &negative}, loc);
  if (!s.shape.empty()) s.shape.erase(s.shape.size() - 1);
  return s.record({anchor, positive, negative}, {o.margin, o.p, o.eps, o.swap}, [](const Loss& l) {
    auto distance = [&](const Tensor& x, const Tensor& y) {
      return pairwise_distance(x, y, l.f(1), l.f(2));
    };
    Tensor a = l[0], p = l[1], n = l[2], near = distance(a, p), far = distance(a, n);
    if (l.flag(3)) far = minimum(far, distance(p, n));
    return clamp_min(near - far + l.f(0), 0.0);
  });
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, std::string_view reduction,
                        SourceLoc loc) {
  Setting s("soft_margin_loss", reduction, {&input, &target}, loc);
  return s.record({input, target}, {}, [](const Loss& l) { return softplus_of(-l[1] * l[0]); });
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                                   std::string_view reduction, SourceLoc loc) {
  std::vector<const Tensor*> in{&input, &target};
  if (weight.defined()) in.push_back(&weight);
  Setting s("multilabel_soft_margin_loss", reduction, in, loc);
  if (!s.shape.empty()) s.shape.erase(s.shape.size() - 1);
  return s.record({input, target, weight}, {weight.defined()}, [](const Loss& of) {
    Tensor x = of[0], t = of[1], l = softplus_of(-x) + (1.0 - t) * x;
    if (of.flag(0)) l = l * of[2];
    return l.dim() ? l.mean(-1) : l;
  });
}

// ---- Distances

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps, SourceLoc loc) {
  Setting s("cosine_similarity", "none", {&a, &b}, loc);
  std::vector<Tensor> both{s.wide(a), s.wide(b)};
  int rank = std::max(both[0].dim(), both[1].dim());
  NodeRef n = (both[0].dim() == rank ? both[0] : both[1]).cell()->current();
  int d = wrap_dim(dim, n, "cosine_similarity", s.loc) -
          std::max(1, rank);  // counted from the end: both may differ in rank
  Dims shape;
  broadcast_shapes(both[0].shape(), both[1].shape(), shape);
  Tensor x = expand(both[0], shape), y = expand(both[1], shape);
  Tensor lx = clamp_min(p_norm(x, 2, d, true), eps), ly = clamp_min(p_norm(y, 2, d, true), eps);
  return ((x / lx) * (y / ly)).sum(d).to(s.dtype);
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim,
                         SourceLoc loc) {
  Setting s("pairwise_distance", "none", {&a, &b}, loc);
  return p_norm(s.wide(a) - s.wide(b) + eps, p, -1, keepdim).to(s.dtype);
}

Tensor cdist(const Tensor& a, const Tensor& b, double p, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef x = floating_node(a, "cdist", loc), y = floating_node(b, "cdist", loc);
  if (x->rank() < 2 || y->rank() < 2 || x->shape.back() != y->shape.back())
    fail(ErrorKind::Shape, "cdist",
         "needs rows of the same size: " + describe(a) + " and " + describe(b), loc);
  if (!(p >= 0)) fail(ErrorKind::Value, "cdist", "p cannot be negative: " + text_of(p), loc);
  DType t = promote(x->dtype, y->dtype), w = compute_type(t);
  return p_norm(a.to(w).unsqueeze(-2) - b.to(w).unsqueeze(-3), p, -1, false).to(t);
}

Tensor normalize(const Tensor& x, double p, int64_t dim, double eps, SourceLoc loc) {
  return in_wide(x, "normalize", loc, [&](const Tensor& f) {
    const NodeRef n = f.cell()->current();
    int d = wrap_dim(dim, n, "normalize", user_loc(loc));
    return f / clamp_min(p_norm(f, p, d, true), eps);
  });
}

}  // namespace ingot
