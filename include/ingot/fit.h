// fit(): the usual training loop, for those who do not want to write it, and the metrics it shows.
// Nothing in it needs it: a loop of your own over the loader does the same (examples/train.cpp).
//
//   auto history = fit(model, train, {.optimizer = &opt, .epochs = 5, .validation = &test, .metrics
//   = {metrics::accuracy()}});
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ingot/amp.h"
#include "ingot/checkpoint.h"
#include "ingot/data.h"
#include "ingot/nn/module.h"
#include "ingot/optim.h"

namespace ingot {

/// A metric over many batches. What update() is given stays on the device; value() waits for it.
class Metric {
 public:
  explicit Metric(std::string name) : name_(std::move(name)) {}
  virtual ~Metric();
  const std::string& name() const { return name_; }
  virtual void reset() = 0;
  virtual void update(const Tensor& output, const Tensor& target,
                      SourceLoc loc = SourceLoc::current()) = 0;
  virtual double value(SourceLoc loc = SourceLoc::current()) const = 0;

 private:
  std::string name_;
};

namespace metrics {

/// Share of the rows of output [N, C, ...] whose largest element is at target [N, ...]. All of
/// these throw Error(Shape) for a target that does not fit.
std::shared_ptr<Metric> accuracy();
/// Share of the targets among the k largest. Error(Value) unless k >= 1.
std::shared_ptr<Metric> top_k(int64_t k, SourceLoc loc = SourceLoc::current());
/// exp of the mean cross entropy; targets of -100 do not count.
std::shared_ptr<Metric> perplexity();

/// How often class i (row) was predicted as class j (column); value() is the accuracy. Error(Value)
/// unless num_classes >= 1.
class Confusion : public Metric {
 public:
  explicit Confusion(int64_t num_classes, SourceLoc loc = SourceLoc::current());
  void reset() override;
  void update(const Tensor& output, const Tensor& target,
              SourceLoc loc = SourceLoc::current()) override;
  double value(SourceLoc loc = SourceLoc::current()) const override;
  /// [num_classes, num_classes], int64.
  Tensor matrix() const;

 private:
  int64_t classes_;
  Tensor counts_;
};
std::shared_ptr<Confusion> confusion(int64_t num_classes, SourceLoc loc = SourceLoc::current());

}  // namespace metrics

/// One epoch, as fit() has seen it.
struct EpochRecord {
  int64_t epoch = 0;  ///< from 0
  double loss = 0;    ///< mean over the batches
  std::vector<double> metrics;
  std::optional<double> validation_loss;
  std::vector<double> validation_metrics;
  double lr = 0;
  double seconds = 0;
};

struct FitOptions {
  optim::Optimizer* optimizer = nullptr;  ///< must be given
  int64_t epochs = 1;
  std::function<Tensor(const Tensor& output, const Tensor& target)>
      loss{};  ///< cross_entropy when not given
  data::DataLoader* validation =
      nullptr;  ///< run after each epoch, in eval() and without gradients
  std::vector<std::shared_ptr<Metric>> metrics{};
  optim::LRScheduler* scheduler = nullptr;
  bool schedule_each_step =
      false;  ///< else after each epoch (a plateau's metric is the validation loss, or the loss)
  std::optional<DType> autocast{};               ///< bfloat16 or float16 (with its own GradScaler)
  int64_t accumulate = 1;                        ///< batches whose gradients make one step
  double clip_grad_norm = 0;                     ///< 0: none
  std::optional<optim::NonFinite> non_finite{};  ///< what a NanGuard does
  Checkpoint* checkpoint = nullptr;  ///< resumed at the beginning, saved after each epoch
  std::function<void(int64_t step, const Tensor& loss)>
      on_step{};  ///< after each step; reading the loss waits for it
  std::function<bool(const EpochRecord&)> on_epoch{};  ///< false ends the training
  bool progress = true;                                ///< one line per epoch on stdout
};

/// Trains and returns what each epoch gave. Throws Error(Value) without an optimizer or with epochs
/// or accumulate below 1, Error(State) for float16 together with a guard, and what model, loss and
/// loader throw.
std::vector<EpochRecord> fit(nn::Module& model, data::DataLoader& train, const FitOptions& options,
                             SourceLoc loc = SourceLoc::current());

/// Mean loss and metrics over a loader, in eval() and without gradients; the model's mode is
/// restored.
EpochRecord evaluate(nn::Module& model, data::DataLoader& loader, const FitOptions& options,
                     SourceLoc loc = SourceLoc::current());

}  // namespace ingot
