// Storage: a counted buffer on a device, which a computed node holds. runtime/storage.h makes them.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/ref.h"
#include "ingot/device.h"

namespace ingot {

struct Storage {
  std::atomic<uint32_t> refs{0};
  std::atomic<uint32_t> captured{
      0};  // references held by captured functions, which do not mind updates in place
  void* data = nullptr;
  size_t bytes = 0;
  Device device{DeviceType::CPU, 0};
  std::function<void()> on_release;    // wrapped host memory: called instead of freeing
  void (*free)(Storage& s) = nullptr;  // of the allocator the buffer came from
};
void retain(Storage* s);
void release(Storage* s);

}  // namespace ingot
