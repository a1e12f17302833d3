// ingot bench: the same training step on every device, and how close it comes to the device's
// limit.
#include <algorithm>
#include <iostream>
#include <memory>

#include <ingot/models.h>
#include <ingot/profile.h>

#include "bottleneck.h"
#include "cli.h"
#include "files.h"
#include "plan_and_explain.h"
#include "rates.h"

namespace ingot::cli {
using nlohmann::json;

namespace {

// What is measured: a step that can be repeated.
struct Subject {
  std::string unit;
  int64_t batch = 1;
  double units = 1;  // of one step
  std::function<void()> step;
};

Subject from_recipe(const Recipe& recipe, const Device& device) {
  auto task = std::make_shared<Task>(recipe, device, false);
  std::shared_ptr<optim::Optimizer> optimizer = make_optimizer(recipe, task->model().parameters());
  const std::vector<Tensor> example = task->example(recipe.integer("batch"));
  eval(example);
  const int64_t batch = recipe.integer("batch");
  return {task->unit(), batch, static_cast<double>(batch * task->units()),
          [task, optimizer, b = data::Batch(example)] { train_step(*task, *optimizer, b); }};
}

// A network that no recipe has, trained on synthetic data.
template <class Model, class Loss>
Subject from_model(const std::string& unit, int64_t batch, double units, Model model,
                   const Tensor& x, Loss loss) {
  auto kept = std::make_shared<Model>(std::move(model));
  auto optimizer =
      std::make_shared<optim::AdamW>(kept->parameters(), optim::AdamWOptions{.lr = 1e-3});
  eval(x);
  return {unit, batch, units, [kept, optimizer, x, loss] {
            loss(*kept, x).backward();
            optimizer->step();
          }};
}

Subject make_subject(const std::string& name, const Device& device) {
  manual_seed(1);
  DeviceScope scope(device);
  if (name == "unet")
    return from_model("images", 1, 1, models::UNet(3, 1, {.width = 16}), randn({1, 3, 1024, 1024}),
                      [](models::UNet& m, const Tensor& x) { return m(x).square().mean(); });
  if (name == "lstm-8192")
    return from_model("steps of time", 8, 8 * 8192, nn::LSTM(32, 64, {.batch_first = true}),
                      randn({8, 8192, 32}),
                      [](nn::LSTM& m, const Tensor& x) { return m(x).output.square().mean(); });
  return from_recipe(Recipe::load(name, {"unet", "lstm-8192"}), device);
}

struct Result {
  double per_second = 0, of_limit = 0;
  std::string bound;             // as in train and profile
  double planned = 0, peak = 0;  // bytes: what the plans say, and what was taken then
};

// Bytes beyond what is allocated when it begins.
template <class F>
double peak_of(const Device& device, const F& run) {
  empty_cache(device);
  const auto before = static_cast<double>(device.memory().in_use);
  device.reset_peak_memory();
  run();
  return static_cast<double>(device.memory().peak) - before;
}

double planned_peak(const std::string& name, const Device& device) {
  return peak_of(device, [&] {
    const DryRun only_planned;
    const Subject s = make_subject(name, device);
    for (int i = 0; i < 2; ++i) s.step();
  });
}

// The share of the limit: the time of all launches at the device's rates over the measured time.
Result measure_subject(const std::string& name, const Device& device, const Rates& rates,
                       double seconds) {
  const double planned = planned_peak(name, device);
  Subject s;
  double best = 0;
  const double peak = peak_of(device, [&] {
    s = make_subject(name, device);
    best = best_time(device, s.step, seconds);
  });
  const Profile profile;
  s.step();
  device.synchronize();
  double limit = 0;
  const std::vector<LaunchTime> launches = with_rates(profile.launches(), device, rates);
  for (const LaunchTime& l : launches) limit += 1e-6 * std::max(l.memory_us, l.compute_us);
  return {s.units / best, std::min(1.0, limit / best),
          shares_of(best, device_time(launches), 0).largest().first, planned, peak};
}

}  // namespace

int run_bench(const BenchArgs& args) {
  std::vector<std::string> devices = args.devices;
  if (devices.empty()) {
    devices = {"cpu"};
    if (Device::best().is_cuda()) devices.push_back(Device::best().name());
  }
  std::vector<Rates> rates;
  for (std::string& d : devices) {
    Recipe any = Recipe::load("spirals");
    any.set("device", d);
    const Device device = device_of(any);
    d = device.name();
    rates.push_back(known_rates(device, 0.3, true));
  }
  json all = json::array();
  std::vector<std::string> header{"model", "batch", "unit"};
  for (const std::string& d : devices)
    header.insert(header.end(),
                  {d + ", per second", "of its limit", "bound by", "memory planned", "and taken"});
  if (devices.size() > 1) header.emplace_back("times as fast");
  Table table(header);
  for (const std::string& name : args.recipes) {
    const Subject about = make_subject(name, Device("null:7"));
    std::vector<std::string> row{name, std::to_string(about.batch), about.unit};
    std::vector<double> speeds;
    for (size_t i = 0; i < devices.size(); ++i) {
      const Result r = measure_subject(name, Device(devices[i]), rates[i], args.seconds);
      speeds.push_back(r.per_second);
      row.push_back(r.per_second < 100 ? format("%.2f", r.per_second)
                                       : count_text(static_cast<int64_t>(r.per_second)));
      row.push_back(format("%.0f %%", 100 * r.of_limit));
      row.push_back(r.bound);
      row.push_back(bytes_text(r.planned));
      row.push_back(bytes_text(r.peak));
      all.push_back({{"model", name},
                     {"device", devices[i]},
                     {"batch", about.batch},
                     {"unit", about.unit},
                     {"per_second", r.per_second},
                     {"of_limit", r.of_limit},
                     {"bound", r.bound},
                     {"planned_bytes", static_cast<int64_t>(r.planned)},
                     {"peak_bytes", static_cast<int64_t>(r.peak)}});
    }
    if (speeds.size() > 1) row.push_back(format("%.1f", speeds.back() / speeds.front()));
    table.row(row);
  }
  std::cout << (args.json ? json_text(all, 2) + "\n"
                          : "training steps, the best of " + time_text(args.seconds) + " each\n" +
                                table.text());
  return kOk;
}

}  // namespace ingot::cli
