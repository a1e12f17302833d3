#include "bottleneck.h"

#include <algorithm>

#include "cli.h"

namespace ingot::cli {

std::pair<std::string, double> Shares::largest() const {
  std::pair<std::string, double> best{"data", data};
  for (const auto& [name, share] :
       {std::pair{"host", host}, {"memory", memory}, {"compute", compute}})
    if (share > best.second) best = {name, share};
  return best;
}

DeviceTime device_time(const std::vector<LaunchTime>& launches) {
  DeviceTime t;
  for (const LaunchTime& l : launches)
    (l.memory_us >= l.compute_us ? t.memory : t.compute) += 1e-6 * l.us;
  return t;
}

std::vector<LaunchTime> with_rates(std::vector<LaunchTime> launches, const Device& device,
                                   const Rates& rates) {
  if (!device.is_cpu()) return launches;
  for (LaunchTime& l : launches) {
    l.memory_us = 1e6 * l.bytes / rates.memory;
    if (l.kind == "library") l.compute_us = 1e6 * l.flops / rates.matmul;
  }
  return launches;
}

Shares shares_of(double step, const DeviceTime& device, double data) {
  // Launches timed one by one may take longer together than overlapped ones.
  const double busy = device.memory + device.compute, all = std::max(step, busy);
  if (all <= 0) return {};
  Shares s{0, 0, device.memory / all, device.compute / all};
  const double idle = std::max(0.0, all - busy);
  s.data = std::min(data, idle) / all;
  s.host = idle / all - s.data;
  return s;
}

Tensor Bottleneck::measure(const Device& device, const std::function<Tensor()>& step) {
  Tensor loss;
  std::vector<LaunchTime> launches;
  {
    const Profile profile;
    loss = step();
    eval(loss);
    launches = profile.launches();
  }
  device_ = device_time(with_rates(launches, device, known_rates(device)));
  measured_ = device_.memory + device_.compute > 0;
  return loss;
}

std::string Bottleneck::text(double seconds, int64_t steps) const {
  if (!measured_ || steps < 1) return {};
  const auto n = static_cast<double>(steps);
  const auto [name, share] = shares_of(seconds / n, device_, waited_ / n).largest();
  return format("  bound by %s (%.0f %%)", name.c_str(), 100 * share);
}

}  // namespace ingot::cli
