// Devices by name, what they say of themselves, and the registry of backends.
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <memory>
#include <mutex>

#include "ingot/device.h"
#include "ingot/devices.h"
#include "ingot/error.h"
#include "runtime/backend.h"
#include "runtime/require_device.h"

namespace ingot {
namespace {

struct Registry {
  std::array<std::atomic<Backend*>, 3> backend{};
  std::array<std::once_flag, 3> once;
  std::array<std::string, 3> reason;
};
Registry& registry() {
  static Registry* r = new Registry;  // never destroyed: tensors may outlive main
  return *r;
}

void start(DeviceType type) {
  Registry& r = registry();
  int k = static_cast<int>(type);
  if (r.backend[k].load()) return;
  if (auto made = make_builtin_backend(type, r.reason[k])) r.backend[k] = made.release();
}

Backend& require(DeviceType type, int index, std::string_view name) {
  Backend* b = backend_for(type);
  const bool there = b && index < b->device_count();
  if (there) return *b;
  throw Error(ErrorKind::Device, "Device",
              "the device \"" + std::string(name) + "\" is not available: " +
                  (b ? "this machine has " + std::to_string(b->device_count()) +
                           " device(s) of that kind, numbered from 0"
                     : missing_reason(type)));
}

}  // namespace

Backend& require_device(Device device) {
  Backend* b = backend_for(device.type());
  return b && device.index() < b->device_count()
             ? *b
             : require(device.type(), device.index(), device.name());
}

Backend* backend_for(DeviceType type) {
  Registry& r = registry();
  int k = static_cast<int>(type);
  Backend* b = r.backend[k].load(std::memory_order_acquire);
  if (b) return b;
  std::call_once(r.once[k], start, type);
  return r.backend[k].load(std::memory_order_acquire);
}

void register_backend(DeviceType type, std::unique_ptr<Backend> backend) {
  registry().backend[static_cast<int>(type)] = backend.release();
}

std::string missing_reason(DeviceType type) {
  backend_for(type);
  return registry().reason[static_cast<int>(type)];
}

Device::Device(std::string_view name) {
  std::string_view kind = name.substr(0, name.find(':'));
  int index = 0;
  bool ok = true;
  if (kind.size() < name.size()) {
    std::string_view digits = name.substr(kind.size() + 1);
    auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    ok = ec == std::errc{} && end == digits.data() + digits.size() && index >= 0;
  }
  if (kind == "cpu")
    type_ = DeviceType::CPU;
  else if (kind == "cuda")
    type_ = DeviceType::CUDA;
  else if (kind == "null")
    type_ = DeviceType::Null;
  else
    ok = false;
  if (!ok)
    throw Error(ErrorKind::Device, "Device",
                "there is no device called \"" + std::string(name) + "\"", {},
                "use \"cpu\", \"cpu:1\", \"cuda\", \"cuda:0\" or Device::best()");
  require(type_, index, name);
  index_ = static_cast<uint8_t>(index);
}

Device Device::best() {
  if (Backend* gpu = backend_for(DeviceType::CUDA)) {
    int best = 0;
    for (int i = 1; i < gpu->device_count(); ++i)
      if (gpu->free_memory(i) > gpu->free_memory(best)) best = i;
    if (gpu->device_count() > 0) return Device(DeviceType::CUDA, best);
  }
  return Device(DeviceType::CPU, 0);
}

std::vector<Device> Device::all() {
  std::vector<Device> found{Device(DeviceType::CPU, 0)};
  if (Backend* gpu = backend_for(DeviceType::CUDA))
    for (int i = 0; i < gpu->device_count(); ++i) found.emplace_back(DeviceType::CUDA, i);
  return found;
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> list;
  for (Device d : Device::all()) {
    Backend* b = backend_for(d.type());
    try {
      list.push_back({d, b->chip(d.index()), b->total_memory(d.index()), b->free_memory(d.index()),
                      b->facts(d.index())});
    } catch (const Error& e) {  // a GPU that cannot be used now is listed all the same
      list.push_back({d, "not usable", 0, 0, {{"why", e.what()}}});
    }
  }
  return list;
}

std::string describe_devices() {
  std::string text;
  auto gib = [](size_t bytes) {
    char s[32];
    std::snprintf(s, sizeof s, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
    return std::string(s);
  };
  for (const DeviceInfo& i : list_devices()) {
    text +=
        i.device.name() + "\t" + i.name + ", " + gib(i.memory) + " (" + gib(i.free) + " free)\n";
    for (const auto& [what, value] : i.facts) text += "\t" + what + ": " + value + "\n";
  }
  if (!backend_for(DeviceType::CUDA)) text += "no GPU\t" + missing_reason(DeviceType::CUDA) + "\n";
  return text;
}

void Device::synchronize() const {
  if (Backend* b = backend_for(type_)) b->synchronize(index_);
}

}  // namespace ingot
