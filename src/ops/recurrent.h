// What recurrent layers, cells and their gradients share.
#pragma once
#include "ops/common.h"

namespace ingot {

enum class RnnKind { Lstm, Gru, Tanh, Relu };

/// How many times the hidden size the rows of the weights are.
inline int rnn_gates(RnnKind kind) {
  return kind == RnnKind::Lstm ? 4 : kind == RnnKind::Gru ? 3 : 1;
}

struct RnnState {
  Tensor h, c;  // c for lstm
};

/// The next state. z is the input's part [.., G H], its bias included; the rest is the state's.
RnnState rnn_step(RnnKind kind, const Tensor& z, const RnnState& state, const Tensor& weight_hh,
                  const Tensor& bias_hh);

/// [steps, N, ...] with one step written.
Tensor put_step(const Tensor& all, const Tensor& value, int64_t step, const SourceLoc& loc);

struct LstmSteps {
  Tensor all, c;  // [T, N, H], and the last cell state
};
/// The steps of an LSTM layer with a gradient of its own (ops/recurrent_steps.cpp). z [T, N, 4 H]:
/// the input's part, both biases included. All are of one type.
LstmSteps lstm_steps(const Tensor& z, const Tensor& h0, const Tensor& c0, const Tensor& weight,
                     bool backwards, const SourceLoc& loc);

}  // namespace ingot
