// HostWait: around work that other threads of a language with a global lock (Python) need not wait
// for. Recording happens under that lock; computing and copying do not.
#pragma once

namespace ingot {

/// See set_host_wait in ingot/interop.h.
void set_host_wait_hooks(void* (*begin)(), void (*end)(void*));

class HostWait {
 public:
  HostWait();
  ~HostWait();
  HostWait(const HostWait&) = delete;
  HostWait& operator=(const HostWait&) = delete;

 private:
  void* state_;
};

}  // namespace ingot
