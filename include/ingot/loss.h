// Losses and distances. `reduction` is "mean", "sum" or "none" (another word: Error(Value)). Input
// and target broadcast: Error(Shape) when they do not fit; Error(DType) unless floating. 16-bit
// floats compute in float32 and are rounded once.
#pragma once
#include <string_view>

#include "ingot/tensor.h"

namespace ingot {

// ---- Losses

struct CrossEntropyOptions {
  Tensor weight{};  ///< [C], floating: how much each class counts; undefined: all the same
  int64_t ignore_index = -100;          ///< targets with this value do not count
  std::string_view reduction = "mean";  ///< "mean", "sum" or "none"
  double label_smoothing = 0;           ///< in [0, 1]
};
/// Negative log likelihood of target under softmax(input): input [N, C, ...], [C]. target: class
/// indices without C, int64 or int32, or probabilities of the input's shape, floating. "mean"
/// divides by the sum of the targets' weights; with probabilities by N times the other sizes but C.
/// A class index outside 0..C-1 other than ignore_index raises Error(Index) when computed;
/// Error(Shape) and Error(DType) when input, target and weight do not fit.
Tensor cross_entropy(const Tensor& input, const Tensor& target,
                     const CrossEntropyOptions& options = {}, INGOT_LOC);
/// The same for log-probabilities, with class indices only.
Tensor nll_loss(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {},
                INGOT_LOC);
/// (input - target)^2, reduced: "mean", "sum" or "none".
Tensor mse_loss(const Tensor& input, const Tensor& target, std::string_view reduction = "mean",
                INGOT_LOC);
Tensor l1_loss(const Tensor& input, const Tensor& target, std::string_view reduction = "mean",
               INGOT_LOC);  ///< |input - target|
/// Squared below beta, linear above: 0.5 d^2 / beta, |d| - 0.5 beta. Error(Value) when beta is
/// negative.
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                      std::string_view reduction = "mean", double beta = 1, INGOT_LOC);
/// 0.5 d^2 up to delta, delta (|d| - 0.5 delta) beyond. Error(Value) unless delta is positive.
Tensor huber_loss(const Tensor& input, const Tensor& target, std::string_view reduction = "mean",
                  double delta = 1, INGOT_LOC);
/// -(t log p + (1 - t) log(1 - p)) of probabilities, the logarithms no less than -100; times weight
/// when given.
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                            std::string_view reduction = "mean", INGOT_LOC);
/// The same of logits, stable; pos_weight multiplies the part of the positive targets.
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const Tensor& weight = {},
                                        std::string_view reduction = "mean",
                                        const Tensor& pos_weight = {}, INGOT_LOC);
/// target * (log(target) - input), input being log-probabilities; log_target: the target is too.
/// reduction also "batchmean".
Tensor kl_div(const Tensor& input, const Tensor& target, std::string_view reduction = "mean",
              bool log_target = false, INGOT_LOC);
/// x where the target is 1, max(0, margin - x) where it is -1.
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin = 1,
                            std::string_view reduction = "mean", INGOT_LOC);
/// max(0, -target * (a - b) + margin).
Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                           double margin = 0, std::string_view reduction = "mean", INGOT_LOC);
/// 1 - cos(a, b) where the target is 1, max(0, cos(a, b) - margin) where it is -1; a, b [N, D] or
/// [D].
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                             double margin = 0, std::string_view reduction = "mean", INGOT_LOC);
struct TripletOptions {
  double margin = 1;
  double p = 2;
  double eps = 1e-6;
  bool swap = false;  ///< use the distance from positive to negative where it is smaller
  std::string_view reduction = "mean";
};
/// max(0, d(anchor, positive) - d(anchor, negative) + margin), d being pairwise_distance.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletOptions& options = {}, INGOT_LOC);
Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                        std::string_view reduction = "mean",
                        INGOT_LOC);  ///< log(1 + exp(-target * input))
struct PoissonOptions {
  bool log_input = true;  ///< exp(input) - target * input; else input - target * log(input + eps)
  bool full = false;      ///< adds Stirling's approximation of log(target!) where target > 1
  double eps = 1e-8;
  std::string_view reduction = "mean";
};
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                        const PoissonOptions& options = {}, INGOT_LOC);
struct GaussianOptions {
  bool full = false;  ///< adds log(2 pi) / 2
  double eps = 1e-6;  ///< the variance is at least this
  std::string_view reduction = "mean";
};
/// 0.5 (log(var) + (input - target)^2 / var); var of the input's shape, or with the last dim 1 or
/// missing.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianOptions& options = {}, INGOT_LOC);
/// Several labels at once: binary_cross_entropy_with_logits averaged over the classes (the last
/// dim).
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const Tensor& weight = {}, std::string_view reduction = "mean",
                                   INGOT_LOC);

// ---- Distances

/// Cosine of the angle between slices along dim; each length at least eps.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim = 1, double eps = 1e-8,
                         INGOT_LOC);
/// p-norm of a - b + eps over the last dim.
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2, double eps = 1e-6,
                         bool keepdim = false, INGOT_LOC);
/// p-norm of the difference of every row of a [.., P, M] and every row of b [.., R, M]: [.., P, R].
/// Error(Value) when p is negative.
Tensor cdist(const Tensor& a, const Tensor& b, double p = 2, INGOT_LOC);
/// x divided by its p-norm along dim, which counts as at least eps.
Tensor normalize(const Tensor& x, double p = 2, int64_t dim = 1, double eps = 1e-12, INGOT_LOC);

}  // namespace ingot
