#include "study.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>
#include <map>

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

// What the data takes on the CPU: of what is here, or, while it is not, of what will be.
static double data_bytes(const Recipe& recipe) {
  const Device host("cpu");
  const auto before = static_cast<double>(host.memory().in_use);
  try {
    const Task with_data(recipe, Device("null:7"), true);
    return static_cast<double>(host.memory().in_use) - before;
  } catch (const Failure&) {  // training will say what is wrong with it
  }
  const std::string name = recipe.text("data");
  // Pictures as bytes, labels as int64.
  if (name == "cifar10") return 60000.0 * (3 * 32 * 32 + 8);
  return name == "mnist" || name == "fashion-mnist" ? 70000.0 * (28 * 28 + 8) : 0;
}

Footprint footprint(const Recipe& recipe, const Device& device) {
  empty_cache(device);
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
    f.optimizer = bytes_of(optimizer->state());
    f.batch = bytes_of(example) + bytes_of(ready);
    f.peak = static_cast<double>(device.memory().peak) - before;
    const ArenaUse arena = only_planned.largest(device);
    f.converted = arena.weights, f.activations = arena.activations, f.gradients = arena.gradients;
    // Gradients that wait for those of the other parts of a batch are kept outside.
    if (recipe.integer("accumulate") > 1) f.gradients += bytes_of(parameters);
    f.layers = arena.layers;
  }
  f.workspace = f.peak - f.parameters - f.optimizer - f.batch - f.converted - f.activations - f.gradients;
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

static bool has_batch_norm(const Recipe& r) {
  return r.text("model") == "cnn" || r.text("model") == "resnet";
}

// The first change that makes it fit, from the one that costs least.
static std::string remedy(const Recipe& recipe, const Device& device, double limit) {
  const int64_t batch = recipe.integer("batch");
  auto fits = [&](const std::vector<std::pair<std::string, json>>& changes) {
    Recipe r = recipe;
    for (const auto& [key, value] : changes) r.set(key, value);
    return footprint(r, device).peak <= limit;
  };
  if (recipe.text("amp") == "off" && fits({{"amp", "bf16"}}))
    return "--amp bf16 makes it fit: products in bfloat16";
  for (int64_t parts = 2; parts <= batch; parts *= 2)
    if (batch % parts == 0 && fits({{"accumulate", parts}}))
      return format("--set accumulate=%lld makes it fit: the same step from %lld parts of %lld%s",
                    static_cast<long long>(parts), static_cast<long long>(parts),
                    static_cast<long long>(batch / parts),
                    has_batch_norm(recipe) ? " (batch norm sees one part at a time)" : "");
  if (can_recompute(recipe) && recipe.integer("recompute") == 0) {
    if (fits({{"recompute", 1}}))
      return "--set recompute=1 makes it fit: the same result, with what lies inside of blocks computed "
             "twice";
    if (batch > 1 && fits({{"recompute", 1}, {"accumulate", batch}}))
      return format("--set recompute=1 --set accumulate=%lld makes it fit: the same result, slower",
                    static_cast<long long>(batch));
  }
  for (int64_t b = batch / 2; b >= 1; b /= 2)
    if (fits({{"batch", b}})) return format("--batch %lld makes it fit", static_cast<long long>(b));
  // A smaller network, at the smallest batch.
  for (int64_t width = recipe.integer("width") / 2; width >= 4; width /= 2) {
    if (recipe.text("model") == "gpt" && width % recipe.integer("heads") != 0) break;
    if (fits({{"batch", 1}, {"accumulate", 1}, {"width", width}}))
      return format("not even a batch of 1 fits; a smaller network would: --set width=%lld --batch 1",
                    static_cast<long long>(width));
  }
  return "not even a batch of 1 fits, nor a network of half the width: it needs more memory";
}

// The same, with a data set that stays in memory as a whole.
static std::string remedy_with_data(const Recipe& recipe, const Device& device, double limit, double data,
                                    double peak) {
  if (data < limit) return remedy(recipe, device, limit - data);
  return format(
      "the data set alone takes %s, which is kept in memory as a whole: neither a smaller batch nor "
      "a smaller network helps; --memory %.0fMiB would be enough for this recipe",
      bytes_text(data).c_str(), std::ceil(peak / (1 << 20)) + 1);
}

Failure no_room(const Recipe& recipe, const std::string& named, const OutOfMemory& error) {
  const Device device = device_of(recipe);
  device.set_memory_limit(0);
  const std::string what = bytes_text(static_cast<double>(error.requested)) + " more were asked for with " +
                           bytes_text(static_cast<double>(error.in_use)) + " in use" +
                           (error.limit ? " of " + bytes_text(static_cast<double>(error.limit)) : "");
  const std::string more = "`ingot plan " + shell_word(named) + "` says what takes how much.";
  if (error.limit) try {
      const Device planning = device.is_cpu() ? Device("cpu:15") : device;
      const Footprint f = footprint(recipe, planning);
      const double data = device.is_cpu() ? data_bytes(recipe) : 0, limit = static_cast<double>(error.limit);
      std::string way = remedy_with_data(recipe, planning, limit, data, f.peak + data);
      way[0] = static_cast<char>(std::toupper(way[0]));
      return {kNoRoom, (data >= limit ? "the data set does not fit: " : "the training does not fit: ") + what,
              way + "; " + more};
    } catch (const std::exception&) {  // no plan, no advice that was tried
    }
  return {kNoRoom, "the training does not fit: " + what,
          recipe.integer("batch") > 1 ? "Use a smaller --batch, or --set accumulate=2; " + more
                                      : "Make the network smaller (--set width=...); " + more};
}

static void print_layers(const Recipe& recipe, const Footprint& f) {
  Task task(recipe, Device("null:7"), false);
  Table table({"layer", "parameters", "memory", "activations"});
  auto activations = [&](const std::string& path) {
    for (const auto& [layer, bytes] : f.layers)
      if (layer == path) return bytes;
    return 0.0;
  };
  for (const auto& [path, m] : task.model().named_modules()) {
    int64_t n = 0;
    for (const auto& [p, tensor] : m->named_parameters())
      if (p.find('.') == std::string::npos) n += tensor.numel();
    const double kept = path.empty() ? 0 : activations(path);
    if (n > 0 || kept > 0)
      table.row({path.empty() ? "(itself)" : path, count_text(n), bytes_text(4.0 * static_cast<double>(n)),
                 bytes_text(kept)});
  }
  // What the model computes between its layers, and the loss after them.
  if (const double rest = activations(""); rest > 0) table.row({"(between, loss)", "", "", bytes_text(rest)});
  std::cout << "\n" << table.text();
}

int run_plan(const PlanArgs& args) {
  const Recipe recipe = effective_recipe(args.recipe);
  const Device device = planning_device(recipe, args);
  Footprint f = footprint(recipe, device);
  if (args.gpu.empty() && device_of(recipe) == Device("cpu")) f.data = data_bytes(recipe), f.peak += f.data;
  std::string name;
  const bool limited = !args.gpu.empty() || !args.memory.empty();
  const double limit = limited ? static_cast<double>(memory_of(args, name)) : 0;
  const bool fits = !limited || f.peak <= limit;
  const std::vector<std::pair<const char*, double>> parts{{"parameters", f.parameters},
                                                          {"converted_parameters", f.converted},
                                                          {"optimizer", f.optimizer},
                                                          {"data", f.data},
                                                          {"batches", f.batch},
                                                          {"activations", f.activations},
                                                          {"gradients", f.gradients},
                                                          {"workspace", f.workspace},
                                                          {"peak", f.peak}};
  if (args.json) {
    json j;
    for (const auto& [what, bytes] : parts) j[what] = bytes;
    for (const auto& [layer, bytes] : f.layers) j["activations_by_layer"][layer] = bytes;
    if (limited) j["limit"] = limit, j["fits"] = fits;
    std::cout << j.dump(2) << "\n";
    return fits ? kOk : kNoRoom;
  }
  static const char* const names[] = {"parameters and buffers",
                                      "  in another type or layout",
                                      "optimizer's state",
                                      "data set",
                                      "batches",
                                      "activations",
                                      "gradients",
                                      "workspace",
                                      "peak"};
  Table t({"what", "memory", "bytes"});
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].second > 0)
      t.row({names[i], bytes_text(parts[i].second), count_text(static_cast<int64_t>(parts[i].second))});
  std::cout << recipe.name() << " with a batch of " << recipe.integer("batch") << " on "
            << (device.is_cpu()    ? "the CPU"
                : device.is_cuda() ? device.name()
                                   : "a GPU that is not here (what its libraries take beside is not counted)")
            << "\n"
            << t.text();
  print_layers(recipe, f);
  if (!limited) return kOk;
  std::cout << format("\n%s: %s of %s, %s\n", name.c_str(), bytes_text(f.peak).c_str(),
                      bytes_text(limit).c_str(), fits ? "fits" : "does not fit");
  if (!fits) std::cout << remedy(recipe, device, limit - f.data) << "\n";
  return fits ? kOk : kNoRoom;
}

int run_explain(const TrainArgs& args, const std::string& rates, bool kernels) {
  const Recipe recipe = effective_recipe(args);
  // At another device's rates: as that kind of device plans it, here or stood in for.
  const bool stand_in = !rates.empty() && args.device.empty() && !Device::best().is_cuda();
  Task task(recipe, stand_in ? Device("null:7") : device_of(recipe), false);
  const std::vector<Tensor> batch = task.example(recipe.integer("batch"));
  const Tensor loss = task.forward_loss(batch[0], batch[1]);
  loss.backward();
  std::vector<Tensor> wanted{loss};
  for (const Tensor& p : task.model().parameters())
    if (p.grad().defined()) wanted.push_back(p.grad());
  const Explanation e = [&] {
    try {
      return explain(wanted, rates);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Value) throw;
      throw Failure(kUsage, "--rates: " + error.reason(), "Leave it out, or " + error.fix() + ".");
    }
  }();
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
