// The gradients of q, k and v that were cut from one projection are put together again: three
// padded values, added. Attention's gradient writes them where they belong instead, side by side in
// one buffer.
#include "compile/ir.h"
#include "runtime/backend.h"

namespace ingot {
namespace {

class Joiner {
 public:
  explicit Joiner(Graph& g) : g_(g) {}

  /// Is v such a sum? Then it is rewritten.
  bool join(int v) {
    parts_.clear();
    call_ = -1;
    const Val& sum = g_.vals[v];
    if (sum.history || sum.shape.size() != 3 || !collect(v, true) || parts_.size() != 3)
      return false;
    offset_ = Dims::filled(3, -1);
    for (int pad : parts_)
      if (!place(pad, sum)) return false;
    for (int64_t o : offset_)
      if (o < 0) return false;
    if (offset_[0] == offset_[1] || offset_[0] == offset_[2] || offset_[1] == offset_[2])
      return false;
    Val& call = g_.vals[call_];
    if (call.output || call.history || call.dtype != sum.dtype || !supported(sum)) return false;
    rewrite(v);
    return true;
  }

 private:
  // The pads below a tree of additions.
  bool collect(int v, bool top) {
    const Val& val = g_.vals[v];
    if (!top && (g_.users[v] != 1 || val.output || val.history)) return false;
    if (val.op == Op::Add && val.n_in == 2)
      return collect(val.in[0], false) && collect(val.in[1], false);
    if (top || val.op != Op::Pad || val.n_in != 1 || val.attrs.as<PadAttrs>().value != 0)
      return false;
    parts_.push_back(v);
    return parts_.size() <= 3;
  }

  int only_input(int v, Op op) const {
    const Val& val = g_.vals[v];
    return val.op == op && val.n_in == 1 && !val.copied && !val.output && g_.users[v] == 1
               ? val.in[0]
               : -1;
  }

  // Finds which result of which call is padded, and notes where it goes.
  bool place(int p, const Val& sum) {
    const Val& pad = g_.vals[p];
    const Dims& front = pad.attrs.as<PadAttrs>().front;
    const int flat = pad.in[0], turned = only_input(flat, Op::Reshape);
    const int result = turned < 0 ? -1 : only_input(turned, Op::Permute);
    if (result < 0 || front[0] != 0 || front[1] != 0 || !(pad.shape == sum.shape)) return false;
    const Dims& order = g_.vals[turned].attrs.as<PermuteAttrs>().order;
    if (!(order == Dims{0, 2, 1, 3})) return false;
    const Val& r = g_.vals[result];
    const Val& rows = g_.vals[flat];  // [B, T, H D]
    if (r.shape.size() != 4 || rows.shape.size() != 3 || rows.shape[0] != r.shape[0] ||
        rows.shape[1] != r.shape[2] || rows.shape[0] != sum.shape[0] ||
        rows.shape[1] != sum.shape[1] || rows.shape[2] * 3 != sum.shape[2] ||
        front[2] % rows.shape[2] != 0 || g_.users[result] > users_of(r))
      return false;
    const int call = r.op == Op::Result ? r.in[0] : result;
    const int number = r.op == Op::Result ? r.attrs.as<ResultAttrs>().index : 0;
    if (g_.vals[call].op != Op::AttentionGrad || (call_ >= 0 && call != call_) || r.output ||
        r.history)
      return false;
    call_ = call;
    offset_[number] = front[2];
    return true;
  }
  // The call itself is named by its other two results as well.
  static int users_of(const Val& r) { return r.op == Op::Result ? 1 : 3; }

  bool supported(const Val& sum) const {
    const Val& call = g_.vals[call_];
    Backend* b = backend_for(call.device.type());
    LibrarySpec s;
    s.op = Op::AttentionGrad;
    s.attrs = call.attrs;
    s.written = 3;
    s.results = 7;
    for (int k = 0; k < 3; ++k)
      s.operands.push_back(
          joined_operand(g_.vals[call.in[k]], sum.dtype, sum.shape.back(), offset_[k]));
    for (int k = 0; k < call.n_in; ++k) {
      const Val& in = g_.vals[call.in[k]];
      s.operands.push_back({in.dtype, in.shape, row_major(in.shape), 0});
    }
    return b && b->supports(s);
  }

  void rewrite(int v) {
    Val &sum = g_.vals[v], &call = g_.vals[call_];
    call.shape = sum.shape;
    call.joined_at = offset_;
    call.node = sum.node;
    call.output = sum.output;
    sum.output = false;
    sum.become(Op::Reshape);
    sum.n_in = 1;
    sum.in[0] = call_;
  }

  Graph& g_;
  std::vector<int> parts_;  // the pads
  Dims offset_;
  int call_ = -1;
};

}  // namespace

OperandSpec joined_operand(const Val& of, DType type, int64_t row, int64_t offset) {
  const Dims& s = of.shape;
  return {type, s, Dims{s[2] * row, s[3], row, 1}, offset};
}

void join_attention_gradients(Graph& g) {
  bool any = false, found = false;
  for (const Val& v : g.vals) any = any || v.op == Op::AttentionGrad;
  if (!any) return;
  Joiner joiner(g);
  for (size_t v = 0; v < g.vals.size(); ++v)
    if (g.users[v] > 0 && g.vals[v].op == Op::Add && joiner.join(static_cast<int>(v))) found = true;
  if (found) drop_dead(g);
}

}  // namespace ingot
