// Dims: the parts that can fail or need more than a line.
#include "ingot/shape.h"

#include "ingot/error.h"

namespace ingot {
namespace {

int checked(size_t n) {
  if (n > static_cast<size_t>(kMaxDims))
    throw Error(
        ErrorKind::Shape, "shape",
        std::to_string(n) + " dims are too many: a tensor has at most " + std::to_string(kMaxDims),
        {}, "merge dims with flatten() or reshape()");
  return static_cast<int>(n);
}

}  // namespace

Dims::Dims(std::initializer_list<int64_t> v) : n_(checked(v.size())) {
  int i = 0;
  for (int64_t x : v) v_[i++] = x;
}
Dims::Dims(const std::vector<int64_t>& v) : Dims(v.data(), checked(v.size())) {}
std::vector<int64_t> Dims::vec() const { return {begin(), end()}; }
Dims::Dims(const int64_t* data, int n) : n_(checked(static_cast<size_t>(n))) {
  for (int i = 0; i < n_; ++i) v_[i] = data[i];
}
Dims Dims::filled(int n, int64_t value) {
  Dims d;
  d.resize(n, value);
  return d;
}

void Dims::push_back(int64_t x) { insert(n_, x); }
void Dims::insert(int at, int64_t x) {
  checked(static_cast<size_t>(n_) + 1);
  for (int i = n_; i > at; --i) v_[i] = v_[i - 1];
  v_[at] = x;
  ++n_;
}
void Dims::erase(int at) {
  for (int i = at; i + 1 < n_; ++i) v_[i] = v_[i + 1];
  --n_;
}
void Dims::resize(int n, int64_t fill) {
  checked(static_cast<size_t>(n));
  for (int i = n_; i < n; ++i) v_[i] = fill;
  n_ = n;
}

std::string to_string(const Dims& d) {
  std::string s = "[";
  for (int i = 0; i < d.size(); ++i) s += (i ? ", " : "") + std::to_string(d[i]);
  return s + "]";
}

Dims row_major(const Dims& shape) {
  Dims s = Dims::filled(shape.size(), 1);
  for (int i = shape.size() - 2; i >= 0; --i) s[i] = s[i + 1] * shape[i + 1];
  return s;
}

}  // namespace ingot
