// What a device gives: measured, and what its maker promises.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "ingot/device.h"

namespace ingot::cli {

/// Per second: FLOP of matrix products (float32 on the CPU, bfloat16 on a GPU), bytes of memory, bytes over
/// the bus.
struct Rates {
  double matmul = 0, memory = 0, to_device = 0, to_host = 0;
};
/// Measured, with about this many seconds for each.
Rates measure(const Device& device, double budget);
/// For chips whose figures are known.
std::optional<Rates> promised(const std::string& chip);
/// Seconds of the best of several runs.
double best_time(const Device& device, const std::function<void()>& run, double budget);

}  // namespace ingot::cli
