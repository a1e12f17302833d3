// Losses as modules, and the activation with parameters: the functions do the work.
#include "ingot/nn/loss.h"

#include "ingot/nn/activation.h"
#include "nn/layer_common.h"

namespace ingot::nn {
namespace {

// The tensors of a loss's options become its buffers, so that they move with the module.
void hold(Module& m, const char* name, const Tensor& t, const SourceLoc& loc) {
  if (t.defined()) m.register_buffer(name, t, true, loc);
}

}  // namespace

CrossEntropyLoss::CrossEntropyLoss(const CrossEntropyLossOptions& o, SourceLoc loc) : LossOf(o) {
  hold(*this, "weight", o_.weight, loc);
}
NLLLoss::NLLLoss(const NLLLossOptions& o, SourceLoc loc) : LossOf(o) {
  hold(*this, "weight", o_.weight, loc);
}
BCELoss::BCELoss(const BCELossOptions& o, SourceLoc loc) : LossOf(o) {
  hold(*this, "weight", o_.weight, loc);
}
BCEWithLogitsLoss::BCEWithLogitsLoss(const BCEWithLogitsLossOptions& o, SourceLoc loc) : LossOf(o) {
  hold(*this, "weight", o_.weight, loc);
  hold(*this, "pos_weight", o_.pos_weight, loc);
}
MultiLabelSoftMarginLoss::MultiLabelSoftMarginLoss(const MultiLabelSoftMarginLossOptions& o,
                                                   SourceLoc loc)
    : LossOf(o) {
  hold(*this, "weight", o_.weight, loc);
}

Tensor CrossEntropyLoss::forward(Tensor input, Tensor target) {
  return cross_entropy(input, target,
                       {o_.weight, o_.ignore_index, o_.reduction, o_.label_smoothing});
}
Tensor NLLLoss::forward(Tensor input, Tensor target) {
  return nll_loss(
      input, target,
      {.weight = o_.weight, .ignore_index = o_.ignore_index, .reduction = o_.reduction});
}
Tensor BCELoss::forward(Tensor input, Tensor target) {
  return binary_cross_entropy(input, target, o_.weight, o_.reduction);
}
Tensor BCEWithLogitsLoss::forward(Tensor input, Tensor target) {
  return binary_cross_entropy_with_logits(input, target, o_.weight, o_.reduction, o_.pos_weight);
}
Tensor MultiLabelSoftMarginLoss::forward(Tensor input, Tensor target) {
  return multilabel_soft_margin_loss(input, target, o_.weight, o_.reduction);
}
Tensor MSELoss::forward(Tensor input, Tensor target) {
  return mse_loss(input, target, o_.reduction);
}
Tensor L1Loss::forward(Tensor input, Tensor target) { return l1_loss(input, target, o_.reduction); }
Tensor SoftMarginLoss::forward(Tensor input, Tensor target) {
  return soft_margin_loss(input, target, o_.reduction);
}
Tensor SmoothL1Loss::forward(Tensor input, Tensor target) {
  return smooth_l1_loss(input, target, o_.reduction, o_.beta);
}
Tensor HuberLoss::forward(Tensor input, Tensor target) {
  return huber_loss(input, target, o_.reduction, o_.delta);
}
Tensor KLDivLoss::forward(Tensor input, Tensor target) {
  return kl_div(input, target, o_.reduction, o_.log_target);
}
Tensor PoissonNLLLoss::forward(Tensor input, Tensor target) {
  return poisson_nll_loss(input, target, {o_.log_input, o_.full, o_.eps, o_.reduction});
}
Tensor HingeEmbeddingLoss::forward(Tensor input, Tensor target) {
  return hinge_embedding_loss(input, target, o_.margin, o_.reduction);
}
Tensor MarginRankingLoss::forward(Tensor input1, Tensor input2, Tensor target) {
  return margin_ranking_loss(input1, input2, target, o_.margin, o_.reduction);
}
Tensor CosineEmbeddingLoss::forward(Tensor input1, Tensor input2, Tensor target) {
  return cosine_embedding_loss(input1, input2, target, o_.margin, o_.reduction);
}
Tensor TripletMarginLoss::forward(Tensor anchor, Tensor positive, Tensor negative) {
  return triplet_margin_loss(anchor, positive, negative,
                             {o_.margin, o_.p, o_.eps, o_.swap, o_.reduction});
}
Tensor GaussianNLLLoss::forward(Tensor input, Tensor target, Tensor var) {
  return gaussian_nll_loss(input, target, var, {o_.full, o_.eps, o_.reduction});
}

Tensor GELU::forward(Tensor x) { return gelu(x, approximate_); }
std::string GELU::description() const { return "GELU(approximate='" + approximate_ + "')"; }

PReLU::PReLU(const PReLUOptions& o, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_size(o.num_parameters, "num_parameters", "PReLU", loc);
  register_parameter("weight", full({o.num_parameters}, o.init, where_of(o)), loc);
}

Tensor PReLU::forward(Tensor x) { return prelu(x, own(0)); }

}  // namespace ingot::nn
