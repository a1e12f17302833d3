// Losses as modules: loss(input, target), with PyTorch's names and defaults; each calls the
// function of that name (loss.h) and throws what it throws. A weight is a buffer: it moves with the
// module and is in state_dict().
#pragma once
#include "ingot/loss.h"
#include "ingot/nn/module.h"

namespace ingot::nn {

using Loss = ModuleOf<Tensor(Tensor, Tensor)>;
using Loss3 = ModuleOf<Tensor(Tensor, Tensor, Tensor)>;

/// A loss and its options.
template <class Base, class O>
class LossOf : public Base {
 public:
  explicit LossOf(O options = {}) : o_(std::move(options)) {}

 protected:
  O o_;
};

#define INGOT_LOSS(Name, Options)                         \
  class Name : public LossOf<Loss, Options> {             \
   public:                                                \
    using LossOf::LossOf;                                 \
    Tensor forward(Tensor input, Tensor target) override; \
  };
// Those whose options hold tensors have their own constructor, which makes these buffers.
#define INGOT_WEIGHTED_LOSS(Name)                                                           \
  class Name : public LossOf<Loss, Name##Options> {                                         \
   public:                                                                                  \
    explicit Name(const Name##Options& options = {}, SourceLoc loc = SourceLoc::current()); \
    Tensor forward(Tensor input, Tensor target) override;                                   \
  };
#define INGOT_LOSS3(Name, Options, a, b, c)                \
  class Name : public LossOf<Loss3, Options> {             \
   public:                                                 \
    using LossOf::LossOf;                                  \
    Tensor forward(Tensor a, Tensor b, Tensor c) override; \
  };

struct CrossEntropyLossOptions {
  Parameter weight{};  ///< [C]: how much each class counts
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  double label_smoothing = 0;
};
INGOT_WEIGHTED_LOSS(CrossEntropyLoss)
struct NLLLossOptions {
  Parameter weight{};
  int64_t ignore_index = -100;
  std::string reduction = "mean";
};
INGOT_WEIGHTED_LOSS(NLLLoss)
struct BCELossOptions {
  Parameter weight{};  ///< multiplies each element's loss
  std::string reduction = "mean";
};
INGOT_WEIGHTED_LOSS(BCELoss)
struct BCEWithLogitsLossOptions {
  Parameter weight{};
  std::string reduction = "mean";
  Parameter pos_weight{};  ///< multiplies the part of the positive targets
};
INGOT_WEIGHTED_LOSS(BCEWithLogitsLoss)
struct MultiLabelSoftMarginLossOptions {
  Parameter weight{};
  std::string reduction = "mean";
};
INGOT_WEIGHTED_LOSS(MultiLabelSoftMarginLoss)

struct LossOptions {
  std::string reduction = "mean";
};
INGOT_LOSS(MSELoss, LossOptions)
INGOT_LOSS(L1Loss, LossOptions)
INGOT_LOSS(SoftMarginLoss, LossOptions)
struct SmoothL1LossOptions {
  std::string reduction = "mean";
  double beta = 1;
};
INGOT_LOSS(SmoothL1Loss, SmoothL1LossOptions)
struct HuberLossOptions {
  std::string reduction = "mean";
  double delta = 1;
};
INGOT_LOSS(HuberLoss, HuberLossOptions)
struct KLDivLossOptions {
  std::string reduction = "mean";  ///< also "batchmean"
  bool log_target = false;
};
INGOT_LOSS(KLDivLoss, KLDivLossOptions)
struct PoissonNLLLossOptions {
  bool log_input = true;
  bool full = false;
  double eps = 1e-8;
  std::string reduction = "mean";
};
INGOT_LOSS(PoissonNLLLoss, PoissonNLLLossOptions)
struct HingeEmbeddingLossOptions {
  double margin = 1;
  std::string reduction = "mean";
};
INGOT_LOSS(HingeEmbeddingLoss, HingeEmbeddingLossOptions)

struct MarginLossOptions {
  double margin = 0;
  std::string reduction = "mean";
};
INGOT_LOSS3(MarginRankingLoss, MarginLossOptions, input1, input2, target)
INGOT_LOSS3(CosineEmbeddingLoss, MarginLossOptions, input1, input2, target)
struct TripletMarginLossOptions {
  double margin = 1;
  double p = 2;
  double eps = 1e-6;
  bool swap = false;
  std::string reduction = "mean";
};
INGOT_LOSS3(TripletMarginLoss, TripletMarginLossOptions, anchor, positive, negative)
struct GaussianNLLLossOptions {
  bool full = false;
  double eps = 1e-6;
  std::string reduction = "mean";
};
INGOT_LOSS3(GaussianNLLLoss, GaussianNLLLossOptions, input, target, var)

#undef INGOT_LOSS
#undef INGOT_WEIGHTED_LOSS
#undef INGOT_LOSS3

}  // namespace ingot::nn
