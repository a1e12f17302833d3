// fit(): one pass over the loader per epoch. Losses and metrics are summed on the device; the host
// waits at the end of an epoch, not at its steps.
#include "ingot/fit.h"

#include <chrono>
#include <cstdio>
#include <memory>

#include "ingot/autograd.h"
#include "ingot/runtime.h"
#include "ops/common.h"

namespace ingot {
namespace {

Tensor loss_of(const FitOptions& o, const Tensor& output, const Tensor& target) {
  return o.loss ? o.loss(output, target) : cross_entropy(output, target);
}

class Fit {
 public:
  Fit(nn::Module& model, data::DataLoader& train, const FitOptions& o, const SourceLoc& loc)
      : model_(model), train_(train), o_(o), loc_(loc) {
    if (!o.optimizer)
      fail(ErrorKind::Value, "fit", "there is no optimizer", loc, "give .optimizer = &opt");
    if (o.epochs < 1 || o.accumulate < 1)
      fail(ErrorKind::Value, "fit", "epochs and accumulate must be at least 1", loc);
    half_ = o.autocast && *o.autocast == float16;
    if (half_ && o.non_finite)
      fail(ErrorKind::State, "fit", "float16 skips bad steps by its GradScaler already", loc,
           "leave non_finite out, or use bfloat16");
    if (half_) scaler_ = std::make_unique<amp::GradScaler>();
    if (o.non_finite)
      guard_ = std::make_unique<optim::NanGuard>(
          *o.optimizer, optim::NanGuardOptions{.policy = *o.non_finite}, loc);
  }

  std::vector<EpochRecord> run() {
    std::vector<EpochRecord> history;
    for (int64_t epoch = o_.checkpoint ? o_.checkpoint->resume(loc_) : 0; epoch < o_.epochs;
         ++epoch) {
      const auto begin = std::chrono::steady_clock::now();
      EpochRecord r = one_epoch();
      r.epoch = epoch;
      r.lr = o_.optimizer->lr();
      if (o_.validation) {
        EpochRecord v = evaluate(model_, *o_.validation, o_, loc_);
        r.validation_loss = v.loss;
        r.validation_metrics = v.metrics;
      }
      if (o_.scheduler && !o_.schedule_each_step) schedule(r);
      r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (o_.checkpoint) o_.checkpoint->save(epoch + 1, loc_);
      if (o_.progress) print(r);
      history.push_back(r);
      if (o_.on_epoch && !o_.on_epoch(r)) break;
    }
    return history;
  }

 private:
  EpochRecord one_epoch() {
    model_.train();
    for (const auto& m : o_.metrics) m->reset();
    Tensor sum;
    int64_t batches = 0;
    for (auto [x, target] : train_) {
      Tensor loss = forward(x, target);
      if (!sum.defined()) sum = zeros({}, {float64, loss.device()}).eval_();
      {
        NoGrad guard;
        sum.add_(loss.detach().to(float64));
      }
      Tensor part = o_.accumulate > 1 ? loss / static_cast<double>(o_.accumulate) : loss;
      (half_ ? scaler_->scale(part) : part).backward();
      if (++batches % o_.accumulate == 0)
        step(part, loss);
      else
        run_pending_gradients();
    }
    if (batches % o_.accumulate != 0)
      o_.optimizer->zero_grad();  // the remainder is not a complete step
    EpochRecord r;
    r.loss = batches ? sum.item() / static_cast<double>(batches) : 0;
    for (const auto& m : o_.metrics) r.metrics.push_back(m->value());
    return r;
  }

  Tensor forward(const Tensor& x, const Tensor& target) {
    std::optional<amp::Autocast> cast;
    if (o_.autocast) cast.emplace(*o_.autocast);
    Tensor output = model_(x);
    for (const auto& m : o_.metrics) m->update(output, target);
    return loss_of(o_, output, target);
  }

  void step(const Tensor& part, const Tensor& loss) {
    optim::Optimizer& opt = *o_.optimizer;
    if (half_ && o_.clip_grad_norm > 0) scaler_->unscale_(opt);
    if (o_.clip_grad_norm > 0) optim::clip_grad_norm_(opt.params(), o_.clip_grad_norm);
    if (half_) {
      scaler_->step(opt);
      scaler_->update();
    } else if (guard_) {
      guard_->step(part);
    } else {
      opt.step();
    }
    if (o_.scheduler && o_.schedule_each_step) o_.scheduler->step();
    ++steps_;
    if (o_.on_step) o_.on_step(steps_, loss.detach());
  }

  // Gradients of each part of a step are computed immediately, so the plan of a step is that of one
  // batch.
  void run_pending_gradients() {
    std::vector<Tensor> gradients;
    for (const Tensor& p : o_.optimizer->params())
      if (Tensor g = p.grad(); g.defined()) gradients.push_back(g);
    eval(gradients);
  }

  void schedule(const EpochRecord& r) {
    try {
      o_.scheduler->step();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::State) throw;
      o_.scheduler->step(r.validation_loss.value_or(r.loss));
    }
  }

  void print(const EpochRecord& r) const {
    std::string line = "epoch " + std::to_string(r.epoch) + "  loss " + text_of(r.loss);
    for (size_t i = 0; i < r.metrics.size(); ++i)
      line += "  " + o_.metrics[i]->name() + " " + text_of(r.metrics[i]);
    if (r.validation_loss) line += "  validation loss " + text_of(*r.validation_loss);
    for (size_t i = 0; i < r.validation_metrics.size(); ++i)
      line += "  " + o_.metrics[i]->name() + " " + text_of(r.validation_metrics[i]);
    std::printf("%s  lr %g  %.1f s\n", line.c_str(), r.lr, r.seconds);
    std::fflush(stdout);
  }

  nn::Module& model_;
  data::DataLoader& train_;
  const FitOptions& o_;
  SourceLoc loc_;
  bool half_ = false;
  int64_t steps_ = 0;
  std::unique_ptr<amp::GradScaler> scaler_;
  std::unique_ptr<optim::NanGuard> guard_;
};

}  // namespace

std::vector<EpochRecord> fit(nn::Module& model, data::DataLoader& train, const FitOptions& options,
                             SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  return Fit(model, train, options, loc).run();
}

EpochRecord evaluate(nn::Module& model, data::DataLoader& loader, const FitOptions& o,
                     SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  const bool training = model.is_training();
  model.eval();
  struct Back {
    nn::Module& m;
    bool on;
    ~Back() { m.train(on); }
  } back{model, training};
  for (const auto& m : o.metrics) m->reset();
  Tensor sum;
  int64_t batches = 0;
  for (auto [x, target] : loader) {
    std::optional<amp::Autocast> cast;
    if (o.autocast) cast.emplace(*o.autocast);
    Tensor output = model(x), loss = loss_of(o, output, target);
    if (!sum.defined()) sum = zeros({}, {float64, loss.device()}).eval_();
    sum.add_(loss.to(float64));
    for (const auto& m : o.metrics) m->update(output, target);
    sum.eval_();
    ++batches;
  }
  EpochRecord r;
  r.loss = batches ? sum.item() / static_cast<double>(batches) : 0;
  for (const auto& m : o.metrics) r.metrics.push_back(m->value());
  return r;
}

}  // namespace ingot
