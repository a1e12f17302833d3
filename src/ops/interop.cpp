// Memory shared with other libraries. A Storage that someone else refers to is never overwritten in
// place (trace.cpp looks at its count), so a SharedMemory only has to hold one.
#include "ingot/interop.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

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
         "a captured function reads the value of " + describe(*n) +
             ": a repetition would not see it",
         loc, "return the tensor and read it outside");
  HostWait wait;
  if (Node* value = n.get(); !n->computed.load(std::memory_order_acquire))
    materialise({&value, 1}, loc);
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
  NodeRef n =
      make_leaf(wrap_storage(device, data, bytes, std::move(on_release)), dtype, shape, device);
  n->loc = loc;
  return tensor_of(std::move(n));
}

namespace {

// Calls f once: whoever took it on does, or this at its end.
class Release {
 public:
  explicit Release(std::function<void()> f) : f_(std::move(f)) {}
  ~Release() {
    if (f_) f_();
  }
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;
  std::function<void()> hand_on() { return std::exchange(f_, nullptr); }

 private:
  std::function<void()> f_;
};

bool is_row_major(const ForeignArray& a) {
  if (!a.strides || a.shape.numel() == 0) return true;
  auto expected = static_cast<int64_t>(size_of(a.dtype));
  for (int i = a.shape.size() - 1; i >= 0; --i) {
    if (a.shape[i] != 1 && (*a.strides)[i] != expected) return false;
    expected *= a.shape[i];
  }
  return true;
}

// Are all elements at addresses that there are? Their bytes are counted in 128 bits: 2^60 elements,
// apart by any stride, fit.
bool is_addressable(const ForeignArray& a) {
  using Wide = __int128;
  const auto size = static_cast<Wide>(size_of(a.dtype));
  Wide low = static_cast<Wide>(reinterpret_cast<uintptr_t>(a.data)), high = low + size;
  if (!a.strides) high += static_cast<Wide>(a.shape.numel() - 1) * size;
  for (int i = 0; a.strides && i < a.shape.size(); ++i) {
    const Wide reach = static_cast<Wide>(a.shape[i] - 1) * (*a.strides)[i];
    (reach < 0 ? low : high) += reach;
  }
  return low > 0 && high <= static_cast<Wide>(UINTPTR_MAX);
}

void check_array(const ForeignArray& a, const SourceLoc& loc) {
  check_new_shape(a.shape, "from_foreign", loc);
  if (a.strides && a.strides->size() != a.shape.size())
    fail(ErrorKind::Value, "from_foreign",
         "there are strides for " + std::to_string(a.strides->size()) + " dims of " +
             std::to_string(a.shape.size()),
         loc);
  if (a.shape.numel() == 0) return;
  if (!a.data) fail(ErrorKind::Value, "from_foreign", "data is null", loc);
  if (!is_addressable(a))
    fail(ErrorKind::Value, "from_foreign", "elements are outside the address space", loc);
}

// Element by element, dims from `dim` on; `to` moves on.
void copy_strided(char*& to, const char* from, const ForeignArray& a, int dim) {
  const size_t size = size_of(a.dtype);
  if (dim == a.shape.size()) {
    std::memcpy(to, from, size);
    to += size;
    return;
  }
  for (int64_t i = 0; i < a.shape[dim]; ++i)
    copy_strided(to, from + i * (*a.strides)[dim], a, dim + 1);
}

Tensor copy_array(const ForeignArray& a, bool row_major, const SourceLoc& loc) {
  const auto count = static_cast<size_t>(a.shape.numel());
  const Device cpu("cpu");
  Ref<Storage> s = allocate_storage(cpu, count * size_of(a.dtype), "from_foreign");
  char* to = static_cast<char*>(s->data);
  if (count && row_major) std::memcpy(to, a.data, count * size_of(a.dtype));
  if (count && !row_major) copy_strided(to, static_cast<const char*>(a.data), a, 0);
  // Bools of strangers may be any byte.
  if (a.dtype == DType::Bool)
    for (auto* p = static_cast<uint8_t*>(s->data); p < static_cast<uint8_t*>(s->data) + count; ++p)
      *p = *p != 0;
  NodeRef n = make_leaf(std::move(s), a.dtype, a.shape, cpu);
  n->loc = loc;
  return tensor_of(std::move(n));
}

bool has_odd_bools(const ForeignArray& a) {
  const auto* p = static_cast<const uint8_t*>(a.data);
  return a.dtype == DType::Bool &&
         std::any_of(p, p + a.shape.numel(), [](uint8_t b) { return b > 1; });
}

}  // namespace

Tensor from_foreign(const ForeignArray& a, bool copy, std::function<void()> on_release,
                    SourceLoc where) {
  SourceLoc loc = user_loc(where);
  Release release(std::move(on_release));
  check_array(a, loc);
  const bool row_major = is_row_major(a),
             aligned = reinterpret_cast<uintptr_t>(a.data) % size_of(a.dtype) == 0;
  if (!a.device.is_cpu()) {
    if (!row_major || !aligned)
      fail(ErrorKind::Unsupported, "from_foreign",
           "a tensor on the GPU must be contiguous and aligned", loc,
           "call .contiguous() on it first");
    const Tensor shared =
        from_shared_memory(a.data, a.dtype, a.shape, a.device, release.hand_on(), loc);
    return copy ? shared.clone(loc) : shared;
  }
  if (copy || !row_major || !aligned || has_odd_bools(a)) return copy_array(a, row_major, loc);
  return from_shared_memory(a.data, a.dtype, a.shape, a.device, release.hand_on(), loc);
}

void set_host_wait(void* (*begin)(), void (*end)(void*)) { set_host_wait_hooks(begin, end); }

}  // namespace ingot
