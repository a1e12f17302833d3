// Gradients of slices. One slice's gradient is its value padded with zeros; of the T steps of a
// loop over time there are T of those, and adding them up would be work in T for each element. Many
// are put side by side instead.
#pragma once
#include <vector>

#include "ingot/tensor.h"

namespace ingot::autograd {

/// Is it a value padded with zeros?
bool is_piece(const Tensor& grad);

struct Pieces {
  Tensor rest;  // the sum of what is no piece; may be undefined

  void add(const Tensor& piece) { pieces_.push_back(piece); }
  /// So many that they are worth putting together.
  bool many() const { return pieces_.size() > 8; }
  /// All of them and the rest as one gradient.
  Tensor assembled() const;

 private:
  std::vector<Tensor> pieces_;
};

/// x[start, start + size) along a dimension, as a gradient's op.
Tensor slice_along(const Tensor& x, int axis, int64_t start, int64_t size);

}  // namespace ingot::autograd
