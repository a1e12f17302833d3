// Losses as modules: loss(input, target), with PyTorch's names and defaults. `reduction` is "mean", "sum" or
// "none"; another word throws Error(Value), operands that do not fit Error(Shape).
#pragma once
#include "ingot/nn/module.h"
#include "ingot/ops.h"

namespace ingot::nn {

using Loss = ModuleOf<Tensor(Tensor, Tensor)>;

struct CrossEntropyLossOptions {
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  double label_smoothing = 0;
};
class CrossEntropyLoss : public Loss {
 public:
  explicit CrossEntropyLoss(CrossEntropyLossOptions options = {}) : o_(std::move(options)) {}
  Tensor forward(Tensor input, Tensor target) override;

 private:
  CrossEntropyLossOptions o_;
};
struct NLLLossOptions {
  int64_t ignore_index = -100;
  std::string reduction = "mean";
};
class NLLLoss : public Loss {
 public:
  explicit NLLLoss(NLLLossOptions options = {}) : o_(std::move(options)) {}
  Tensor forward(Tensor input, Tensor target) override;

 private:
  NLLLossOptions o_;
};

struct LossOptions {
  std::string reduction = "mean";
};
class MSELoss : public Loss {
 public:
  explicit MSELoss(LossOptions options = {}) : o_(std::move(options)) {}
  Tensor forward(Tensor input, Tensor target) override;

 private:
  LossOptions o_;
};
class L1Loss : public Loss {
 public:
  explicit L1Loss(LossOptions options = {}) : o_(std::move(options)) {}
  Tensor forward(Tensor input, Tensor target) override;

 private:
  LossOptions o_;
};
/// Of probabilities; logarithms are no less than -100.
class BCELoss : public Loss {
 public:
  explicit BCELoss(LossOptions options = {}) : o_(std::move(options)) {}
  Tensor forward(Tensor input, Tensor target) override;

 private:
  LossOptions o_;
};
struct BCEWithLogitsLossOptions {
  std::string reduction = "mean";
  Tensor pos_weight{};  ///< multiplies the part of the positive targets
};
class BCEWithLogitsLoss : public Loss {
 public:
  explicit BCEWithLogitsLoss(BCEWithLogitsLossOptions options = {}) : o_(std::move(options)) {}
  Tensor forward(Tensor input, Tensor target) override;

 private:
  BCEWithLogitsLossOptions o_;
};
struct SmoothL1LossOptions {
  std::string reduction = "mean";
  double beta = 1;
};
class SmoothL1Loss : public Loss {
 public:
  explicit SmoothL1Loss(SmoothL1LossOptions options = {}) : o_(std::move(options)) {}
  Tensor forward(Tensor input, Tensor target) override;

 private:
  SmoothL1LossOptions o_;
};
struct HuberLossOptions {
  std::string reduction = "mean";
  double delta = 1;
};
class HuberLoss : public Loss {
 public:
  explicit HuberLoss(HuberLossOptions options = {}) : o_(std::move(options)) {}
  Tensor forward(Tensor input, Tensor target) override;

 private:
  HuberLossOptions o_;
};
struct KLDivLossOptions {
  std::string reduction = "mean";  ///< also "batchmean"
  bool log_target = false;
};
/// target * (log(target) - input), the input being log-probabilities.
class KLDivLoss : public Loss {
 public:
  explicit KLDivLoss(KLDivLossOptions options = {}) : o_(std::move(options)) {}
  Tensor forward(Tensor input, Tensor target) override;

 private:
  KLDivLossOptions o_;
};

}  // namespace ingot::nn
