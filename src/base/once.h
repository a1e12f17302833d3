// What threads may set and read concurrently without a lock: a value that is set once, and a flag.
#pragma once
#include <atomic>
#include <utility>

#include "base/ref.h"

namespace ingot {

/// A flag without ordering of other memory. Costs what a bool does.
class Flag {
 public:
  Flag(bool v = false) : v_(v) {}  // NOLINT(google-explicit-constructor)
  Flag(const Flag& o) : Flag(bool(o)) {}
  Flag& operator=(const Flag& o) { return *this = bool(o); }
  Flag& operator=(bool v) {
    v_.store(v, std::memory_order_relaxed);
    return *this;
  }
  operator bool() const {
    return v_.load(std::memory_order_relaxed);
  }  // NOLINT(google-explicit-constructor)

 private:
  std::atomic<bool> v_;
};

/// Null until it is set; constant from then on.
template <class T>
class OnceRef {
 public:
  OnceRef() = default;
  ~OnceRef() {
    if (T* p = get()) release(p);
  }
  OnceRef(const OnceRef&) = delete;
  OnceRef& operator=(const OnceRef&) = delete;
  T* get() const { return p_.load(std::memory_order_acquire); }
  /// Sets it unless it is set. Returns the current value.
  T* set(Ref<T> r) {
    T* found = nullptr;
    if (p_.compare_exchange_strong(found, r.get(), std::memory_order_acq_rel,
                                   std::memory_order_acquire))
      return r.leak();
    return found;
  }
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }
  explicit operator bool() const { return get() != nullptr; }

 private:
  std::atomic<T*> p_{nullptr};
};

/// The same for a value of one owner, created at first use from `args`.
template <class T>
class OnceBox {
 public:
  OnceBox() = default;
  ~OnceBox() { delete get(); }
  OnceBox(const OnceBox&) = delete;
  OnceBox& operator=(const OnceBox&) = delete;
  T* get() const { return p_.load(std::memory_order_acquire); }
  template <class... Args>
  T& made(Args&&... args) {
    if (T* p = get()) return *p;
    T *fresh = new T(std::forward<Args>(args)...), *found = nullptr;
    if (p_.compare_exchange_strong(found, fresh, std::memory_order_acq_rel,
                                   std::memory_order_acquire))
      return *fresh;
    delete fresh;
    return *found;
  }
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }
  explicit operator bool() const { return get() != nullptr; }

 private:
  std::atomic<T*> p_{nullptr};
};

}  // namespace ingot
