// Rates of the available devices: matrix products, memory, transfers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <vector>

#include <ingot/ingot.h>

#include <ingot/environment.h>
#include <ingot/profile.h>

#include "cli.h"
#include "doctor.h"
#include "files.h"
#include "rates.h"

namespace ingot::cli {

// The best of several runs within the budget: other programs only ever make it slower.
double best_time(const Device& device, const std::function<void()>& run, double budget) {
  run();
  device.synchronize();
  double best = 1e30;
  const double end = now() + budget;
  for (int i = 0; i < 3 || now() < end; ++i) {
    const double start = now();
    run();
    device.synchronize();
    best = std::min(best, now() - start);
  }
  return best;
}

Rates measure(const Device& device, double budget) {
  NoGrad no_grad;
  Rates r;
  const int64_t n = device.is_cpu() ? 1024 : 8192;
  const DType type = device.is_cpu() ? float32 : bfloat16;
  {
    const Tensor a = randn({n, n}, {type, device}), b = randn({n, n}, {type, device});
    eval({a, b});
    const double t = best_time(
        device, [&] { eval(matmul(a, b)); }, budget);
    r.matmul = 2 * std::pow(static_cast<double>(n), 3) / t;
  }
  {
    // Larger than any cache: read once, written once.
    const int64_t count = device.is_cpu() ? int64_t{32} << 20 : int64_t{256} << 20;
    const Tensor x = randn({count}, {float32, device});
    eval(x);
    const double t = best_time(
        device, [&] { eval(x * 2.0f); }, budget);
    r.memory = 8.0 * static_cast<double>(count) / t;
  }
  if (!device.is_cpu()) {
    const int64_t count = int64_t{64} << 20;
    const Tensor host = ones({count}, "cpu");
    eval(host);
    r.to_device = 4.0 * static_cast<double>(count) /
                  best_time(
                      device, [&] { eval(host.to(device)); }, budget);
    const Tensor there = host.to(device);
    eval(there);
    r.to_host = 4.0 * static_cast<double>(count) /
                best_time(
                    device, [&] { eval(there.to("cpu")); }, budget);
  }
  return r;
}

// ~/.cache/ingot/rates.json, by device and threads; anything in it that is not a number is ignored.
static std::string rates_file() {
  if (environment("INGOT_CACHE") == "0") return {};
  const std::string named = environment("INGOT_CACHE_DIR").value_or(""),
                    home = environment("HOME").value_or("");
  if (!named.empty()) return named + "/rates.json";
  return home.empty() ? std::string() : home + "/.cache/ingot/rates.json";
}

Rates known_rates(const Device& device, double budget, bool anew) {
  std::string chip;
  for (const DeviceInfo& i : list_devices())
    if (i.device.type() == device.type()) chip = i.name;
  const std::string file = rates_file(), key = as_kept(chip).get<std::string>() +
                                               format(", %d threads", get_num_threads());
  nlohmann::json all = nlohmann::json::object();
  try {
    if (const auto text = read_file(file, 1 << 20); text && !file.empty())
      all = nlohmann::json::parse(*text, nullptr, false);
  } catch (const Failure&) {  // measured anew
  }
  if (!all.is_object()) all = nlohmann::json::object();
  Rates kept;
  if (all.contains(key) && all[key].is_object()) {
    const auto figure = [&](const char* name) {
      const auto at = all[key].find(name);
      const double v = at != all[key].end() && at->is_number() ? at->get<double>() : 0;
      return v > 1e6 && v < 1e17 ? v : 0.0;
    };
    kept.matmul = figure("matmul"), kept.memory = figure("memory");
  }
  if (!anew && kept.matmul > 0 && kept.memory > 0) return kept;
  // On a separate CPU device, so that the training's limit and peak are not affected.
  Rates r = measure(device.is_cpu() ? Device("cpu:14") : device, budget);
  if (device.is_cpu()) empty_cache(Device("cpu:14"));
  r.matmul = std::max(r.matmul, kept.matmul), r.memory = std::max(r.memory, kept.memory);
  all[key] = {{"matmul", r.matmul}, {"memory", r.memory}};
  try {
    if (!file.empty()) write_file(file, json_text(all, 1) + "\n");
  } catch (const Failure&) {  // measured again next time
  }
  return r;
}

std::optional<Rates> promised(const std::string& chip) {
  // Dense bf16 with float32 accumulation, memory, PCIe: the vendor's figures.
  static const std::pair<const char*, Rates> known[] = {
      {"H200", {989e12, 4.8e12, 55e9, 55e9}},     {"H100 PCIe", {756e12, 2.0e12, 55e9, 55e9}},
      {"H100", {989e12, 3.35e12, 55e9, 55e9}},    {"B200", {2250e12, 8.0e12, 55e9, 55e9}},
      {"A100", {312e12, 1.55e12, 25e9, 25e9}},    {"L40", {181e12, 0.864e12, 25e9, 25e9}},
      {"L4", {121e12, 0.3e12, 25e9, 25e9}},       {"A10", {125e12, 0.6e12, 25e9, 25e9}},
      {"RTX 4090", {165e12, 1.0e12, 25e9, 25e9}}, {"RTX 3090", {71e12, 0.936e12, 25e9, 25e9}}};
  for (const auto& [name, rates] : known)
    if (chip.find(name) != std::string::npos) return rates;
  return std::nullopt;
}

// Bytes per second that one host thread copies: transfers from the program's memory pass through
// it.
static double host_copy_rate() {
  std::vector<char> from(size_t{64} << 20, 1), to(from.size(), 0);
  double best = 1e30;
  for (int i = 0; i < 3; ++i) {
    const double start = now();
    std::memcpy(to.data(), from.data(), from.size());
    best = std::min(best, now() - start);
  }
  if (to.back() != 1) return 0;  // the copies are needed
  return static_cast<double>(from.size()) / best;
}

std::vector<Finding> check_rates() {
  std::vector<Finding> findings;
  for (const DeviceInfo& info : list_devices()) {
    const std::string who = info.device.name();
    try {
      const Rates r = measure(info.device, 0.4);
      std::string text =
          format("%s: %sFLOP/s in matrix products (%s), %sB/s of memory", who.c_str(),
                 rate_text(r.matmul).c_str(), info.device.is_cpu() ? "float32" : "bfloat16",
                 rate_text(r.memory).c_str());
      if (!info.device.is_cpu())
        text += format(", %sB/s to it, %sB/s back", rate_text(r.to_device).c_str(),
                       rate_text(r.to_host).c_str());
      const std::optional<Rates> should = promised(info.name);
      if (should)
        text += format("; %s is rated at %sFLOP/s and %sB/s", info.name.c_str(),
                       rate_text(should->matmul).c_str(), rate_text(should->memory).c_str());
      findings.push_back({Severity::Ok, "", text, ""});
      if (should && (r.matmul < 0.4 * should->matmul || r.memory < 0.4 * should->memory))
        findings.push_back(
            {Severity::Warning, "R01",
             who +
                 " reaches less than 40 % of its rate: another program uses it, or it is throttled",
             "nvidia-smi (look for other processes, temperature, power limit)"});
      // A healthy machine reaches the lower of the bus bandwidth and the host's copy rate.
      if (should && r.to_device < 0.4 * std::min(0.5 * should->to_device, host_copy_rate()))
        findings.push_back(
            {Severity::Warning, "R02",
             who + " receives data at less than 40 % of what the host's memory and its bus allow",
             "nvidia-smi -q | grep -A3 'Link Width' (is it x16?)"});
      // 5 GFLOP/s per thread is far below any processor with AVX2.
      if (info.device.is_cpu() && r.matmul < 5e9 * get_num_threads())
        findings.push_back({Severity::Warning, "R03",
                            "the processor reaches less than 5 GFLOP/s per thread: it is shared "
                            "with others or throttled",
                            "top (look for other programs)"});
    } catch (const Error& e) {
      findings.push_back(
          {Severity::Error, "R09", who + " cannot be used: " + e.what(), "ingot devices"});
    }
  }
  return findings;
}

}  // namespace ingot::cli
