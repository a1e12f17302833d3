// See dnnl_weights.h. Dense float32 weights move by blocks of channels: for each output
// channel, the window elements of the input channels are one row of memory, and such rows
// are transposed in registers.
#include "backend/cpu/conv/dnnl_weights.h"

#include <algorithm>
#include <iterator>

#include "backend/cpu/support/move.h"

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
  if (inner == 0 && (around == -1 || around == 1))
    form_ = Form::Outputs;
  else if (inner == 1 && around == 0)
    form_ = Form::Inputs;
  else
    return;
  chunks_ = inputs_ / unit_[1];
  for (int64_t i = 0; i < (form_ == Form::Outputs ? unit_[1] : 1); ++i)
    for (int64_t at = 0; at < window_; ++at) rows_.push_back(row(i, at));
}

int64_t Blocks::row(int64_t i, int64_t at) const {
  int64_t p = i * wide_;
  for (int d = b_.rank - 1; d >= 2; --d) {
    p += at % b_.size[d] * b_.stride[d];
    at /= b_.size[d];
  }
  return p;
}

Blocks::Place Blocks::place(const float* plain, int64_t piece) const {
  const int64_t o = piece / chunks_, chunk = piece % chunks_, run = unit_[1] * window_;
  const Place p{o * unit_[0] * line() + chunk * run, o * b_.stride[0] + chunk * b_.stride[1]};
  // The rows of the next piece: distant, and too short for the hardware prefetcher.
  if (chunk + 1 < chunks_)
    for (int64_t r = 0; r < unit_[0]; ++r)
      for (int64_t c = 0; c < run; c += 16)
        __builtin_prefetch(plain + p.plain + r * line() + run + c, 0, 2);
  return p;
}

void Blocks::pack(float* blocked, const float* plain, int64_t piece) const {
  if (form_ == Form::Any) return pack_unit(blocked, plain, piece);
  const Place p = place(plain, piece);
  const int64_t n = std::ssize(rows_);
  plain += p.plain, blocked += p.blocked;
  if (form_ == Form::Outputs)
    return transpose_to_rows(blocked, rows_.data(), plain, line(), n, wide_);
  for (int64_t k = 0; k < deep_; ++k)
    transpose_to_rows(blocked + k * wide_, rows_.data(), plain + k * line(), window_, n, wide_);
}

void Blocks::unpack(float* plain, const float* blocked, int64_t count, int64_t step,
                    int64_t piece) const {
  if (form_ == Form::Any) {
    each(piece, [&](int64_t from, int64_t to) {
      if (to < 0) return;
      float v = blocked[from];
      for (int64_t p = 1; p < count; ++p) v += blocked[from + p * step];
      plain[to] = v;
    });
    return;
  }
  const Place p = place(plain, piece);
  const int64_t n = std::ssize(rows_);
  plain += p.plain, blocked += p.blocked;
  if (form_ == Form::Outputs)
    return transpose_from_rows(plain, line(), blocked, rows_.data(), n, wide_, count, step);
  for (int64_t k = 0; k < deep_; ++k)
    transpose_from_rows(plain + k * line(), window_, blocked + k * wide_, rows_.data(), n, wide_,
                        count, step);
}

}  // namespace ingot::cpu
