// Ref<T>: an intrusive shared pointer. T offers retain(T*) and release(T*) found by
// argument-dependent lookup. A Ref with a name converts to T*; a temporary does not, so
// that no pointer outlives it.
#pragma once
#include <utility>

namespace ingot {

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(T* p) : p_(p) {  // NOLINT(google-explicit-constructor)
    if (p_) retain(p_);
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  ~Ref() {
    if (p_) release(p_);
  }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  /// Adopts a reference that the caller already owns.
  static Ref adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  /// Releases the reference to the caller.
  T* leak() { return std::exchange(p_, nullptr); }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const& { return *p_; }
  T& operator*() const&& = delete;
  operator T*() const& { return p_; }  // NOLINT(google-explicit-constructor)
  operator T*() const&& = delete;
  explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }
  friend bool operator==(const Ref& a, const T* b) { return a.p_ == b; }

 private:
  T* p_ = nullptr;
};

}  // namespace ingot
