// Recurrent layers: their parameters; the functions lstm, gru and rnn do the work.
#include "ingot/nn/rnn.h"

#include <cmath>

#include "ingot/rnn.h"
#include "nn/layer_common.h"
#include "nn/module_state.h"
#include "ops/recurrent.h"

namespace ingot::nn {
namespace {

Tensor made(const Dims& shape, int64_t hidden, const Options& o) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  return rand(shape, o) * (2 * bound) - bound;
}

RnnKind kind_of(const std::string& word, const char* op, const SourceLoc& loc) {
  if (word != "tanh" && word != "relu")
    fail(ErrorKind::Value, op, "nonlinearity is \"" + word + "\"", user_loc(loc),
         "use \"tanh\" or \"relu\"");
  return word == "relu" ? RnnKind::Relu : RnnKind::Tanh;
}

}  // namespace

RecurrentBase::RecurrentBase(RnnKind kind, const Settings& s, const Options& options,
                             SourceLoc where)
    : kind_(kind), s_(s) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  const char* op = "recurrent layer";
  check_size(s.input, "input_size", op, loc);
  check_size(s.hidden, "hidden_size", op, loc);
  check_size(s.layers, "num_layers", op, loc);
  if (!(s.dropout >= 0 && s.dropout <= 1))
    fail(ErrorKind::Value, op, "dropout is a probability, not " + text_of(s.dropout), loc);
  if (s.proj < 0 || s.proj >= s.hidden)
    fail(ErrorKind::Value, op, "proj_size must be smaller than hidden_size", loc);
  const int64_t gates = rnn_gates(kind) * s.hidden, out = s.proj ? s.proj : s.hidden;
  for (int64_t layer = 0; layer < s.layers; ++layer)
    for (int64_t way = 0; way < (s.both ? 2 : 1); ++way) {
      const std::string end = "_l" + std::to_string(layer) + (way ? "_reverse" : "");
      register_parameter(
          "weight_ih" + end,
          made({gates, layer == 0 ? s.input : out * (s.both ? 2 : 1)}, s.hidden, options), loc);
      register_parameter("weight_hh" + end, made({gates, out}, s.hidden, options), loc);
      if (s.bias) register_parameter("bias_ih" + end, made({gates}, s.hidden, options), loc);
      if (s.bias) register_parameter("bias_hh" + end, made({gates}, s.hidden, options), loc);
      if (s.proj)
        register_parameter("weight_hr" + end, made({s.proj, s.hidden}, s.hidden, options), loc);
    }
}

LSTMResult RecurrentBase::run(const Tensor& x, const Tensor& h0, const Tensor& c0) {
  if ((x.dim() != 2 && x.dim() != 3) || x.size(-1) != s_.input)
    fail(ErrorKind::Shape, class_name(*this).c_str(),
         "expects [time, batch, " + std::to_string(s_.input) +
             "] (or batch first, or no batch), not " + describe(x),
         user_loc(SourceLoc::current()));
  std::vector<Tensor> weights;
  for (size_t i = 0; i < own_count(); ++i) weights.push_back(own(i));
  const RnnOptions o{.num_layers = s_.layers,
                     .dropout = s_.dropout,
                     .training = is_training(),
                     .bidirectional = s_.both,
                     .batch_first = s_.batch_first,
                     .nonlinearity = kind_ == RnnKind::Relu ? "relu" : "tanh"};
  RnnResult r = kind_ == RnnKind::Lstm  ? lstm(x, h0, c0, weights, s_.bias, o)
                : kind_ == RnnKind::Gru ? gru(x, h0, weights, s_.bias, o)
                                        : rnn(x, h0, weights, s_.bias, o);
  return {r.output, r.h, r.c};
}

Tensor RecurrentBase::forward(Tensor x) { return run(x, {}, {}).output; }

std::string RecurrentBase::description() const {
  return class_name(*this) + "(" + std::to_string(s_.input) + ", " + std::to_string(s_.hidden) +
         ", num_layers=" + std::to_string(s_.layers) +
         (s_.batch_first ? ", batch_first=True" : "") + (s_.both ? ", bidirectional=True" : "") +
         ")";
}

RNN::RNN(int64_t input_size, int64_t hidden_size, const RNNOptions& o, SourceLoc loc)
    : RecurrentBase(kind_of(o.nonlinearity, "RNN", loc), settings(input_size, hidden_size, o),
                    where_of(o), loc) {}
LSTM::LSTM(int64_t input_size, int64_t hidden_size, const LSTMOptions& o, SourceLoc loc)
    : RecurrentBase(RnnKind::Lstm, settings(input_size, hidden_size, o), where_of(o), loc) {}
GRU::GRU(int64_t input_size, int64_t hidden_size, const GRUOptions& o, SourceLoc loc)
    : RecurrentBase(RnnKind::Gru, settings(input_size, hidden_size, o), where_of(o), loc) {}

RNNResult RNN::operator()(Tensor x, Tensor h, SourceLoc loc) {
  detail::Call call(*this, loc);
  LSTMResult r = run(call.enter(std::move(x)), h, {});
  return {call.leave(r.output), call.leave(r.h_n)};
}
RNNResult GRU::operator()(Tensor x, Tensor h, SourceLoc loc) {
  detail::Call call(*this, loc);
  LSTMResult r = run(call.enter(std::move(x)), h, {});
  return {call.leave(r.output), call.leave(r.h_n)};
}
LSTMResult LSTM::operator()(Tensor x, Tensor h, Tensor c, SourceLoc loc) {
  detail::Call call(*this, loc);
  LSTMResult r = run(call.enter(std::move(x)), h, c);
  return {call.leave(r.output), call.leave(r.h_n), call.leave(r.c_n)};
}

// ---- Cells

CellBase::CellBase(RnnKind kind, int64_t input, int64_t hidden, bool bias, const Options& options,
                   SourceLoc where)
    : kind_(kind), bias_(bias) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_size(input, "input_size", "cell", loc);
  check_size(hidden, "hidden_size", "cell", loc);
  const int64_t rows = rnn_gates(kind) * hidden;
  register_parameter("weight_ih", made({rows, input}, hidden, options), loc);
  register_parameter("weight_hh", made({rows, hidden}, hidden, options), loc);
  if (!bias) return;
  register_parameter("bias_ih", made({rows}, hidden, options), loc);
  register_parameter("bias_hh", made({rows}, hidden, options), loc);
}

std::pair<Tensor, Tensor> CellBase::step(Tensor x, const Tensor& h, const Tensor& c,
                                         const SourceLoc& loc) {
  detail::Call call(*this, loc);
  x = call.enter(std::move(x));
  const Tensor &w_ih = own(0), &w_hh = own(1);
  Dims shape = x.shape();
  if ((x.dim() != 1 && x.dim() != 2) || x.size(-1) != w_ih.size(1))
    fail(ErrorKind::Shape, class_name(*this).c_str(),
         "expects [batch, " + std::to_string(w_ih.size(1)) + "] (or no batch), not " + describe(x),
         user_loc(loc));
  shape[shape.size() - 1] = w_hh.size(1);
  const auto state = [&](const Tensor& given) {
    if (!given.defined()) return zeros(shape, {x.dtype(), x.device()});
    if (!(given.shape() == shape))
      fail(ErrorKind::Shape, class_name(*this).c_str(),
           "the state must be " + ingot::to_string(shape) + ", not " + describe(given),
           user_loc(loc));
    return given;
  };
  RnnState s{state(h), kind_ == RnnKind::Lstm ? state(c) : Tensor()};
  s = rnn_step(kind_, linear(x, w_ih, bias_ ? own(2) : Tensor()), s, w_hh,
               bias_ ? own(3) : Tensor());
  return {call.leave(s.h), s.c.defined() ? call.leave(s.c) : s.c};
}

RNNCell::RNNCell(int64_t input, int64_t hidden, const RNNCellOptions& o, SourceLoc loc)
    : CellBase(kind_of(o.nonlinearity, "RNNCell", loc), input, hidden, o.bias, where_of(o), loc) {}
GRUCell::GRUCell(int64_t input, int64_t hidden, const CellOptions& o, SourceLoc loc)
    : CellBase(RnnKind::Gru, input, hidden, o.bias, where_of(o), loc) {}
LSTMCell::LSTMCell(int64_t input, int64_t hidden, const CellOptions& o, SourceLoc loc)
    : CellBase(RnnKind::Lstm, input, hidden, o.bias, where_of(o), loc) {}

Tensor RNNCell::operator()(Tensor x, Tensor h, SourceLoc loc) {
  return step(std::move(x), h, {}, loc).first;
}
Tensor GRUCell::operator()(Tensor x, Tensor h, SourceLoc loc) {
  return step(std::move(x), h, {}, loc).first;
}
std::pair<Tensor, Tensor> LSTMCell::operator()(Tensor x, Tensor h, Tensor c, SourceLoc loc) {
  return step(std::move(x), h, c, loc);
}

}  // namespace ingot::nn
