// What devices this machine has, as text.
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

/// The CPU first, then the GPUs in nvidia-smi's order. Never throws: a machine without GPUs lists
/// its CPU.
std::vector<DeviceInfo> list_devices();
/// The host's memory as this process may use it, in bytes: the least of what the machine has and of
/// what the control groups it is in allow (containers; versions 1 and 2).
struct HostMemory {
  size_t total = 0, available = 0;
  size_t limit = 0;  ///< of the control groups; 0: none
};
/// root: the folder to find /proc and /sys in, for tests.
HostMemory host_memory(const std::string& root = {});
/// The list as a table; says at its end why there is no GPU, if there is none, and what to do about
/// it.
std::string describe_devices();

}  // namespace ingot
