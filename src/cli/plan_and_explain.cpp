#include "plan_and_explain.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>
#include <map>
#include <regex>

#include <ingot/profile.h>

#include "cli.h"
#include "files.h"
#include "rates.h"

namespace ingot::cli {
using nlohmann::json;

static double bytes_of(const std::vector<Tensor>& tensors) {
  double sum = 0;
  for (const Tensor& t : tensors)
    sum += static_cast<double>(t.numel()) * static_cast<double>(size_of(t.dtype()));
  return sum;
}

// Batches that may be on the device besides the current one: two that the loader has ready, and two
// that earlier steps still hold.
constexpr int64_t kOtherBatches = 4;

// The data's memory on the CPU: as loaded, or estimated while it has not been downloaded.
static double data_bytes(const Recipe& recipe) {
  const Device host("cpu");
  const auto before = static_cast<double>(host.memory().in_use);
  try {
    const Task with_data(recipe, Device("null:7"), true);
    return static_cast<double>(host.memory().in_use) - before;
  } catch (const Failure&) {  // training reports what is wrong with it
  }
  const std::string name = recipe.text("data");
  // Images as bytes, labels as int64.
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
    // Gradients accumulated over the parts of a batch are kept outside the plan.
    if (recipe.integer("accumulate") > 1) f.gradients += bytes_of(parameters);
    f.layers = arena.layers;
  }
  f.workspace =
      f.peak - f.parameters - f.optimizer - f.batch - f.converted - f.activations - f.gradients;
  return f;
}

// Where to plan: on the target device if it is present, separate from what this program itself
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
    // The driver and the context reserve some memory for themselves.
    if (wanted == card) return name = args.gpu, static_cast<size_t>(bytes) - (size_t{700} << 20);
  std::string list;
  for (const auto& c : cards) list += (list.empty() ? "" : ", ") + c.first;
  throw Failure(kUsage, "there is no GPU \"" + args.gpu + "\" in the list",
                "The list has " + list + "; or give its memory: --memory 16GiB.");
}

static bool has_batch_norm(const Recipe& r) {
  return r.text("model") == "cnn" || r.text("model") == "resnet";
}

// The first change that makes it fit, cheapest first.
static std::string remedy(const Recipe& recipe, const Device& device, double limit) {
  const int64_t batch = recipe.integer("batch");
  auto fits = [&](const std::vector<std::pair<std::string, json>>& changes) {
    Recipe r = recipe;
    for (const auto& [key, value] : changes) r.set(key, value);
    return footprint(r, device).peak <= limit;
  };
  if (recipe.text("amp") == "off" && fits({{"amp", "bf16"}}))
    return "--amp bf16 makes it fit: matrix products in bfloat16";
  for (int64_t parts = 2; parts <= batch; parts *= 2)
    if (batch % parts == 0 && fits({{"accumulate", parts}}))
      return format("--set accumulate=%lld makes it fit: the same step from %lld parts of %lld%s",
                    static_cast<long long>(parts), static_cast<long long>(parts),
                    static_cast<long long>(batch / parts),
                    has_batch_norm(recipe) ? " (batch norm sees one part at a time)" : "");
  if (can_recompute(recipe) && recipe.integer("recompute") == 0) {
    if (fits({{"recompute", 1}}))
      return "--set recompute=1 makes it fit: the same result, with the values inside blocks "
             "computed "
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
      return format(
          "not even a batch of 1 fits; a smaller network would: --set width=%lld --batch 1",
          static_cast<long long>(width));
  }
  return "not even a batch of 1 fits, nor a network of half the width: it needs more memory";
}

// The same, with a data set that stays in memory completely.
static std::string remedy_with_data(const Recipe& recipe, const Device& device, double limit,
                                    double data, double peak) {
  if (data < limit) return remedy(recipe, device, limit - data);
  return format(
      "the data set alone takes %s and is kept in memory completely: neither a smaller batch nor a "
      "smaller network helps; --memory %.0fMiB would be enough for this recipe",
      bytes_text(data).c_str(), std::ceil(peak / (1 << 20)) + 1);
}

Failure no_room(const Recipe& recipe, const std::string& named, const OutOfMemory& error) {
  const Device device = device_of(recipe);
  device.set_memory_limit(0);
  const std::string what =
      bytes_text(static_cast<double>(error.requested)) + " more were requested with " +
      bytes_text(static_cast<double>(error.in_use)) + " in use" +
      (error.limit ? " of " + bytes_text(static_cast<double>(error.limit)) : "");
  const std::string more = "`ingot plan " + shell_word(named) + "` shows what uses the memory.";
  if (error.limit) try {
      const Device planning = device.is_cpu() ? Device("cpu:15") : device;
      const Footprint f = footprint(recipe, planning);
      const double data = device.is_cpu() ? data_bytes(recipe) : 0,
                   limit = static_cast<double>(error.limit);
      std::string way = remedy_with_data(recipe, planning, limit, data, f.peak + data);
      way[0] = static_cast<char>(std::toupper(way[0]));
      return {
          kNoRoom,
          (data >= limit ? "the data set does not fit: " : "the training does not fit: ") + what,
          way + "; " + more};
    } catch (const std::exception&) {  // no plan, so no tested advice
    }
  return {kNoRoom, "the training does not fit: " + what,
          recipe.integer("batch") > 1 ? "Use a smaller --batch, or --set accumulate=2; " + more
                                      : "Make the network smaller (--set width=...); " + more};
}

namespace {

// Layers of the same kind and size in a sequence of blocks ("h.0.mlp", "h.1.mlp", ...) share one
// row.
struct LayerRow {
  std::string before, after;  // of the number
  std::vector<int64_t> numbers;
  int64_t parameters = 0;  // of one
  double activations = 0;  // of all

  std::string name() const {
    if (numbers.size() < 2)
      return before + (numbers.empty() ? "" : std::to_string(numbers[0])) + after;
    // "0-11", or "0-3,8" where others are between.
    std::string list;
    for (size_t i = 0; i < numbers.size();) {
      size_t j = i;
      while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
      list += (list.empty() ? "" : ",") + std::to_string(numbers[i]) +
              (j > i ? "-" + std::to_string(numbers[j]) : "");
      i = j + 1;
    }
    return before + list + after;
  }
};

// The first part of a path that is a number, and what is around it.
LayerRow row_of(const std::string& path) {
  LayerRow r;
  size_t at = 0;
  while (at < path.size()) {
    const size_t end = std::min(path.find('.', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (!part.empty() && part.size() < 7 &&
        part.find_first_not_of("0123456789") == std::string::npos) {
      r.before = path.substr(0, at), r.after = path.substr(end), r.numbers = {std::stoll(part)};
      return r;
    }
    at = end + 1;
  }
  r.before = path;
  return r;
}

}  // namespace

static void print_layers(const Recipe& recipe, const Footprint& f) {
  Task task(recipe, Device("null:7"), false);
  std::map<std::string, double> by_path(f.layers.begin(), f.layers.end());
  std::vector<LayerRow> rows;
  for (const auto& [path, m] : task.model().named_modules()) {
    LayerRow r = row_of(path.empty() ? "(itself)" : path);
    for (const auto& [p, tensor] : m->named_parameters())
      if (p.find('.') == std::string::npos) r.parameters += tensor.numel();
    r.activations = path.empty() ? 0 : by_path[path];
    if (r.parameters == 0 && r.activations == 0) continue;
    auto same = std::find_if(rows.begin(), rows.end(), [&](const LayerRow& o) {
      return !r.numbers.empty() && o.before == r.before && o.after == r.after &&
             !o.numbers.empty() && o.parameters == r.parameters;
    });
    if (same != rows.end())
      same->numbers.push_back(r.numbers[0]), same->activations += r.activations;
    else
      rows.push_back(r);
  }
  Table table({"layer", "times", "parameters", "memory", "activations"});
  for (const LayerRow& r : rows) {
    const auto times = static_cast<double>(std::max<size_t>(1, r.numbers.size()));
    const auto n = static_cast<int64_t>(static_cast<double>(r.parameters) * times);
    table.row({r.name(), format("%.0f", times), count_text(n),
               bytes_text(4.0 * static_cast<double>(n)), bytes_text(r.activations)});
  }
  // What the model computes between its layers, and the loss after them.
  if (by_path[""] > 0) table.row({"(between, loss)", "1", "0", "0 B", bytes_text(by_path[""])});
  std::cout << "\n" << table.text();
}

// The memory of the device planned for: as --gpu or --memory give it, or that of the device
// present.
static double limit_of(const PlanArgs& args, const Device& device, const Device& meant,
                       std::string& name) {
  if (!args.gpu.empty() || !args.memory.empty()) return static_cast<double>(memory_of(args, name));
  if (!device.is_cpu() && !device.is_cuda()) return 0;
  name = meant.name();
  for (const DeviceInfo& i : list_devices())
    if (i.device.type() == device.type() && (device.is_cpu() || i.device == meant))
      return static_cast<double>(i.memory);
  return 0;
}

int run_plan(const PlanArgs& args) {
  const Recipe recipe = effective_recipe(args.recipe);
  const Device device = planning_device(recipe, args);
  Footprint f = footprint(recipe, device);
  if (args.gpu.empty() && device_of(recipe) == Device("cpu"))
    f.data = data_bytes(recipe), f.peak += f.data;
  std::string name;
  const bool limited = !args.gpu.empty() || !args.memory.empty();
  const double limit = limit_of(args, device, device_of(recipe), name);
  const bool fits = limit <= 0 || f.peak <= limit;
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
    for (const auto& [what, bytes] : parts) j[what] = static_cast<int64_t>(bytes);
    j["activations_by_layer"] = json::object();
    for (const auto& [layer, bytes] : f.layers)
      j["activations_by_layer"][layer] = static_cast<int64_t>(bytes);
    j["limit"] = limit > 0 ? json(static_cast<int64_t>(limit)) : json();
    j["fits"] = limit > 0 ? json(fits) : json();
    if (limited && !fits) j["remedy"] = remedy_with_data(recipe, device, limit, f.data, f.peak);
    std::cout << json_text(j, 2) << "\n";
    return fits || !limited ? kOk : kNoRoom;
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
      t.row({names[i], bytes_text(parts[i].second),
             count_text(static_cast<int64_t>(parts[i].second))});
  std::cout << recipe.name() << " with a batch of " << recipe.integer("batch") << " on "
            << (device.is_cpu() ? "the CPU"
                : device.is_cuda()
                    ? device.name()
                    : "a GPU that is not present (the memory of its libraries is not counted)")
            << "\n"
            << t.text();
  print_layers(recipe, f);
  if (limit <= 0) return kOk;
  std::cout << format("\n%s: %s of %s, %s\n", name.c_str(), bytes_text(f.peak).c_str(),
                      bytes_text(limit).c_str(), fits ? "fits" : "does not fit");
  if (!fits) std::cout << remedy_with_data(recipe, device, limit, f.data, f.peak) << "\n";
  return fits || !limited ? kOk : kNoRoom;  // whether it fits this machine was not the question
}

// Lines inside Ingot do not help the user: " at ingot/src/ops/loss.cpp:42" is left out.
static std::string without_library_lines(const std::string& text) {
  static const std::regex place("[ \\t]*(at |\\()?ingot/(src|include)/[^ \\t\\n,;)]*:[0-9]+\\)?");
  return std::regex_replace(text, place, "");
}

int run_explain(const ExplainArgs& args) {
  const Recipe recipe = effective_recipe(args.recipe);
  const std::string& rates = args.rates;
  // At another device's rates: planned as for that kind of device, present or simulated.
  const bool stand_in = !rates.empty() && args.recipe.device.empty() && !Device::best().is_cuda();
  Task task(recipe, stand_in ? Device("null:7") : device_of(recipe), false);
  const std::vector<Tensor> batch = task.example(recipe.integer("batch"));
  const Tensor loss = task.forward_loss(batch[0], batch[1]);
  loss.backward();
  std::vector<Tensor> wanted{loss};
  for (const Tensor& p : task.model().parameters())
    if (p.grad().defined()) wanted.push_back(p.grad());
  const Explanation e = [&] {
    try {
      return explain(wanted, {.rates = rates, .why = args.why});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Value) throw;
      throw Failure(kUsage, "--rates: " + error.reason(), "Leave it out, or " + error.fix() + ".");
    }
  }();
  if (args.recipe.json) {
    json list = json::array(), choices = json::array();
    for (const auto& c : e.choices)
      choices.push_back({{"call", c.call}, {"kernel", c.kernel}, {"refused", c.refused}});
    for (const std::string& k : e.kernels) list.push_back(k);
    std::cout << json_text({{"recipe", recipe.name()},
                            {"device", rates.empty() ? task.device().name() : rates},
                            {"parameters", task.model().parameter_count()},
                            {"launches", e.launches},
                            {"generated", e.generated},
                            {"library", e.library},
                            {"copies", e.copies},
                            {"flops", e.flops},
                            {"bytes_read", static_cast<int64_t>(e.bytes_read)},
                            {"bytes_written", static_cast<int64_t>(e.bytes_written)},
                            {"predicted_seconds", e.predicted_us * 1e-6},
                            {"peak_bytes", e.peak_bytes},
                            {"kernels", list},
                            {"choices", choices},
                            {"network", task.model().to_string()}},
                           2)
              << "\n";
    return kOk;
  }
  std::cout << task.model().to_string() << "\n\nforward and backward of one batch: " << e.launches
            << " launches (" << e.generated << " generated kernels, " << e.library
            << " library calls, " << e.copies << " copies), " << rate_text(e.flops) << "FLOP, "
            << bytes_text(e.bytes_read) << " read, " << bytes_text(e.bytes_written)
            << " written\npredicted: " << time_text(e.predicted_us * 1e-6)
            << (rates.empty() ? " on " + task.device().name() : " on " + rates)
            << "; peak of the run: " << bytes_text(static_cast<double>(e.peak_bytes)) << "\n";
  if (args.kernels || args.why) std::cout << "\n" << without_library_lines(e.text);
  return kOk;
}

}  // namespace ingot::cli
