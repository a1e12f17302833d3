// The thread's state, and the public functions that are about nothing else.
#include "graph/thread_state.h"

#include <atomic>
#include <cstdint>

#include "graph/node.h"
#include "ingot/autograd.h"
#include "ingot/capture.h"
#include "ingot/device.h"

namespace ingot {

constinit INGOT_THREAD_LOCAL ThreadState this_thread;

ThreadLists& thread_lists() {
  thread_local ThreadLists lists;
  return lists;
}

// ---- Gradient mode

bool grad_enabled() { return this_thread.grad; }
bool is_grad_enabled() { return this_thread.grad; }
void set_grad_enabled(bool on) { this_thread.grad = on; }
NoGrad::NoGrad() : previous_(std::exchange(this_thread.grad, false)) {}
NoGrad::~NoGrad() { this_thread.grad = previous_; }
EnableGrad::EnableGrad() : previous_(std::exchange(this_thread.grad, true)) {}
EnableGrad::~EnableGrad() { this_thread.grad = previous_; }

// ---- Capture

bool is_capturing() { return this_thread.capture != nullptr; }

// ---- Default device

namespace {

std::atomic<int> process_device{0};

int pack(Device d) { return static_cast<int>(d.type()) << 8 | d.index(); }

}  // namespace

Device default_device() {
  const int p =
      this_thread.device >= 0 ? this_thread.device : process_device.load(std::memory_order_relaxed);
  return Device(static_cast<DeviceType>(p >> 8), p & 255);
}
void set_default_device(Device d) { process_device = pack(d); }
DeviceScope::DeviceScope(Device d) : previous_(std::exchange(this_thread.device, pack(d))) {}
DeviceScope::~DeviceScope() { this_thread.device = previous_; }

Device::Device() { *this = default_device(); }

}  // namespace ingot
