// Weights between Ingot's strided memory and the blocks oneDNN requires.
#pragma once
#include <cstdint>
#include <vector>

#include "backend/cpu/conv/dnnl/api.h"

namespace ingot::cpu {

/// Between a strided weight and oneDNN's blocks of it.
class Blocks {
 public:
  Blocks() = default;
  Blocks(const DnnlBlocking& b, const std::vector<int64_t>& stride) : b_(b), stride_(stride) {
    std::vector<int64_t> unit(static_cast<size_t>(b.rank), 1);
    for (int i = 0; i < b.blocks; ++i)
      unit[static_cast<size_t>(b.dim[i])] *= b.block[i], inner_ *= b.block[i];
    for (int i = 0; i < b.rank; ++i) {
      outer_.push_back(b.padded[i] / unit[static_cast<size_t>(i)]);
      units_ *= outer_.back();
      ragged_ = ragged_ || b.padded[i] != b.size[i];
    }
    unit_ = unit;
    find_form();
    for (int64_t e = 0; e < inner_; ++e) {
      std::vector<int64_t> at(static_cast<size_t>(b.rank), 0), digit(static_cast<size_t>(b.blocks));
      int64_t rest = e;
      for (int i = b.blocks - 1; i >= 0; --i)
        digit[static_cast<size_t>(i)] = rest % b.block[i], rest /= b.block[i];
      for (int i = 0; i < b.blocks; ++i) {
        int64_t& a = at[static_cast<size_t>(b.dim[i])];
        a = a * b.block[i] + digit[static_cast<size_t>(i)];
      }
      int64_t off = 0;
      for (int i = 0; i < b.rank; ++i)
        off += at[static_cast<size_t>(i)] * stride[static_cast<size_t>(i)];
      plain_.push_back(off);
      if (ragged_) inside_.insert(inside_.end(), at.begin(), at.end());
    }
  }
  size_t host_bytes() const {
    size_t n = 0;
    for (const auto* v : {&stride_, &outer_, &unit_, &plain_, &inside_, &rows_})
      n += v->capacity() * sizeof(int64_t);
    return n;
  }
  /// How many pieces packing and unpacking have: blocks of channels where float32 is moved, else
  /// units.
  int64_t pieces(bool f32) const {
    return f32 && form_ != Form::Any ? outer_[0] * chunks_ : units_;
  }

  /// fn(position in the blocked weight, position in the plain one or -1 in the padding) for each
  /// element of one unit.
  template <class Fn>
  void each(int64_t unit, Fn fn) const {
    int64_t blocked = 0, plain = 0;
    int64_t first[6];
    for (int i = b_.rank - 1; i >= 0; --i) {
      const auto k = static_cast<size_t>(i);
      const int64_t at = unit % outer_[k];
      unit /= outer_[k];
      blocked += at * b_.stride[i];
      first[i] = at * unit_[k];
      plain += first[i] * stride_[k];
    }
    if (!ragged_) {
      for (int64_t e = 0; e < inner_; ++e) fn(blocked + e, plain + plain_[static_cast<size_t>(e)]);
      return;
    }
    for (int64_t e = 0; e < inner_; ++e) {
      bool in = true;
      for (int i = 0; i < b_.rank; ++i)
        in = in && first[i] + inside_[static_cast<size_t>(e * b_.rank + i)] < b_.size[i];
      fn(blocked + e, in ? plain + plain_[static_cast<size_t>(e)] : -1);
    }
  }
  void pack(uint16_t* blocked, const uint16_t* plain, int64_t unit) const {
    pack_unit(blocked, plain, unit);
  }
  void pack(float* blocked, const float* plain, int64_t piece) const;
  /// plain = the sum of `count` blocked weights, `step` apart.
  void unpack(float* plain, const float* blocked, int64_t count, int64_t step, int64_t piece) const;

 private:
  /// Blocks of output channels innermost, blocks of input channels innermost (and of output
  /// channels around them), or anything else.
  enum class Form { Any, Outputs, Inputs };
  template <class T>
  void pack_unit(T* blocked, const T* plain, int64_t unit) const {
    each(unit, [&](int64_t to, int64_t from) { blocked[to] = from < 0 ? T(0) : plain[from]; });
  }
  void find_form();
  struct Place {
    int64_t plain, blocked;
  };
  /// Where a piece begins; prefetches what the next one needs of the plain weight.
  Place place(const float* plain, int64_t piece) const;
  int64_t line() const { return inputs_ * window_; }  // between output channels
  /// Where, in a block of channels, the row of elements begins that holds window element `at` of
  /// the block's i-th input channel.
  int64_t row(int64_t i, int64_t at) const;
  DnnlBlocking b_{};
  std::vector<int64_t> stride_, outer_, unit_, plain_, inside_, rows_;
  int64_t inner_ = 1, units_ = 1;
  bool ragged_ = false;
  Form form_ = Form::Any;
  int64_t window_ = 1, inputs_ = 1, wide_ = 1, deep_ = 1, chunks_ = 1;
};

}  // namespace ingot::cpu
