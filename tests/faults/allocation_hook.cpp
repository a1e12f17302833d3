// See allocation_hook.h: the program's own operator new, which the library's calls find as well.
#include "allocation_hook.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace ingot::test {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
std::atomic<bool> armed{false}, persistent{false};
std::atomic<int64_t> counted{0}, failing{kNever};

bool fails() {
  if (!armed.load(std::memory_order_acquire)) return false;
  const int64_t n = counted.fetch_add(1), at = failing.load();
  return n == at || (n > at && persistent.load());
}

void* allocate(std::size_t bytes, std::size_t align) {
  if (fails()) return nullptr;
  if (bytes == 0) bytes = 1;
  return align ? std::aligned_alloc(align, (bytes + align - 1) / align * align)
               : std::malloc(bytes);
}

void* or_throw(void* p) {
  if (!p) throw std::bad_alloc();
  return p;
}

}  // namespace

void fail_allocation(int64_t after, bool on) {
  counted = 0;
  failing = after;
  persistent = on;
  armed = true;
}
void count_allocations() { fail_allocation(kNever, false); }
int64_t stop_counting() {
  armed = false;
  return counted;
}

}  // namespace ingot::test

using ingot::test::allocate;
using ingot::test::or_throw;

void* operator new(std::size_t n) { return or_throw(allocate(n, 0)); }
void* operator new[](std::size_t n) { return or_throw(allocate(n, 0)); }
void* operator new(std::size_t n, std::align_val_t a) {
  return or_throw(allocate(n, std::size_t(a)));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return or_throw(allocate(n, std::size_t(a)));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, 0); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, 0); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
