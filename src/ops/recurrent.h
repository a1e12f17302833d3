// One step of a recurrent network, for the functions over sequences and for the cells.
#pragma once
#include "ingot/tensor.h"

namespace ingot {

enum class RnnKind { Lstm, Gru, Tanh, Relu };

/// How many times the hidden size the rows of the weights are.
inline int rnn_gates(RnnKind kind) { return kind == RnnKind::Lstm ? 4 : kind == RnnKind::Gru ? 3 : 1; }

struct RnnState {
  Tensor h, c;  // c for lstm
};

/// The next state. z is the input's part [.., G H], its bias included; the rest is the state's.
RnnState rnn_step(RnnKind kind, const Tensor& z, const RnnState& state, const Tensor& weight_hh,
                  const Tensor& bias_hh);

}  // namespace ingot
