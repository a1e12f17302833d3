#include "study.h"

#include <algorithm>
#include <iostream>

#include <ingot/profile.h>

#include "cli.h"
#include "rates.h"

namespace ingot::cli {
using nlohmann::json;

static double bytes_of(const std::vector<Tensor>& tensors) {
  double sum = 0;
  for (const Tensor& t : tensors)
    sum += static_cast<double>(t.numel()) * static_cast<double>(size_of(t.dtype()));
  return sum;
}

// As many batches as may be on the device beside the one that is worked on: two that the loader has ready,
// and two that steps before still hold.
constexpr int64_t kOtherBatches = 4;

Footprint footprint(const Recipe& recipe, const Device& device) {
  device.reset_peak_memory();
  const auto before = static_cast<double>(device.memory().in_use);
  Footprint f;
  {
    const DryRun only_planned;
    Task task(recipe, device, false);
    const std::vector<Tensor> parameters = task.model().parameters();
    const auto optimizer = make_optimizer(recipe, parameters);
    std::vector<Tensor> example = task.example(recipe.integer("batch")), ready;
    eval(example);
    for (int64_t i = 0; i < kOtherBatches; ++i)
      for (const Tensor& t : task.example(recipe.integer("batch"))) ready.push_back(t);
    eval(ready);
    for (int i = 0; i < 2; ++i) train_step(task, *optimizer, data::Batch(example));
    task.evaluate_example(example);
    f.parameters = bytes_of(parameters);
    for (const auto& [name, b] : task.model().named_buffers()) f.parameters += bytes_of({b});
    f.gradients = recipe.integer("accumulate") > 1 ? bytes_of(parameters) : 0;
    f.optimizer = bytes_of(optimizer->state());
    f.batch = bytes_of(example) + bytes_of(ready);
    f.peak = static_cast<double>(device.memory().peak) - before;
  }
  f.rest = f.peak - f.parameters - f.gradients - f.optimizer - f.batch;
  return f;
}

// Where to plan: on the device that is meant if it is here, out of the way of what this program itself
// computes.
static Device planning_device(const Recipe& recipe, const PlanArgs& args) {
  const Device here = Device::best();
  if (!args.gpu.empty()) return here.is_cuda() ? here : Device("null:7");
  const Device meant = device_of(recipe);
  return meant.is_cpu() ? Device("cpu:15") : meant;
}

static size_t memory_of(const PlanArgs& args, std::string& name) {
  if (!args.memory.empty()) return name = args.memory, parse_bytes(args.memory);
  static const std::vector<std::pair<std::string, double>> cards = {
      {"h200", 141e9},   {"h100", 80e9},    {"b200", 180e9},  {"a100-80", 80e9}, {"a100", 40e9},
      {"a10", 24e9},     {"l40s", 48e9},    {"l4", 24e9},     {"a6000", 48e9},   {"rtx5090", 32e9},
      {"rtx4090", 24e9}, {"rtx3090", 24e9}, {"rtx3060", 12e9}};
  std::string wanted;
  for (const char c : args.gpu)
    if (c != ' ' && c != '_') wanted += static_cast<char>(std::tolower(c));
  for (const auto& [card, bytes] : cards)
    // What the driver and the context keep for themselves is not there to be used.
    if (wanted == card) return name = args.gpu, static_cast<size_t>(bytes) - (size_t{700} << 20);
  std::string list;
  for (const auto& c : cards) list += (list.empty() ? "" : ", ") + c.first;
  throw Failure(kUsage, "there is no GPU \"" + args.gpu + "\" in the list",
                "Known are " + list + "; or say its memory: --memory 16GiB.");
}

// The first change that makes it fit, from the one that costs least.
static std::string remedy(const Recipe& recipe, const Device& device, double limit) {
  const int64_t batch = recipe.integer("batch");
  auto fits = [&](const std::vector<std::pair<std::string, json>>& changes) {
    Recipe r = recipe;
    for (const auto& [key, value] : changes) r.set(key, value);
    return footprint(r, device).peak <= limit;
  };
  if (recipe.text("amp") == "off" && fits({{"amp", "bf16"}})) return "--amp bf16 makes it fit";
  for (int64_t parts = 2; parts <= batch; parts *= 2)
    if (batch % parts == 0 && fits({{"accumulate", parts}}))
      return format("--set accumulate=%lld makes it fit: the same result from %lld parts of %lld",
                    static_cast<long long>(parts), static_cast<long long>(parts),
                    static_cast<long long>(batch / parts));
  for (int64_t b = batch / 2; b >= 1; b /= 2)
    if (fits({{"batch", b}})) return format("--batch %lld makes it fit", static_cast<long long>(b));
  return "not even a batch of 1 fits: make the network smaller (--set width=..., --set layers=...)";
}

int run_plan(const PlanArgs& args) {
  const Recipe recipe = effective_recipe(args.recipe);
  const Device device = planning_device(recipe, args);
  const Footprint f = footprint(recipe, device);
  std::string name;
  const bool limited = !args.gpu.empty() || !args.memory.empty();
  const double limit = limited ? static_cast<double>(memory_of(args, name)) : 0;
  const bool fits = !limited || f.peak <= limit;
  if (args.json) {
    json j{{"parameters", f.parameters},
           {"gradients", f.gradients},
           {"optimizer", f.optimizer},
           {"batch", f.batch},
           {"activations_and_workspace", f.rest},
           {"peak", f.peak}};
    if (limited) j["limit"] = limit, j["fits"] = fits;
    std::cout << j.dump(2) << "\n";
    return fits ? kOk : kNoRoom;
  }
  Table t({"what", "memory", "bytes"});
  auto row = [&](const char* what, double b) {
    t.row({what, bytes_text(b), count_text(static_cast<int64_t>(b))});
  };
  row("parameters and buffers", f.parameters);
  if (f.gradients > 0) row("gradients", f.gradients);
  row("optimizer's state", f.optimizer);
  row("batches", f.batch);
  row(f.gradients > 0 ? "activations, workspace" : "activations, gradients, workspace", f.rest);
  row("peak", f.peak);
  std::cout << recipe.name() << " with a batch of " << recipe.integer("batch") << " on "
            << (device.is_cpu()    ? "the CPU"
                : device.is_cuda() ? device.name()
                                   : "a GPU that is not here (what its libraries take beside is not counted)")
            << "\n"
            << t.text();
  Task task(recipe, Device("null:7"), false);
  Table layers({"layer", "parameters", "memory"});
  for (const auto& [path, m] : task.model().named_modules()) {
    int64_t n = 0;
    for (const auto& [p, tensor] : m->named_parameters())
      if (p.find('.') == std::string::npos) n += tensor.numel();
    if (n > 0)
      layers.row({path.empty() ? "(itself)" : path, count_text(n), bytes_text(4.0 * static_cast<double>(n))});
  }
  std::cout << "\n" << layers.text();
  if (!limited) return kOk;
  std::cout << format("\n%s: %s of %s, %s\n", name.c_str(), bytes_text(f.peak).c_str(),
                      bytes_text(limit).c_str(), fits ? "fits" : "does not fit");
  if (!fits) std::cout << remedy(recipe, device, limit) << "\n";
  return fits ? kOk : kNoRoom;
}

int run_explain(const TrainArgs& args, const std::string& rates, bool kernels) {
  if (!rates.empty() && rates != "h200")
    throw Failure(kUsage, "there are no rates for \"" + rates + "\"", "There are --rates h200.");
  const Recipe recipe = effective_recipe(args);
  Task task(recipe, device_of(recipe), false);
  const std::vector<Tensor> batch = task.example(recipe.integer("batch"));
  const Tensor loss = task.forward_loss(batch[0], batch[1]);
  loss.backward();
  std::vector<Tensor> wanted{loss};
  for (const Tensor& p : task.model().parameters())
    if (p.grad().defined()) wanted.push_back(p.grad());
  const Explanation e = explain(wanted, rates);
  std::cout << task.model().to_string() << "\n\nforward and backward of one batch: " << e.launches
            << " launches (" << e.generated << " generated kernels, " << e.library << " library calls, "
            << e.copies << " copies), " << rate_text(e.flops) << "FLOP, " << bytes_text(e.bytes_read)
            << " read, " << bytes_text(e.bytes_written)
            << " written\npredicted: " << time_text(e.predicted_us * 1e-6)
            << (rates.empty() ? " on " + task.device().name() : " on " + rates)
            << "; peak of the run: " << bytes_text(static_cast<double>(e.peak_bytes)) << "\n";
  if (kernels) std::cout << "\n" << e.text;
  return kOk;
}

}  // namespace ingot::cli
