// Recurrent layers. What an input contributes is one product for all times; what remains per time is a
// product with the state and elementwise work that fuses.
#include "ingot/nn/rnn.h"

#include <cmath>
#include <tuple>

#include "nn/layer_common.h"
#include "nn/module_state.h"

namespace ingot::nn {
namespace {

// One step from x (already multiplied by weight_ih, with its bias) and the state.
Tensor simple_step(const Tensor& x, const Tensor& h, const Tensor& w, const Tensor& b, bool relu_wanted) {
  const Tensor sum = x + linear(h, w, b);
  return relu_wanted ? relu(sum) : tanh(sum);
}

Tensor gru_step(const Tensor& x, const Tensor& h, const Tensor& w, const Tensor& b) {
  const std::vector<Tensor> in = x.chunk(3, -1), own = linear(h, w, b).chunk(3, -1);
  const Tensor reset = sigmoid(in[0] + own[0]), update = sigmoid(in[1] + own[1]),
               fresh = tanh(in[2] + reset * own[2]);
  return fresh + update * (h - fresh);
}

std::pair<Tensor, Tensor> lstm_step(const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w,
                                    const Tensor& b) {
  const std::vector<Tensor> g = (x + linear(h, w, b)).chunk(4, -1);
  const Tensor cell = sigmoid(g[1]) * c + sigmoid(g[0]) * tanh(g[2]);
  return {sigmoid(g[3]) * tanh(cell), cell};
}

Tensor made(const Dims& shape, int64_t hidden, const Options& o) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  return rand(shape, o) * (2 * bound) - bound;
}

Tensor state_or_zeros(const Tensor& given, const Dims& shape, const Tensor& like, const char* op) {
  if (!given.defined()) return zeros(shape, {like.dtype(), like.device()});
  if (!(given.shape() == shape))
    fail(ErrorKind::Shape, op, "the state must be " + ingot::to_string(shape) + ", not " + describe(given),
         user_loc(SourceLoc::current()));
  return given;
}

}  // namespace

struct RecurrentBase::Direction {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

RecurrentBase::RecurrentBase(Kind kind, const Settings& s, const Options& options, SourceLoc where)
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
  const int64_t gates = (kind == Kind::LSTM  ? 4
                         : kind == Kind::GRU ? 3
                                             : 1) *
                        s.hidden,
                out = s.proj ? s.proj : s.hidden;
  for (int64_t layer = 0; layer < s.layers; ++layer)
    for (int64_t way = 0; way < (s.both ? 2 : 1); ++way) {
      const std::string end = "_l" + std::to_string(layer) + (way ? "_reverse" : "");
      register_parameter("weight_ih" + end,
                         made({gates, layer == 0 ? s.input : out * (s.both ? 2 : 1)}, s.hidden, options),
                         loc);
      register_parameter("weight_hh" + end, made({gates, out}, s.hidden, options), loc);
      if (s.bias) register_parameter("bias_ih" + end, made({gates}, s.hidden, options), loc);
      if (s.bias) register_parameter("bias_hh" + end, made({gates}, s.hidden, options), loc);
      if (s.proj) register_parameter("weight_hr" + end, made({s.proj, s.hidden}, s.hidden, options), loc);
    }
}

RecurrentBase::Direction RecurrentBase::direction(int64_t layer, int64_t way) const {
  const size_t each = 2 + (s_.bias ? 2 : 0) + (s_.proj ? 1 : 0);
  const size_t at = each * static_cast<size_t>(layer * (s_.both ? 2 : 1) + way);
  Direction d{own(at), own(at + 1), {}, {}, {}};
  if (s_.bias) d.b_ih = own(at + 2), d.b_hh = own(at + 3);
  if (s_.proj) d.w_hr = own(at + each - 1);
  return d;
}

LSTMResult RecurrentBase::run(Tensor x, Tensor h0, Tensor c0) {
  SourceLoc loc = user_loc(SourceLoc::current());
  const std::string name = class_name(*this);
  const bool batched = x.dim() == 3;
  if ((x.dim() != 2 && !batched) || x.size(-1) != s_.input)
    fail(ErrorKind::Shape, name.c_str(),
         "wants [time, batch, " + std::to_string(s_.input) + "] (or batch first, or no batch), not " +
             describe(x),
         loc);
  if (!batched)
    x = x.unsqueeze(1);
  else if (s_.batch_first)
    x = x.transpose(0, 1);
  const int64_t ways = s_.both ? 2 : 1, time = x.size(0), batch = x.size(1),
                out = s_.proj ? s_.proj : s_.hidden;
  if (time < 1) fail(ErrorKind::Shape, name.c_str(), "the sequence is empty: " + describe(x), loc);
  const auto with_batch = [&](const Tensor& t) { return t.defined() && !batched ? t.unsqueeze(1) : t; };
  h0 = state_or_zeros(with_batch(h0), {s_.layers * ways, batch, out}, x, name.c_str());
  if (kind_ == Kind::LSTM)
    c0 = state_or_zeros(with_batch(c0), {s_.layers * ways, batch, s_.hidden}, x, name.c_str());
  std::vector<Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < s_.layers; ++layer) {
    std::vector<Tensor> sides;
    for (int64_t way = 0; way < ways; ++way) {
      const Direction d = direction(layer, way);
      const Tensor in = linear(x, d.w_ih, d.b_ih);
      Tensor h = h0.select(0, layer * ways + way),
             c = kind_ == Kind::LSTM ? c0.select(0, layer * ways + way) : Tensor();
      std::vector<Tensor> steps(static_cast<size_t>(time));
      for (int64_t i = 0; i < time; ++i) {
        const int64_t t = way ? time - 1 - i : i;
        if (kind_ == Kind::LSTM) {
          std::tie(h, c) = lstm_step(in.select(0, t), h, c, d.w_hh, d.b_hh);
          if (s_.proj) h = linear(h, d.w_hr);
        } else {
          h = kind_ == Kind::GRU ? gru_step(in.select(0, t), h, d.w_hh, d.b_hh)
                                 : simple_step(in.select(0, t), h, d.w_hh, d.b_hh, kind_ == Kind::Relu);
        }
        steps[static_cast<size_t>(t)] = h;
      }
      sides.push_back(stack(steps, 0));
      last_h.push_back(h);
      if (c.defined()) last_c.push_back(c);
    }
    x = ways == 2 ? cat(sides, 2) : sides[0];
    if (s_.dropout > 0 && layer + 1 < s_.layers) x = dropout(x, s_.dropout, is_training());
  }
  const auto without_batch = [&](const Tensor& t) { return batched ? t : t.squeeze(1); };
  LSTMResult r{
      batched && s_.batch_first ? x.transpose(0, 1) : without_batch(x), without_batch(stack(last_h, 0)), {}};
  if (!last_c.empty()) r.c_n = without_batch(stack(last_c, 0));
  return r;
}

Tensor RecurrentBase::forward(Tensor x) { return run(std::move(x), {}, {}).output; }

std::string RecurrentBase::description() const {
  return class_name(*this) + "(" + std::to_string(s_.input) + ", " + std::to_string(s_.hidden) +
         ", num_layers=" + std::to_string(s_.layers) + (s_.batch_first ? ", batch_first=True" : "") +
         (s_.both ? ", bidirectional=True" : "") + ")";
}

static bool wants_relu(const std::string& word, const SourceLoc& loc) {
  if (word != "tanh" && word != "relu")
    fail(ErrorKind::Value, "RNN", "nonlinearity is \"" + word + "\"", user_loc(loc),
         "use \"tanh\" or \"relu\"");
  return word == "relu";
}

RNN::RNN(int64_t input_size, int64_t hidden_size, const RNNOptions& o, SourceLoc loc)
    : RecurrentBase(wants_relu(o.nonlinearity, loc) ? Kind::Relu : Kind::Tanh,
                    settings(input_size, hidden_size, o), where_of(o), loc) {}
LSTM::LSTM(int64_t input_size, int64_t hidden_size, const LSTMOptions& o, SourceLoc loc)
    : RecurrentBase(Kind::LSTM, settings(input_size, hidden_size, o), where_of(o), loc) {}
GRU::GRU(int64_t input_size, int64_t hidden_size, const GRUOptions& o, SourceLoc loc)
    : RecurrentBase(Kind::GRU, settings(input_size, hidden_size, o), where_of(o), loc) {}

RNNResult RNN::operator()(Tensor x, Tensor h, SourceLoc loc) {
  detail::Call call(*this, loc);
  LSTMResult r = run(call.enter(std::move(x)), std::move(h), {});
  return {call.leave(r.output), call.leave(r.h_n)};
}
RNNResult GRU::operator()(Tensor x, Tensor h, SourceLoc loc) {
  detail::Call call(*this, loc);
  LSTMResult r = run(call.enter(std::move(x)), std::move(h), {});
  return {call.leave(r.output), call.leave(r.h_n)};
}
LSTMResult LSTM::operator()(Tensor x, Tensor h, Tensor c, SourceLoc loc) {
  detail::Call call(*this, loc);
  LSTMResult r = run(call.enter(std::move(x)), std::move(h), std::move(c));
  return {call.leave(r.output), call.leave(r.h_n), call.leave(r.c_n)};
}

// ---- Cells

static void make_cell_parameters(Module& m, int64_t gates, int64_t input, int64_t hidden,
                                 const CellOptions& o, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_size(input, "input_size", "cell", loc);
  check_size(hidden, "hidden_size", "cell", loc);
  const Options options = where_of(o);
  m.register_parameter("weight_ih", made({gates * hidden, input}, hidden, options), loc);
  m.register_parameter("weight_hh", made({gates * hidden, hidden}, hidden, options), loc);
  if (o.bias) m.register_parameter("bias_ih", made({gates * hidden}, hidden, options), loc);
  if (o.bias) m.register_parameter("bias_hh", made({gates * hidden}, hidden, options), loc);
}

RNNCell::RNNCell(int64_t input, int64_t hidden, const CellOptions& o, SourceLoc loc) : bias_(o.bias) {
  make_cell_parameters(*this, 1, input, hidden, o, loc);
}
GRUCell::GRUCell(int64_t input, int64_t hidden, const CellOptions& o, SourceLoc loc) : bias_(o.bias) {
  make_cell_parameters(*this, 3, input, hidden, o, loc);
}
LSTMCell::LSTMCell(int64_t input, int64_t hidden, const CellOptions& o, SourceLoc loc) : bias_(o.bias) {
  make_cell_parameters(*this, 4, input, hidden, o, loc);
}

static Tensor cell_state(const Tensor& given, const Tensor& x, const Tensor& w_hh) {
  Dims shape = x.shape();
  shape[shape.size() - 1] = w_hh.size(1);
  return state_or_zeros(given, shape, x, "cell");
}

Tensor RNNCell::operator()(Tensor x, Tensor h, SourceLoc loc) {
  detail::Call call(*this, loc);
  x = call.enter(std::move(x));
  return call.leave(simple_step(linear(x, own(0), bias_ ? own(2) : Tensor()), cell_state(h, x, own(1)),
                                own(1), bias_ ? own(3) : Tensor(), false));
}
Tensor GRUCell::operator()(Tensor x, Tensor h, SourceLoc loc) {
  detail::Call call(*this, loc);
  x = call.enter(std::move(x));
  return call.leave(gru_step(linear(x, own(0), bias_ ? own(2) : Tensor()), cell_state(h, x, own(1)), own(1),
                             bias_ ? own(3) : Tensor()));
}
std::pair<Tensor, Tensor> LSTMCell::operator()(Tensor x, Tensor h, Tensor c, SourceLoc loc) {
  detail::Call call(*this, loc);
  x = call.enter(std::move(x));
  auto [h1, c1] = lstm_step(linear(x, own(0), bias_ ? own(2) : Tensor()), cell_state(h, x, own(1)),
                            cell_state(c, x, own(1)), own(1), bias_ ? own(3) : Tensor());
  return {call.leave(h1), call.leave(c1)};
}

}  // namespace ingot::nn
