// See dnnl_weights.h. Dense float32 weights move by runs: the window's places of neighbouring input channels
// are one row of memory for each output channel, and a block of such rows is turned in the cache.
#include "backend/cpu/dnnl_weights.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/move.h"

namespace ingot::cpu {

void Blocks::find_form() {
  if (ragged_ || b_.rank < 3 || b_.rank > 5 || b_.blocks < 1 || b_.blocks > 2) return;
  if (b_.block[b_.blocks - 1] > 64) return;
  // Dense [outputs, inputs, window..] only: no groups.
  int64_t want = 1;
  for (int d = b_.rank - 1; d >= 0; --d) {
    if (stride_[static_cast<size_t>(d)] != want && b_.size[d] > 1) return;
    want *= b_.size[d];
  }
  for (int d = 2; d < b_.rank; ++d) window_ *= b_.size[d];
  inputs_ = b_.size[1];
  wide_ = b_.block[b_.blocks - 1];
  deep_ = b_.blocks == 2 ? b_.block[0] : 1;
  const int inner = b_.dim[b_.blocks - 1], around = b_.blocks == 2 ? b_.dim[0] : -1;
  if (inner == 0 && (around == -1 || around == 1)) {
    form_ = Form::Outputs;
    chunks_ = (inputs_ * window_ + kChunk - 1) / kChunk;
  } else if (inner == 1 && around == 0) {
    form_ = Form::Inputs;
    chunks_ = inputs_ / wide_;
  }
}

int64_t Blocks::row(int64_t o, int64_t i, int64_t at) const {
  int64_t p = o * b_.stride[0] + i / unit_[1] * b_.stride[1];
  for (int d = b_.rank - 1; d >= 2; --d) {
    p += at % b_.size[d] * b_.stride[d];
    at /= b_.size[d];
  }
  return form_ == Form::Outputs ? p + i % unit_[1] * wide_ : p;
}

void Blocks::pack(float* blocked, const float* plain, int64_t piece) const {
  if (form_ == Form::Any) return pack_unit(blocked, plain, piece);
  const int64_t o = piece / chunks_, chunk = piece % chunks_, line = inputs_ * window_;
  if (form_ == Form::Outputs) {
    float turned[kChunk * 64];
    const int64_t q0 = chunk * kChunk, n = std::min(kChunk, line - q0);
    const int64_t e[2] = {n, wide_}, ds[2] = {wide_, 1}, ss[2] = {1, line};
    copy_box(turned, ds, plain + o * wide_ * line + q0, ss, e, 2, 4);
    for (int64_t q = 0; q < n; ++q)
      std::memcpy(blocked + row(o, (q0 + q) / window_, (q0 + q) % window_), turned + q * wide_,
                  static_cast<size_t>(wide_) * sizeof(float));
    return;
  }
  const float* from = plain + o * deep_ * line + chunk * wide_ * window_;
  for (int64_t k = 0; k < deep_; ++k, from += line)
    for (int64_t at = 0; at < window_; ++at) {
      float* to = blocked + row(o, chunk * wide_, at) + k * wide_;
      for (int64_t i = 0; i < wide_; ++i) to[i] = from[i * window_ + at];
    }
}

void Blocks::unpack(float* plain, const float* blocked, int64_t count, int64_t step, int64_t piece) const {
  auto sum = [&](float* to, const float* from, int64_t n) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
    for (int64_t p = 1; p < count; ++p)
      for (int64_t i = 0; i < n; ++i) to[i] += from[p * step + i];
  };
  if (form_ == Form::Any) {
    each(piece, [&](int64_t from, int64_t to) {
      if (to < 0) return;
      float v = blocked[from];
      for (int64_t p = 1; p < count; ++p) v += blocked[from + p * step];
      plain[to] = v;
    });
    return;
  }
  const int64_t o = piece / chunks_, chunk = piece % chunks_, line = inputs_ * window_;
  if (form_ == Form::Outputs) {
    float rows[kChunk * 64];
    const int64_t q0 = chunk * kChunk, n = std::min(kChunk, line - q0);
    for (int64_t q = 0; q < n; ++q)
      sum(rows + q * wide_, blocked + row(o, (q0 + q) / window_, (q0 + q) % window_), wide_);
    const int64_t e[2] = {wide_, n}, ds[2] = {line, 1}, ss[2] = {1, wide_};
    copy_box(plain + o * wide_ * line + q0, ds, rows, ss, e, 2, 4);
    return;
  }
  float* to = plain + o * deep_ * line + chunk * wide_ * window_;
  float part[64];
  for (int64_t k = 0; k < deep_; ++k, to += line)
    for (int64_t at = 0; at < window_; ++at) {
      sum(part, blocked + row(o, chunk * wide_, at) + k * wide_, wide_);
      for (int64_t i = 0; i < wide_; ++i) to[i * window_ + at] = part[i];
    }
}

}  // namespace ingot::cpu
