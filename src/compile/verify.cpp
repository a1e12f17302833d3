// What holds of every graph, whichever rules were applied to it.
#include "compile/ir.h"

namespace ingot {
namespace {

struct Verifier {
  const Graph& g;

  [[noreturn]] void fail(size_t v, const std::string& what) const {
    throw Error(ErrorKind::Internal, "verify",
                "value " + std::to_string(v) + " (" + info(g.vals[v].op).name + ") " + what);
  }

  const Val& in(const Val& v, int k) const { return g.vals[static_cast<size_t>(v.in[k])]; }

  /// Operands that epilogues read.
  static int extra(Epilogues e) {
    int n = 0;
    for (Epilogue one :
         {Epilogue::Bias, Epilogue::Residual, Epilogue::GeluTanhGrad, Epilogue::ReluGrad})
      n += e.has(one);
    return n;
  }

  void operands(size_t i) const {
    const Val& v = g.vals[i];
    for (int k = 0; k < v.n_in; ++k)
      if (v.in[k] < 0 || v.in[k] >= static_cast<int>(i)) fail(i, "uses a later value");
    if (v.n_in == 0 || v.op == Op::Leaf) return;  // dropped
    const int arity = info(v.op).arity;
    if (arity != OpInfo::any && v.n_in != arity + extra(v.epilogues))
      fail(i, "has " + std::to_string(v.n_in) + " operands");
    if (!v.epilogues.empty() && v.op != Op::Matmul && v.op != Op::Conv)
      fail(i, "has epilogues, and is no product or convolution");
  }

  void shapes(size_t i) const {
    const Val& v = g.vals[i];
    if (v.n_in == 0) return;
    if (v.op == Op::Reshape && in(v, 0).numel() != v.numel())
      fail(i, "changes the number of elements");
    if (v.view() && in(v, 0).dtype != v.dtype) fail(i, "changes the type");
    if (v.op == Op::Permute && v.attrs.as<PermuteAttrs>().order.size() != v.shape.size())
      fail(i, "permutes another number of dims");
    if (v.op == Op::Result && in(v, 0).results() < 2 && !in(v, 0).joined())
      fail(i, "is a further result of a call that has one");
    if (!v.stride.empty() && v.stride.size() != v.shape.size())
      fail(i, "has another number of strides than dims");
    if (v.op == Op::Matmul && v.shape.size() >= 2 && !v.epilogues.has(Epilogue::KeepSum)) {
      const Dims &a = in(v, 0).shape, &b = in(v, 1).shape;
      const int r = v.shape.size();
      if (a[r - 1] != b[r - 2] || a[r - 2] != v.shape[r - 2] || b[r - 1] != v.shape[r - 1])
        fail(i, "has factors that do not fit its shape");
    }
  }

  void readers() const {
    Graph counted = {g.vals, {}};
    counted.count_users();
    for (size_t i = 0; i < g.vals.size(); ++i)
      if (counted.users[i] > g.users[i]) fail(i, "has more readers than were counted");
  }
};

}  // namespace

void verify(const Graph& g) {
  const Verifier v{g};
  for (size_t i = 0; i < g.vals.size(); ++i) {
    v.operands(i);
    v.shapes(i);
  }
  v.readers();
}

}  // namespace ingot
