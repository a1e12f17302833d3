// Parts of a convolution's activations in channels-last order, for kernels that need that layout:
// the memory itself where it has it, else copies made part by part, in the cache.
#pragma once
#include <cstdint>

#include "backend/cpu/support/move.h"
#include "codegen/conv_shape.h"

namespace ingot::cpu {

/// A part of an activation: samples, rows of its first dim, channels.
struct Part {
  int64_t n0, n, r0, r, c0, c;
};

/// x or y, with channels-last parts of it.
class Activation {
 public:
  Activation() = default;
  Activation(const ConvShape& s, const ConvShape::Place& p, const int64_t size[3], int64_t channels)
      : p_(p), channels_(channels), first_(3 - s.n), es_(static_cast<int64_t>(size_of(p.dtype))) {
    for (int d = 0; d < 3; ++d) size_[d] = size[d];
    rest_ = 1;
    for (int d = first_ + 1; d < 3; ++d) rest_ *= size_[d];
    dense_ = (p.channel == 1 || channels == 1);
    int64_t want = channels;
    for (int d = 2; d >= first_; --d) {
      dense_ = dense_ && (p.dim[d] == want || size_[d] == 1);
      want *= size_[d];
    }
    sample_dense_ = p.outer == want;
    // Can the dims after the first be treated as one?
    inner_ = p.dim[2];
    for (int d = 2; d > first_; --d)
      if (size_[d - 1] > 1 && p.dim[d - 1] != p.dim[d] * size_[d]) one_run_ = false;
  }
  int64_t rows() const { return size_[first_]; }
  int64_t bytes(const Part& q) const { return q.n * q.r * rest_ * q.c * es_; }
  /// The part itself where it is stored channels-last, else nullptr.
  char* direct(void* base, const Part& q) const {
    const bool whole = q.r == rows() && sample_dense_;
    if (!dense_ || q.c != channels_ || (q.n > 1 && !whole)) return nullptr;
    return static_cast<char*>(base) + at(q) * es_;
  }
  void gather(char* to, void* base, const Part& q) const {
    move(to, static_cast<char*>(base) + at(q) * es_, q, true);
  }
  /// Followed by finish_stream() where it bypasses the caches.
  void scatter(void* base, char* from, const Part& q) const {
    move(from, static_cast<char*>(base) + at(q) * es_, q, false);
  }
  /// Results of this size, together with what is read for them, do not stay in the caches.
  void stream_if_large(int64_t written, int64_t read) {
    if (worth_streaming(written, written + read)) far_ = Far::Memory;
  }
  bool streams() const { return far_ == Far::Memory; }

 private:
  int64_t at(const Part& q) const {
    return p_.offset + q.n0 * p_.outer + q.r0 * p_.dim[first_] + q.c0 * p_.channel;
  }
  void move(char* packed, char* plain, const Part& q, bool in) const {
    int64_t e[5], stride[5];
    int nd = 0;
    auto axis = [&](int64_t size, int64_t step) {
      e[nd] = size;
      stride[nd++] = step;
    };
    axis(q.n, p_.outer);
    if (one_run_)
      axis(q.r * rest_, rest_ == 1 ? p_.dim[first_] : inner_);
    else
      for (int d = first_; d < 3; ++d) axis(d == first_ ? q.r : size_[d], p_.dim[d]);
    axis(q.c, p_.channel);
    if (in)
      gather_box(packed, plain, stride, e, nd, static_cast<int>(es_));
    else
      scatter_box(plain, stride, packed, e, nd, static_cast<int>(es_), far_);
  }
  ConvShape::Place p_{};
  int64_t channels_ = 0;
  int first_ = 0;
  int64_t es_ = 4, size_[3] = {1, 1, 1}, rest_ = 1, inner_ = 1;
  bool dense_ = false, sample_dense_ = false, one_run_ = true;
  Far far_ = Far::Result;
};

}  // namespace ingot::cpu
