// Recurrent networks as functions; nn/rnn.h has the layers. What every function checks is said at
// the top of ops.h.
#pragma once
#include <string_view>
#include <vector>

#include "ingot/tensor.h"

namespace ingot {

struct RnnOptions {
  int64_t num_layers = 1;
  double dropout = 0;  ///< on each layer's output but the last's, when training
  bool training = true;
  bool bidirectional = false;
  bool batch_first = false;        ///< input and output [N, T, ..] instead of [T, N, ..]
  std::vector<int64_t> lengths{};  ///< of each sequence; steps past a sequence's end leave its
                                   ///< state and give zeros
  std::string_view nonlinearity = "tanh";  ///< rnn: or "relu"
};
struct RnnResult {
  Tensor output;  ///< [T, N, H] (2 H when bidirectional), or [N, T, ..]
  Tensor h, c;    ///< [layers * directions, N, H]; c for lstm
};
/// input [T, N, I] (or [T, I] without a batch); h0, c0 [layers * directions, N, H] or undefined for
/// zeros. weights: for each layer and direction weight_ih [G H, I], weight_hh [G H, H] and,
/// with_bias, bias_ih and bias_hh [G H]; G is 4 for lstm (input, forget, cell, output), 3 for gru
/// (reset, update, new) and 1 for rnn. lstm with a fifth weight each, weight_hr [P, H], projects
/// its outputs to P; h0 and weight_hh have P columns then. Error(Shape), Error(Value) where these
/// do not fit.
RnnResult lstm(const Tensor& input, const Tensor& h0, const Tensor& c0,
               const std::vector<Tensor>& weights, bool with_bias = true,
               const RnnOptions& options = {}, INGOT_LOC);
RnnResult gru(const Tensor& input, const Tensor& h0, const std::vector<Tensor>& weights,
              bool with_bias = true, const RnnOptions& options = {}, INGOT_LOC);
RnnResult rnn(const Tensor& input, const Tensor& h0, const std::vector<Tensor>& weights,
              bool with_bias = true, const RnnOptions& options = {}, INGOT_LOC);

}  // namespace ingot
