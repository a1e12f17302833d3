// What a device is as a value. What it can do is asked in runtime/device.cpp.
#include "ingot/device.h"
#include "ingot/error.h"

namespace ingot {

namespace {

// As many of a kind as statistics are kept of. Whether a device is there is asked when it is used.
constexpr int kMostDevices = 64;

[[noreturn]] void no_such_index(int index) {
  throw Error(ErrorKind::Device, "Device",
              "there is no device with the index " + std::to_string(index), {},
              "devices are numbered from 0 to " + std::to_string(kMostDevices - 1));
}

}  // namespace

Device::Device(DeviceType type, int index) : type_(type), index_(static_cast<uint8_t>(index)) {
  if (index < 0 || index >= kMostDevices) no_such_index(index);
}

std::string Device::name() const {
  switch (type_) {
    case DeviceType::CPU:
      return index_ ? "cpu:" + std::to_string(index_) : "cpu";
    case DeviceType::CUDA:
      return "cuda:" + std::to_string(index_);
    case DeviceType::Null:
      return "null:" + std::to_string(index_);
  }
  return "?";
}

}  // namespace ingot
