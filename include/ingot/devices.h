// What devices this machine has, in words.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ingot/device.h"

namespace ingot {

struct DeviceInfo {
  Device device;
  std::string name;             ///< of the chip
  size_t memory = 0, free = 0;  ///< bytes
  std::vector<std::pair<std::string, std::string>>
      facts;  ///< compute capability, driver, libraries and their versions
};

/// The CPU first, then the GPUs in nvidia-smi's order. Never throws: a machine without GPUs lists its CPU.
std::vector<DeviceInfo> list_devices();
/// The list as a table; says at its end why there is no GPU, if there is none, and what to do about it.
std::string describe_devices();

}  // namespace ingot
