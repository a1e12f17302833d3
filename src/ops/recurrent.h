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

struct RecurrentCell;
struct RecurrentSteps {
  Tensor all, c;  // [T, N, H], and the last cell state
};
/// The steps of a layer as one op with a gradient of its own (ops/recurrent_steps.cpp). Operands
/// as in graph/ops.def, of one type.
RecurrentSteps recurrent_steps(const RecurrentCell& cell, const std::vector<Tensor>& operands,
                               bool reverse, const SourceLoc& loc);
/// What such an op and its gradient stand for.
std::vector<Tensor> decompose_recurrent(Op op, const OpSpec& call, const std::vector<Tensor>& in);

}  // namespace ingot
