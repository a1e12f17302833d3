// What the front-end functions ask about an open amp::Autocast.
#pragma once
#include "ingot/tensor.h"

namespace ingot {

/// Is one open on this thread?
bool autocasting();
/// The type it casts to.
DType autocast_type();
/// An operand of a matrix product: cast to the scope's type when one is open and the operand is a
/// float32 or 16-bit float.
Tensor lowered(const Tensor& x);
/// The type in which softmax, norms and losses answer for an input of type t: with a scope open
/// they stay in float32.
DType raised(DType t);

}  // namespace ingot
