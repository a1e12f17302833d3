#include "base/host_wait.h"

namespace ingot {
namespace {

struct Hooks {
  void* (*begin)() = nullptr;
  void (*end)(void*) = nullptr;
} hooks;

}  // namespace

void set_host_wait_hooks(void* (*begin)(), void (*end)(void*)) { hooks = {begin, end}; }

HostWait::HostWait() : state_(hooks.begin ? hooks.begin() : nullptr) {}
HostWait::~HostWait() {
  if (state_) hooks.end(state_);
}

}  // namespace ingot
