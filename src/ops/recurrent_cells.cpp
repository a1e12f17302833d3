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

// clang-format off
const RecurrentCell kCells[] = {
    // kind         ops                        kept  c      bias   product       formulas                                          idle
    {RnnKind::Lstm, Op::Lstm, Op::LstmGrad,    4,    true,  false, {0, 1, 2, 3}, lstm_cell::step,       lstm_cell::back,       {kShut, kOpen, 0, kShut}},
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
