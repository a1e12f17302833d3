// What a device is as a value. What it can do is asked in runtime/device.cpp.
#include "ingot/device.h"

namespace ingot {

Device::Device(DeviceType type, int index) : type_(type), index_(static_cast<uint8_t>(index)) {}

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
