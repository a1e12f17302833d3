// matmul: PyTorch's cases brought to the one primitive, [batch..., M, K] x [batch..., K, N] with
// equal batches. A batch of matrices times one matrix is one product of M * batch rows.
#include "ops/autocast.h"
#include "ops/common.h"

namespace ingot {
namespace {

Dims batch_of(const Node* n) { return Dims(n->shape.begin(), n->rank() - 2); }

NodeRef with_batch(Node* n, const Dims& batch, const SourceLoc& loc) {
  Dims s = batch;
  s.push_back(n->shape[n->rank() - 2]);
  s.push_back(n->shape[n->rank() - 1]);
  return expand_to(n, s, loc);
}

void check(const Node* a, const Node* b, const SourceLoc& loc) {
  if (a->rank() == 0 || b->rank() == 0)
    fail(ErrorKind::Shape, "matmul",
         "needs vectors or matrices, not " + describe(*a) + " and " + describe(*b), loc,
         "multiply by a 0-d tensor with *");
  if (a->device != b->device)
    fail(ErrorKind::Device, "matmul",
         "operands are on different devices: " + describe(*a) + " and " + describe(*b), loc,
         "move one of them with .to(\"" + (a->device.is_cpu() ? b : a)->device.name() + "\")");
  if (a->dtype != b->dtype)
    fail(ErrorKind::DType, "matmul",
         "operands differ in type: " + describe(*a) + " and " + describe(*b), loc,
         "convert one of them: .to(" + std::string(name_of(promote(a->dtype, b->dtype))) + ")");
  int64_t k = a->shape.back(), rows = b->shape[std::max(0, b->rank() - 2)];
  if (k != rows)
    fail(ErrorKind::Shape, "matmul",
         "inner sizes differ: " + describe(*a) + " ends in " + std::to_string(k) + ", but " +
             describe(*b) + " has " + std::to_string(rows) + " rows",
         loc,
         b->rank() >= 2 && b->shape.back() == k ? "transpose the second: b.transpose(-1, -2)"
         : a->rank() >= 2 && a->shape[a->rank() - 2] == rows
             ? "transpose the first: a.transpose(-1, -2)"
             : "");
}

}  // namespace

Tensor matmul(const Tensor& ta, const Tensor& tb, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (autocasting()) {
    const Tensor la = lowered(ta), lb = lowered(tb);
    if (la.cell() != ta.cell() || lb.cell() != tb.cell()) return matmul(la, lb, loc);
  }
  NodeRef a = node_of(ta, "matmul", loc), b = node_of(tb, "matmul", loc);
  check(a.get(), b.get(), loc);
  bool a_vector = a->rank() == 1, b_vector = b->rank() == 1;
  if (a_vector) a = reshape_to(a.get(), {1, a->shape[0]}, loc);
  if (b_vector) b = reshape_to(b.get(), {b->shape[0], 1}, loc);
  Dims batch;
  if (!broadcast_shapes(batch_of(a.get()), batch_of(b.get()), batch))
    fail(ErrorKind::Shape, "matmul",
         "batch dims do not broadcast: " + describe(ta) + " and " + describe(tb), loc,
         "all dims but the last two must be equal or 1");
  Dims out = batch;
  if (!a_vector) out.push_back(a->shape[a->rank() - 2]);
  if (!b_vector) out.push_back(b->shape.back());
  if (b->rank() == 2 && a->rank() > 2) {
    // One matrix for all batches: fold them into the rows.
    int64_t k = a->shape.back();
    int64_t rows = 1;
    for (int i = 0; i + 1 < a->rank(); ++i) rows *= a->shape[i];
    a = reshape_to(a.get(), {rows, k}, loc);
  } else if (!batch.empty()) {
    a = with_batch(a.get(), batch, loc);
    b = with_batch(b.get(), batch, loc);
  }
  NodeRef r = record2(Op::Matmul, a.get(), b.get(), loc);
  return tensor_of(reshape_to(r.get(), out, loc));
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NodeRef n = node_of(x, "linear", loc), w = node_of(weight, "linear", loc);
  if (w->rank() != 2)
    fail(ErrorKind::Shape, "linear",
         "the weight must be a matrix [out, in], not " + describe(weight), loc);
  if (n->rank() == 0 || n->shape.back() != w->shape[1]) {
    int64_t features = 1;  // of one sample
    for (int i = 1; i < n->rank(); ++i) features *= n->shape[i];
    fail(ErrorKind::Shape, "linear",
         "the input's last size must be the weight's second: " + describe(x) + " against weight " +
             describe(weight),
         loc,
         n->rank() > 2 && features == w->shape[1]
             ? "flatten the input first: x.flatten(1)"
             : "the layer expects inputs of " + std::to_string(w->shape[1]) + " features");
  }
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != w->shape[0]))
    fail(ErrorKind::Shape, "linear",
         "the bias must be [" + std::to_string(w->shape[0]) + "] for weight " + describe(weight) +
             ", not " + describe(bias),
         loc);
  // The bias is recorded before the product, so that the two can be one call; the weight is
  // converted in its own layout.
  Tensor b = bias.defined() ? lowered(bias) : bias;
  Tensor y = matmul(x, lowered(weight).t(), loc);
  return b.defined() ? y + b : y;
}

}  // namespace ingot
