// What a training step waits for: data, the host, the device's memory or its arithmetic.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <ingot/ingot.h>
#include <ingot/profile.h>

#include "rates.h"

namespace ingot::cli {

/// Parts of a step's time; they add up to 1.
struct Shares {
  double data = 0, host = 0, memory = 0, compute = 0;
  /// "compute", and its share.
  std::pair<std::string, double> largest() const;
};

/// Seconds of launches that memory and arithmetic bound, by which of the two takes longer at the
/// device's rates.
struct DeviceTime {
  double memory = 0, compute = 0;
};
DeviceTime device_time(const std::vector<LaunchTime>& launches);

/// The launches with their times at measured rates. (A GPU backend's own rates are measured
/// already; the CPU's are estimates for any processor.)
std::vector<LaunchTime> with_rates(std::vector<LaunchTime> launches, const Device& device,
                                   const Rates& rates);

/// A step of `step` seconds in which the device worked for `device` and the host waited `data`
/// seconds for a batch. What the device does not explain is the data's share as far as that was
/// waited for, and the host's for the rest.
Shares shares_of(double step, const DeviceTime& device, double data);

/// For a training loop: one step is measured launch by launch, waiting for data in every step.
class Bottleneck {
 public:
  /// Runs a step and times its launches; rates() of the device says which of them memory bounds.
  Tensor measure(const Device& device, const std::function<Tensor()>& step);
  void waited(double seconds) { waited_ += seconds; }
  void new_window() { waited_ = 0; }
  /// "  compute 71 %": of a window of so many seconds and steps. "" before anything was measured.
  std::string text(double seconds, int64_t steps) const;

 private:
  DeviceTime device_;
  bool measured_ = false;
  double waited_ = 0;
};

}  // namespace ingot::cli
