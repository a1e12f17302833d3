// What a recipe's settings mean: device, optimiser, schedule, one step.
#include <algorithm>
#include <cmath>
#include <memory>

#include "cli.h"
#include "train.h"

namespace ingot::cli {

Recipe effective_recipe(const TrainArgs& a) {
  Recipe r = Recipe::load(a.recipe);
  for (const std::string& s : a.sets) r.set(s);
  if (a.epochs > 0) r.set("epochs", a.epochs), r.set("steps", 0);
  if (a.batch > 0) r.set("batch", a.batch);
  if (a.lr > 0) r.set("lr", a.lr);
  if (!a.amp.empty()) r.set("amp", a.amp);
  if (!a.device.empty()) r.set("device", a.device);
  if (r.text("amp") != "off" && r.text("amp") != "bf16")
    throw Failure(kUsage, "there is no amp \"" + r.text("amp") + "\"", "Set amp to off or bf16.");
  if (r.integer("accumulate") > 1 && r.integer("batch") % r.integer("accumulate") != 0)
    throw Failure(kUsage, "batch is not a multiple of accumulate", "Change one of them.");
  return r;
}

Device device_of(const Recipe& recipe) {
  const std::string name = recipe.text("device");
  if (name == "auto") return Device::best();
  try {
    return Device(name);
  } catch (const Error& e) {
    throw Failure(kNoDevice, e.reason(),
                  "`ingot devices` lists the devices, `ingot doctor` finds what is wrong; --device "
                  "cpu works everywhere.");
  }
}

std::unique_ptr<optim::Optimizer> make_optimizer(const Recipe& r,
                                                 const std::vector<Tensor>& parameters) {
  const std::string kind = r.text("optimizer");
  const double lr = r.number("lr"), decay = r.number("weight_decay");
  // Weight decay applies to matrices and kernels, not to biases and norms.
  std::vector<Tensor> decayed, rest;
  for (const Tensor& p : parameters) (p.dim() > 1 ? decayed : rest).push_back(p);
  auto groups = [&]<class O>(O o) {
    std::vector<optim::ParamGroup<O>> g;
    O plain = o;
    plain.weight_decay = 0;
    if (!decayed.empty()) g.push_back({decayed, o});
    if (!rest.empty()) g.push_back({rest, plain});
    return g;
  };
  if (kind == "adamw")
    return std::make_unique<optim::AdamW>(
        groups(optim::AdamWOptions{.lr = lr, .weight_decay = decay}));
  if (kind == "adam")
    return std::make_unique<optim::Adam>(
        groups(optim::AdamOptions{.lr = lr, .weight_decay = decay}));
  if (kind == "sgd")
    return std::make_unique<optim::SGD>(groups(
        optim::SGDOptions{.lr = lr, .momentum = r.number("momentum"), .weight_decay = decay}));
  throw Failure(kUsage, "there is no optimizer \"" + kind + "\"",
                "Set optimizer to adamw, adam or sgd.");
}

std::unique_ptr<optim::LRScheduler> make_schedule(const Recipe& r, optim::Optimizer& optimizer,
                                                  int64_t steps) {
  const std::string kind = r.text("schedule");
  const auto total = static_cast<double>(std::max<int64_t>(steps, 1)),
             warm = std::floor(r.number("warmup") * total);
  auto rise = [warm](int64_t s) {
    return static_cast<double>(s) < warm ? (static_cast<double>(s) + 1) / (warm + 1) : 1.0;
  };
  if (kind == "constant")
    return std::make_unique<optim::LRScheduler>(
        optim::LambdaLR(optimizer, [rise](int64_t s) { return rise(s); }));
  if (kind == "cosine")
    return std::make_unique<optim::LRScheduler>(
        optim::LambdaLR(optimizer, [rise, warm, total](int64_t s) {
          const double done =
              std::clamp((static_cast<double>(s) - warm) / std::max(1.0, total - warm), 0.0, 1.0);
          return rise(s) * (0.05 + 0.95 * 0.5 * (1 + std::cos(M_PI * done)));
        }));
  if (kind == "onecycle")
    return std::make_unique<optim::LRScheduler>(optim::LambdaLR(optimizer, [total](int64_t s) {
      const double t = std::min(1.0, static_cast<double>(s) / total);
      return t < 0.25 ? 0.04 + 0.96 * t / 0.25
                      : std::max(1e-3, 0.5 * (1 + std::cos(M_PI * (t - 0.25) / 0.75)));
    }));
  throw Failure(kUsage, "there is no schedule \"" + kind + "\"",
                "Set schedule to onecycle, cosine or constant.");
}

Tensor train_step(Task& task, optim::Optimizer& optimizer, const data::Batch& batch) {
  const Recipe& r = task.recipe();
  const int64_t parts = std::max<int64_t>(1, r.integer("accumulate"));
  Tensor loss;
  if (parts == 1) {
    loss = task.forward_loss(batch[0], batch[1]);
    loss.backward();
  } else {
    const auto xs = batch[0].chunk(parts), ys = batch[1].chunk(parts);
    for (size_t i = 0; i < xs.size(); ++i) {
      const Tensor l = task.forward_loss(xs[i], ys[i]) * (1.0 / static_cast<double>(xs.size()));
      l.backward();
      // Each part runs before the next begins, which is what saves memory.
      std::vector<Tensor> now_needed{l};
      for (const Tensor& p : optimizer.params())
        if (p.grad().defined()) now_needed.push_back(p.grad());
      eval(now_needed);
      loss = loss.defined() ? loss + l.detach() : l.detach();
    }
  }
  if (r.number("clip") > 0) optim::clip_grad_norm_(optimizer.params(), r.number("clip"));
  optimizer.step();
  return loss;
}

}  // namespace ingot::cli
