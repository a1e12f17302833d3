// The cells of recurrent layers: a step's formulas and their gradient, in terms of ops. A kind
// whose steps are one op (graph/ops.def) has a row here; what its call decomposes into, its
// gradient and the second derivative all come from the row.
#pragma once
#include <vector>

#include "ops/recurrent.h"

namespace ingot {

/// What a step reads. The parts of z and of the product h W^T by gate [N, H], in the type that
/// cells compute in.
struct CellInputs {
  std::vector<Tensor> z, product;
  Tensor h, c, bias;
};
struct CellResults {
  Tensor h, c;
  std::vector<Tensor> kept;  // what the gradient reads, [N, H] each
};

/// What a step's gradient reads, in the type that cells compute in.
struct CellGradInputs {
  std::vector<Tensor> kept;
  Tensor h, h_before;  // the step's result, and its state before it
  Tensor c, c_before;
  Tensor dh, dc;  // from above and from the next step
};
struct CellGradients {
  std::vector<Tensor> kept;  // in the place of what was kept: of z's parts first
  Tensor dh;                 // of the state before it, beside what the product passes on; or none
  Tensor dc;                 // of the cell state before it
};

struct RecurrentCell {
  RnnKind kind;
  Op forward, backward;
  int kept;  // values kept per unit; 1 where the result itself is what the gradient reads
  bool has_c, has_bias;
  /// Of which kept values' gradients that of the product h W^T consists, gate by gate.
  std::vector<int> product;
  CellResults (*step)(const CellInputs& in);
  CellGradients (*back)(const CellGradInputs& in);
  /// What z's gates must be for a step that changes no state (a sequence that has ended).
  std::vector<double> idle;

  int gates() const { return static_cast<int>(product.size()); }
  bool keeps_gates() const { return kept > 1; }
};

/// nullptr: the steps of this kind are recorded one by one.
const RecurrentCell* find_cell(RnnKind kind);
const RecurrentCell& cell_of(Op op, const RecurrentAttrs& attrs);

}  // namespace ingot
