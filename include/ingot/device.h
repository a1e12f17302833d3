// A device is a value: Device("cpu"), Device("cpu:1"), Device("cuda:0"), Device::best().
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

enum class DeviceType : uint8_t { CPU, CUDA, Null };

struct MemoryStats {
  size_t in_use = 0;  ///< bytes of live tensors and the arena
  size_t peak = 0;    ///< largest in_use since reset_peak_memory
  size_t arena = 0;   ///< bytes of the arena that plans share
  size_t limit = 0;   ///< 0: no limit but the machine's
  size_t allocations = 0;
};

class Device {
 public:
  /// The default device (see set_default_device), "cpu" at start.
  Device();
  /// "cpu", "cpu:N", "cuda", "cuda:N", "null", "null:N". Throws Error(Device) for another name, or
  /// when the device is missing, saying why and what to do.
  Device(std::string_view name);  // NOLINT(google-explicit-constructor)
  Device(const char* name)
      : Device(std::string_view(name)) {}  // NOLINT(google-explicit-constructor)
  Device(DeviceType type, int index);
  /// The GPU with most free memory if there is one, else the CPU.
  static Device best();
  static std::vector<Device> all();

  DeviceType type() const { return type_; }
  int index() const { return index_; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  std::string name() const;  ///< "cpu", "cpu:1", "cuda:0"

  MemoryStats memory() const;
  void reset_peak_memory() const;
  /// At most this many bytes for tensors and arena; 0 lifts the limit.
  void set_memory_limit(size_t bytes) const;
  /// Waits for all work submitted to the device; raises pending device errors.
  void synchronize() const;

  friend bool operator==(const Device& a, const Device& b) {
    return a.type_ == b.type_ && a.index_ == b.index_;
  }
  friend bool operator!=(const Device& a, const Device& b) { return !(a == b); }

 private:
  DeviceType type_;
  uint8_t index_;
};

/// For the whole program.
void set_default_device(Device d);
Device default_device();

/// While one lives, this thread's default device is another.
class DeviceScope {
 public:
  explicit DeviceScope(Device d);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int previous_;
};

}  // namespace ingot
