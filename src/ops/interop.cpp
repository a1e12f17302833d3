// Memory shared with other libraries. A Storage that someone else refers to is never overwritten in place
// (trace.cpp looks at its count), so a SharedMemory only has to hold one.
#include "ingot/interop.h"

#include <functional>
#include <memory>

#include "base/host_wait.h"
#include "ingot/capture.h"
#include "ops/common.h"
#include "runtime/storage.h"

namespace ingot {

SharedMemory share_memory(const Tensor& x, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n(node_of(x, "share_memory", loc));
  if (is_capturing())
    fail(ErrorKind::State, "share_memory",
         "a captured function reads the value of " + describe(*n) + ": a repetition would not see it", loc,
         "return the tensor and read it outside");
  HostWait wait;
  if (Node* value = n.get(); !n->computed.load(std::memory_order_acquire)) materialise({&value, 1}, loc);
  n->device.synchronize();
  check_runs(n->device, true);
  auto owner = std::make_shared<Ref<Storage>>(n->storage);
  return {n->storage ? n->storage->data : nullptr, std::move(owner)};
}

Tensor from_shared_memory(void* data, DType dtype, const Dims& shape, const Device& device,
                          std::function<void()> on_release, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  check_new_shape(shape, "from_shared_memory", loc);
  size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  if (!data && bytes) fail(ErrorKind::Value, "from_shared_memory", "data is null", loc);
  NodeRef n = make_leaf(wrap_storage(device, data, bytes, std::move(on_release)), dtype, shape, device);
  n->loc = loc;
  return tensor_of(std::move(n));
}

void set_host_wait(void* (*begin)(), void (*end)(void*)) { set_host_wait_hooks(begin, end); }

}  // namespace ingot
