// The rates of a device: as measured, and as its vendor specifies.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "ingot/device.h"

namespace ingot::cli {

/// Per second: FLOP of matrix products (float32 on the CPU, bfloat16 on a GPU), bytes of memory,
/// bytes over the bus.
struct Rates {
  double matmul = 0, memory = 0, to_device = 0, to_host = 0;
};
/// Measured, with about this many seconds for each rate.
Rates measure(const Device& device, double budget);
/// The best ever measured on this machine, kept in ~/.cache/ingot/rates.json (other programs only
/// ever make a device slower): train, profile and bench use the same figures. Measures where
/// nothing is kept, for this many seconds each, and with `anew` always.
Rates known_rates(const Device& device, double budget = 0.05, bool anew = false);
/// For chips whose figures are known.
std::optional<Rates> promised(const std::string& chip);
/// Seconds of the best of several runs.
double best_time(const Device& device, const std::function<void()>& run, double budget);

}  // namespace ingot::cli
