// Activations and losses beyond those of networks.cpp; nn/functional.py wraps them in PyTorch's
// signatures.
#include "bind.h"
#include "ingot/activation.h"
#include "ingot/loss.h"

namespace ingot_python {
namespace {

using T = const Tensor&;
using L = SourceLoc;
using Word = std::string_view;

void bind_activations(Table& t) {
#define UNARY(name) \
  t.function(       \
      #name, [](T x, L loc) { return name(x, loc); }, "input"_a)
  UNARY(relu6);
  UNARY(selu);
  UNARY(mish);
  UNARY(softsign);
  UNARY(hardswish);
  UNARY(hardsigmoid);
  UNARY(logsigmoid);
  UNARY(tanhshrink);
#undef UNARY
  t.function(
      "hardtanh", [](T x, double lo, double hi, L loc) { return hardtanh(x, lo, hi, loc); },
      "input"_a, "min_val"_a = -1.0, "max_val"_a = 1.0);
  t.both(
      "prelu", [](T x, T w, L loc) { return prelu(x, w, loc); }, "weight"_a);
  t.function(
      "rrelu",
      [](T x, double lo, double hi, bool train, L loc) {
        return rrelu(x, lo, hi, train, default_generator(), loc);
      },
      "input"_a, "lower"_a = 1.0 / 8, "upper"_a = 1.0 / 3, "training"_a = false);
  t.function(
      "elu", [](T x, double a, L loc) { return elu(x, a, loc); }, "input"_a, "alpha"_a = 1.0);
  t.function(
      "celu", [](T x, double a, L loc) { return celu(x, a, loc); }, "input"_a, "alpha"_a = 1.0);
  t.both(
      "hardshrink", [](T x, double l, L loc) { return hardshrink(x, l, loc); }, "lambd"_a = 0.5);
  t.function(
      "softshrink", [](T x, double l, L loc) { return softshrink(x, l, loc); }, "input"_a,
      "lambd"_a = 0.5);
  t.function(
      "threshold", [](T x, double at, double v, L loc) { return threshold(x, at, v, loc); },
      "input"_a, "threshold"_a, "value"_a);
  t.function(
      "glu", [](T x, int64_t d, L loc) { return glu(x, d, loc); }, "input"_a, "dim"_a = -1);
  t.function(
      "swiglu", [](T x, int64_t d, L loc) { return swiglu(x, d, loc); }, "input"_a, "dim"_a = -1);
  t.function(
      "swiglu", [](T gate, T up, L loc) { return swiglu(gate, up, loc); }, "gate"_a, "up"_a);
  t.function(
      "gumbel_softmax",
      [](T x, double tau, bool hard, int64_t d, L loc) {
        return gumbel_softmax(x, tau, hard, d, default_generator(), loc);
      },
      "logits"_a, "tau"_a = 1.0, "hard"_a = false, "dim"_a = -1);
}

void bind_losses(Table& t) {
#define LOSS(name)                                                                              \
  t.function(                                                                                   \
      #name, [](T x, T y, Word r, L loc) { return name(x, y, r, loc); }, "input"_a, "target"_a, \
      "reduction"_a = "mean")
  LOSS(l1_loss);
  LOSS(soft_margin_loss);
#undef LOSS
  t.function(
      "smooth_l1_loss",
      [](T x, T y, Word r, double b, L loc) { return smooth_l1_loss(x, y, r, b, loc); }, "input"_a,
      "target"_a, "reduction"_a = "mean", "beta"_a = 1.0);
  t.function(
      "huber_loss", [](T x, T y, Word r, double d, L loc) { return huber_loss(x, y, r, d, loc); },
      "input"_a, "target"_a, "reduction"_a = "mean", "delta"_a = 1.0);
  t.function(
      "binary_cross_entropy",
      [](T x, T y, T w, Word r, L loc) { return binary_cross_entropy(x, y, w, r, loc); }, "input"_a,
      "target"_a, "weight"_a.none() = nb::none(), "reduction"_a = "mean");
  t.function(
      "binary_cross_entropy_with_logits",
      [](T x, T y, T w, Word r, T p, L loc) {
        return binary_cross_entropy_with_logits(x, y, w, r, p, loc);
      },
      "input"_a, "target"_a, "weight"_a.none() = nb::none(), "reduction"_a = "mean",
      "pos_weight"_a.none() = nb::none());
  t.function(
      "kl_div", [](T x, T y, Word r, bool log, L loc) { return kl_div(x, y, r, log, loc); },
      "input"_a, "target"_a, "reduction"_a = "mean", "log_target"_a = false);
  t.function(
      "hinge_embedding_loss",
      [](T x, T y, double m, Word r, L loc) { return hinge_embedding_loss(x, y, m, r, loc); },
      "input"_a, "target"_a, "margin"_a = 1.0, "reduction"_a = "mean");
  t.function(
      "margin_ranking_loss",
      [](T a, T b, T y, double m, Word r, L loc) {
        return margin_ranking_loss(a, b, y, m, r, loc);
      },
      "input1"_a, "input2"_a, "target"_a, "margin"_a = 0.0, "reduction"_a = "mean");
  t.function(
      "cosine_embedding_loss",
      [](T a, T b, T y, double m, Word r, L loc) {
        return cosine_embedding_loss(a, b, y, m, r, loc);
      },
      "input1"_a, "input2"_a, "target"_a, "margin"_a = 0.0, "reduction"_a = "mean");
  t.function(
      "triplet_margin_loss",
      [](T a, T p, T n, double margin, double power, double eps, bool swap, Word r, L loc) {
        TripletOptions o;
        o.margin = margin, o.p = power, o.eps = eps, o.swap = swap, o.reduction = r;
        return triplet_margin_loss(a, p, n, o, loc);
      },
      "anchor"_a, "positive"_a, "negative"_a, "margin"_a = 1.0, "p"_a = 2.0, "eps"_a = 1e-6,
      "swap"_a = false, "reduction"_a = "mean");
  t.function(
      "poisson_nll_loss",
      [](T x, T y, bool log, bool full, double eps, Word r, L loc) {
        PoissonOptions o;
        o.log_input = log, o.full = full, o.eps = eps, o.reduction = r;
        return poisson_nll_loss(x, y, o, loc);
      },
      "input"_a, "target"_a, "log_input"_a = true, "full"_a = false, "eps"_a = 1e-8,
      "reduction"_a = "mean",
      "The negative log likelihood of target under Poisson distributions whose (log) rates are "
      "input.");
  t.function(
      "gaussian_nll_loss",
      [](T x, T y, T v, bool full, double eps, Word r, L loc) {
        GaussianOptions o;
        o.full = full, o.eps = eps, o.reduction = r;
        return gaussian_nll_loss(x, y, v, o, loc);
      },
      "input"_a, "target"_a, "var"_a, "full"_a = false, "eps"_a = 1e-6, "reduction"_a = "mean");
  t.function(
      "multilabel_soft_margin_loss",
      [](T x, T y, T w, Word r, L loc) { return multilabel_soft_margin_loss(x, y, w, r, loc); },
      "input"_a, "target"_a, "weight"_a.none() = nb::none(), "reduction"_a = "mean");
  t.function(
      "cosine_similarity",
      [](T a, T b, int64_t d, double eps, L loc) { return cosine_similarity(a, b, d, eps, loc); },
      "x1"_a, "x2"_a, "dim"_a = 1, "eps"_a = 1e-8);
  t.function(
      "pairwise_distance",
      [](T a, T b, double p, double eps, bool keep, L loc) {
        return pairwise_distance(a, b, p, eps, keep, loc);
      },
      "x1"_a, "x2"_a, "p"_a = 2.0, "eps"_a = 1e-6, "keepdim"_a = false);
  t.function(
      "cdist",
      [](T a, T b, double p, const std::string& mode, L loc) {
        for (const char* known : {"use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
                                  "donot_use_mm_for_euclid_dist"})
          if (mode == known) return cdist(a, b, p, loc);
        throw Error(ErrorKind::Value, "cdist", "compute_mode '" + mode + "' is not known", loc,
                    "leave it out: it changes no result here");
      },
      "x1"_a, "x2"_a, "p"_a = 2.0, "compute_mode"_a = "use_mm_for_euclid_dist_if_necessary");
  t.function(
      "normalize",
      [](T x, double p, int64_t d, double eps, L loc) { return normalize(x, p, d, eps, loc); },
      "input"_a, "p"_a = 2.0, "dim"_a = 1, "eps"_a = 1e-12);
}

}  // namespace

void bind_losses_and_activations(Table& t) {
  bind_activations(t);
  bind_losses(t);
}

}  // namespace ingot_python
