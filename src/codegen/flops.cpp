#include "codegen/flops.h"

#include <algorithm>

namespace ingot {
namespace formula {
namespace {

const Dims& operand(const LibrarySpec& l, int k) {
  return l.operands[static_cast<size_t>(l.written + k)].shape;
}
const Dims& result(const LibrarySpec& l) { return l.operands[0].shape; }
double product(int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); }

double none(const LibrarySpec&) { return 0; }

double matmul(const LibrarySpec& l) {
  return 2.0 * product(result(l).numel(), operand(l, 0).back());
}

// Each element of y takes one output channel's weights.
double conv(const LibrarySpec& l) {
  const Dims& y = l.operands[l.op == Op::Conv ? 0 : l.op == Op::ConvGradInput ? 1 : 2].shape;
  const Dims& w = l.operands[l.op == Op::ConvGradWeight ? 0 : 2].shape;
  return 2.0 * product(y.numel(), w.numel()) / static_cast<double>(std::max<int64_t>(1, w[0]));
}

double products_of_scores(const LibrarySpec& l, double count) {
  const double keys = static_cast<double>(operand(l, 1)[2]);
  const bool all = l.attrs.as<AttentionAttrs>().mask == AttentionMask::None;
  return count * static_cast<double>(result(l).numel()) * keys * (all ? 1 : 0.5);
}
double attention(const LibrarySpec& l) { return products_of_scores(l, 4); }
double attention_grad(const LibrarySpec& l) { return products_of_scores(l, 10); }

// Each row of h with the whole weight, step by step.
double recurrent(const LibrarySpec& l) {
  return 2.0 * product(result(l)[0] * result(l)[1], operand(l, 1).numel());
}

}  // namespace
}  // namespace formula

double flops_of(const LibrarySpec& l) {
  static constexpr double (*formulas[])(const LibrarySpec&) = {
#define INGOT_OP(E, name, arity, results, kind, attrs, shape, gradient, flops, may_fail) \
  formula::flops,
#include "graph/ops.def"
#undef INGOT_OP
  };
  return formulas[static_cast<size_t>(l.op)](l);
}

}  // namespace ingot
