// See recurrent_cells.h.
#include "ops/recurrent_cells.h"

#include "ingot/ops.h"

namespace ingot {
namespace {

// A sigmoid of this is 0 or 1, in every type.
constexpr double kShut = -3e4, kOpen = 3e4;

namespace lstm_cell {

enum { kIn, kForget, kFresh, kOut };

CellResults step(const CellInputs& x) {
  auto sum = [&](size_t gate) { return x.z[gate] + x.product[gate]; };
  const Tensor in = sigmoid(sum(kIn)), forget = sigmoid(sum(kForget)), fresh = tanh(sum(kFresh)),
               out = sigmoid(sum(kOut));
  const Tensor c = forget * x.c + in * fresh;
  return {out * tanh(c), c, {in, forget, fresh, out}};
}

CellGradients back(const CellGradInputs& x) {
  const Tensor &in = x.kept[kIn], &forget = x.kept[kForget], &fresh = x.kept[kFresh],
               &out = x.kept[kOut];
  const Tensor t = tanh(x.c), dc = x.dc + x.dh * out * (1.0 - t * t);
  return {{dc * fresh * in * (1.0 - in), dc * x.c_before * forget * (1.0 - forget),
           dc * in * (1.0 - fresh * fresh), x.dh * t * out * (1.0 - out)},
          {},
          dc * forget};
}

}  // namespace lstm_cell

namespace gru_cell {

enum { kReset, kUpdate, kFresh, kState };

// What is kept fourth is what the reset gate multiplies.
CellResults step(const CellInputs& x) {
  const Tensor reset = sigmoid(x.z[kReset] + x.product[kReset]),
               update = sigmoid(x.z[kUpdate] + x.product[kUpdate]);
  const Tensor state = x.product[kFresh] + x.bias, fresh = tanh(x.z[kFresh] + reset * state);
  return {(1.0 - update) * fresh + update * x.h, {}, {reset, update, fresh, state}};
}

CellGradients back(const CellGradInputs& x) {
  const Tensor &reset = x.kept[kReset], &update = x.kept[kUpdate], &fresh = x.kept[kFresh],
               &state = x.kept[kState];
  const Tensor d_fresh = x.dh * (1.0 - update) * (1.0 - fresh * fresh), d_state = d_fresh * reset;
  return {{d_fresh * state * reset * (1.0 - reset),
           x.dh * (x.h_before - fresh) * update * (1.0 - update), d_fresh, d_state},
          x.dh * update,
          {}};
}

}  // namespace gru_cell

namespace rnn_cell {

template <bool kRelu>
CellResults step(const CellInputs& x) {
  const Tensor sum = x.z[0] + x.product[0];
  return {kRelu ? relu(sum) : tanh(sum), {}, {}};
}

template <bool kRelu>
CellGradients back(const CellGradInputs& x) {
  const Tensor& h = x.kept[0];
  return {{kRelu ? where(h > 0, x.dh, 0.0) : x.dh * (1.0 - h * h)}, {}, {}};
}

}  // namespace rnn_cell

// clang-format off
const RecurrentCell kCells[] = {
    // kind         ops                        kept  c      bias   product       formulas                                          idle
    {RnnKind::Lstm, Op::Lstm, Op::LstmGrad,    4,    true,  false, {0, 1, 2, 3}, lstm_cell::step,       lstm_cell::back,       {kShut, kOpen, 0, kShut}},
    {RnnKind::Gru,  Op::Gru,  Op::GruGrad,     4,    false, true,  {0, 1, 3},    gru_cell::step,        gru_cell::back,        {0, kOpen, 0}},
    {RnnKind::Tanh, Op::Rnn,  Op::RnnGrad,     1,    false, false, {0},          rnn_cell::step<false>, rnn_cell::back<false>, {0}},
    {RnnKind::Relu, Op::Rnn,  Op::RnnGrad,     1,    false, false, {0},          rnn_cell::step<true>,  rnn_cell::back<true>,  {0}},
};
// clang-format on

}  // namespace

const RecurrentCell* find_cell(RnnKind kind) {
  for (const RecurrentCell& c : kCells)
    if (c.kind == kind) return &c;
  return nullptr;
}

const RecurrentCell& cell_of(Op op, const RecurrentAttrs& attrs) {
  for (const RecurrentCell& c : kCells)
    if ((c.forward == op || c.backward == op) && (c.kind == RnnKind::Relu) == attrs.relu) return c;
  throw Error(ErrorKind::Internal, info(op).name, "is no recurrent op");
}

}  // namespace ingot
