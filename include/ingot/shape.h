// Dims: a short vector of sizes (or strides, or axis indices) held inline.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace ingot {

/// Tensors have at most this many dimensions.
inline constexpr int kMaxDims = 10;

class Dims {
 public:
  constexpr Dims() = default;
  Dims(std::initializer_list<int64_t> v);  ///< throws Error(Shape) past kMaxDims
  Dims(const std::vector<int64_t>& v);     // NOLINT(google-explicit-constructor)
  Dims(const int64_t* data, int n);
  static Dims filled(int n, int64_t value);

  int size() const { return n_; }
  bool empty() const { return n_ == 0; }
  int64_t& operator[](int i) { return v_[i]; }
  int64_t operator[](int i) const { return v_[i]; }
  int64_t back() const { return v_[n_ - 1]; }
  const int64_t* begin() const& { return v_; }
  const int64_t* end() const& { return v_ + n_; }
  int64_t* begin() & { return v_; }
  int64_t* end() & { return v_ + n_; }
  const int64_t* begin() const&& = delete;  // of a Dims that is about to end: x.shape().begin()
  const int64_t* end() const&& = delete;
  void push_back(int64_t x);
  void insert(int at, int64_t x);
  void erase(int at);
  void resize(int n, int64_t fill = 0);
  std::vector<int64_t> vec() const;

  /// Product of the sizes: 1 for a 0-d tensor.
  int64_t numel() const {
    int64_t p = 1;
    for (int i = 0; i < n_; ++i) p *= v_[i];
    return p;
  }
  friend bool operator==(const Dims& a, const Dims& b) {
    if (a.n_ != b.n_) return false;
    for (int i = 0; i < a.n_; ++i)
      if (a.v_[i] != b.v_[i]) return false;
    return true;
  }

 private:
  int64_t v_[kMaxDims] = {};
  int n_ = 0;
};

/// "[2, 3]"
std::string to_string(const Dims& d);
/// Strides of a row-major tensor of this shape, in elements.
Dims row_major(const Dims& shape);

}  // namespace ingot
