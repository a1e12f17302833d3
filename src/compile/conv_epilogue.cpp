// Convolutions and what follows them element by element become one library call: batch norm at
// inference is folded into the weights and a bias, a residual and the ReLU are the call's. The
// chain of values behind a convolution is followed while each has one reader; the last one that has
// the convolution's type becomes the call. The folded weights are computed anew at every run, by
// generated kernels that write them in the order the library wants, so this costs no more than that
// copy and needs no cache of what may change.
//
// The results differ from the unfused ones by rounding: the sum, the bias and the residual are
// added in float32 and rounded once, weights and bias of 16 bits are rounded after they are scaled.
#include <algorithm>

#include "compile/conv_passes.h"
#include "runtime/backend.h"

namespace ingot {
namespace {

struct Chain {
  int conv = -1, last = -1;
  int mean = -1, factor = -1, shift = -1,
      residual = -1;  // (conv - mean) * factor + shift + residual
  bool relu = false;
  bool folds() const { return mean >= 0 || factor >= 0 || shift >= 0; }
  bool any() const { return folds() || residual >= 0 || relu; }
};

class Chains {
 public:
  explicit Chains(const Graph& g)
      : g_(g), reader_(g.vals.size(), -1), taken_(g.vals.size(), false) {
    for (size_t v = 0; v < g.vals.size(); ++v)
      for (int k = 0; k < g.vals[v].n_in; ++k) reader_[at(g.vals[v].in[k])] = static_cast<int>(v);
  }

  /// The longest chain behind convolution c that one call can do; last is -1 when there is none.
  /// Where two convolutions are added, the first one asked for takes the sum.
  Chain behind(int c) {
    Chain best, now;
    std::vector<int> members;
    size_t used = 0;
    best.conv = now.conv = now.last = c;
    while (step(now)) {
      const bool has_bias = g_.vals[at(c)].bias || now.mean >= 0 || now.shift >= 0;
      members.push_back(now.last);
      if (!has_bias || !now.any() || g_.vals[at(now.last)].dtype != g_.vals[at(c)].dtype) continue;
      best = now;
      used = members.size();
    }
    for (size_t m = 0; m < used; ++m) taken_[at(members[m])] = true;
    return best;
  }

 private:
  static size_t at(int v) { return static_cast<size_t>(v); }

  // A value per channel: of the result's rank, with all other dims of size 1.
  bool per_channel(const Val& v, const Val& conv) const {
    if (v.shape.size() != conv.shape.size() || v.device != conv.device) return false;
    for (int d = 0; d < v.shape.size(); ++d)
      if (v.shape[d] != (d == 1 ? conv.shape[1] : 1)) return false;
    return true;
  }

  // Follows the chain by one value, if it goes on.
  bool step(Chain& c) const {
    const Val &conv = g_.vals[at(c.conv)], &value = g_.vals[at(c.last)];
    const int next = reader_[at(c.last)];
    if (g_.users[at(c.last)] != 1 || value.output || value.history || next < 0) return false;
    const Val& v = g_.vals[at(next)];
    if (taken_[at(next)] || v.history || v.device != conv.device || !(v.shape == conv.shape))
      return false;
    const int side = v.n_in == 2 && v.in[1] == c.last ? 1 : 0;
    if (!follow(c, v, conv, v.n_in == 2 ? v.in[1 - side] : -1, side)) return false;
    c.last = next;
    return true;
  }
  bool follow(Chain& c, const Val& v, const Val& conv, int other, int side) const {
    if (v.op == Op::Reshape) return !v.copied;  // of the same shape: a bias was fused before
    if (v.op == Op::Cast) return v.dtype == conv.dtype || v.dtype == DType::Float32;
    if (c.relu) return false;
    if (v.op == Op::Relu) return c.relu = true;
    if (other < 0 || other == c.last || c.residual >= 0 || g_.vals[at(other)].dtype != v.dtype)
      return false;
    const bool vector = per_channel(g_.vals[at(other)], conv);
    const auto take = [&](int& slot) {
      if (slot >= 0) return false;
      slot = other;
      return true;
    };
    switch (v.op) {
      case Op::Sub:
        return vector && side == 0 && c.factor < 0 && c.shift < 0 && take(c.mean);
      case Op::Mul:  // a factor of 16-bit floats might leave their range: weights of that type stay
                     // as they are
        return vector && conv.dtype != DType::Float16 && c.shift < 0 && take(c.factor);
      case Op::Add:
        if (vector) return take(c.shift);
        return g_.vals[at(other)].shape == conv.shape && v.dtype == conv.dtype && take(c.residual);
      default:
        return false;
    }
  }

  const Graph& g_;
  std::vector<int> reader_;
  std::vector<bool> taken_;
};

bool wants(const Val& v) {
  if (v.op != Op::Conv || v.n_in < 2 || v.numel() == 0 || v.relu || v.residual) return false;
  if (v.dtype != DType::Float32 && !is_half(v.dtype)) return false;
  Backend* b = backend_for(v.device.type());
  return b && b->fused_convolutions();
}

class Rewriter {
 public:
  explicit Rewriter(Graph& g) : old_(g), now_(g.vals.size(), -1) {}

  void run(const std::vector<Chain>& chains) {
    std::vector<int> chain_of(old_.vals.size(), -1);
    std::vector<bool> dead(old_.vals.size(), false);
    for (size_t c = 0; c < chains.size(); ++c) {
      chain_of[at(chains[c].last)] = static_cast<int>(c);
      const std::vector<int> members = between(chains[c]);
      for (int m : members) dead[at(m)] = true;
    }
    for (size_t i = 0; i < old_.vals.size(); ++i) {
      Val v = old_.vals[i];
      if (dead[i]) v.n_in = 0;
      for (int k = 0; k < v.n_in; ++k) v.in[at(k)] = now_[at(v.in[at(k)])];
      now_[i] = chain_of[i] >= 0 ? call(chains[at(chain_of[i])], v) : push(v);
    }
    old_.vals = std::move(out_.vals);
    old_.count_users();
    drop_unread();
  }

 private:
  static size_t at(int v) { return static_cast<size_t>(v); }

  // All values of the chain but the last.
  std::vector<int> between(const Chain& c) const {
    std::vector<int> all;
    for (int v = c.last; v != c.conv;) {
      const Val& val = old_.vals[at(v)];
      int from = val.in[0];
      if (val.n_in == 2 &&
          (from == c.mean || from == c.factor || from == c.shift || from == c.residual))
        from = val.in[1];
      all.push_back(v = from);
    }
    return all;
  }

  int push(const Val& v) {
    out_.vals.push_back(v);
    return static_cast<int>(out_.vals.size()) - 1;
  }
  int compute(Op op, DType t, const Dims& shape, int a, int b = -1) {
    Val v;
    v.op = op;
    v.dtype = t;
    v.device = out_.vals[at(a)].device;
    v.shape = shape;
    v.in[0] = a;
    v.n_in = b < 0 ? 1 : 2;
    if (b >= 0) v.in[1] = b;
    v.node = node_;
    return push(v);
  }
  int cast(int a, DType t) {
    const Val& v = out_.vals[at(a)];
    return v.dtype == t ? a : compute(Op::Cast, t, Dims(v.shape), a);
  }
  int wide(int old) { return old < 0 ? -1 : cast(now_[at(old)], DType::Float32); }

  // The call, where the chain's last value was.
  int call(const Chain& c, const Val& last) {
    const Val conv = old_.vals[at(c.conv)];
    node_ = last.node;
    Val v = conv;
    v.node = last.node;
    v.output = last.output;
    v.relu = c.relu;
    v.bias = true;
    v.in[0] = now_[at(conv.in[0])];
    const int factor = wide(c.factor);
    v.in[1] = factor < 0 ? now_[at(conv.in[1])] : weights(conv.in[1], factor);
    v.in[2] = c.folds() ? bias(c, conv, factor) : now_[at(conv.in[2])];
    v.n_in = 3;
    v.residual = c.residual >= 0;
    if (v.residual) v.in[v.n_in++] = now_[at(c.residual)];
    return push(v);
  }

  // w * factor, rounded once: what the weights were cast from is scaled, where they were.
  int weights(int w, int factor) {
    const Val& from = old_.vals[at(w)];
    const DType t = from.dtype;
    const Dims shape = from.shape;
    if (from.op == Op::Cast && from.n_in == 1 && old_.vals[at(from.in[0])].dtype == DType::Float32)
      w = from.in[0];
    Dims along = Dims::filled(shape.size(), 1);  // [1, O, 1, ..] -> [O, 1, 1, ..]
    along[0] = shape[0];
    const int each = compute(Op::Reshape, DType::Float32, along, factor);
    return cast(compute(Op::Mul, DType::Float32, shape, cast(now_[at(w)], DType::Float32), each),
                t);
  }

  // (b - mean) * factor + shift
  int bias(const Chain& c, const Val& conv, int factor) {
    int sum = conv.bias ? wide(conv.in[2]) : -1;
    const int mean = wide(c.mean), shift = wide(c.shift);
    const Dims shape = out_.vals[at(std::max({sum, mean, shift}))].shape;
    auto apply = [&](Op op, int a, int b) { return compute(op, DType::Float32, shape, a, b); };
    if (mean >= 0 && sum >= 0) {
      sum = apply(Op::Sub, sum, mean);
    } else if (mean >= 0) {  // -mean * factor + shift: the sign goes last
      const int m = factor >= 0 ? apply(Op::Mul, mean, factor) : mean;
      return cast(shift >= 0 ? apply(Op::Sub, shift, m) : apply(Op::Neg, m, -1), conv.dtype);
    }
    if (sum >= 0 && factor >= 0) sum = apply(Op::Mul, sum, factor);
    if (shift >= 0) sum = sum >= 0 ? apply(Op::Add, sum, shift) : shift;
    return cast(sum, conv.dtype);
  }

  // Casts of weights that are scaled without them now.
  void drop_unread() {
    for (size_t i = old_.vals.size(); i-- > 0;) {
      Val& v = old_.vals[i];
      if (old_.users[i] > 0 || v.op != Op::Cast) continue;
      for (int k = 0; k < v.n_in; ++k) --old_.users[at(v.in[at(k)])];
      v.n_in = 0;
    }
  }

  Graph& old_;
  Graph out_;
  std::vector<int> now_;
  int node_ = -1;
};

}  // namespace

void fuse_conv_epilogues(Graph& g) {
  if (std::none_of(g.vals.begin(), g.vals.end(),
                   [](const Val& v) { return v.op == Op::Conv && v.n_in > 0; }))
    return;
  Chains chains(g);
  std::vector<Chain> found;
  for (size_t v = 0; v < g.vals.size(); ++v) {
    if (!wants(g.vals[v])) continue;
    const Chain c = chains.behind(static_cast<int>(v));
    if (c.last >= 0) found.push_back(c);
  }
  if (!found.empty()) Rewriter(g).run(found);
}

}  // namespace ingot
