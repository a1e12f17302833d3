// Convolutions and what follows them element by element become one library call: batch norm at
// inference is folded into the weights and a bias; a residual and ReLU are epilogues. The chain of
// values that follows a convolution is walked while each has one reader; the last one that has the
// convolution's type becomes the call. The folded weights are computed at every run, by generated
// kernels that write them in the layout the library takes, so this costs no more than that copy and
// needs no cache of what may change.
//
// The results differ from the unfused ones by rounding: the sum, the bias and the residual are
// added in float32 and rounded once, weights and bias of 16 bits are rounded after they are scaled.
#include <algorithm>

#include "compile/rewrite.h"
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

// A value per channel: of the result's rank, with all other dims of size 1.
bool per_channel(const Val& v, const Val& conv) {
  if (v.shape.size() != conv.shape.size() || v.device != conv.device) return false;
  for (int d = 0; d < v.shape.size(); ++d)
    if (v.shape[d] != (d == 1 ? conv.shape[1] : 1)) return false;
  return true;
}

bool take(int& slot, int value) {
  if (slot >= 0) return false;
  slot = value;
  return true;
}

// May v, whose operand `side` is the chain's last value, continue the chain?
bool follow(const Rewriter& r, Chain& c, const Val& v, int other, int side) {
  const Val& conv = r[c.conv];
  if (v.op == Op::Reshape) return !v.copied;  // of the same shape: a bias was fused before
  if (v.op == Op::Cast) return v.dtype == conv.dtype || v.dtype == DType::Float32;
  if (c.relu) return false;
  if (v.op == Op::Relu) return c.relu = true;
  if (other < 0 || other == c.last || c.residual >= 0 || r[other].dtype != v.dtype) return false;
  const bool vector = per_channel(r[other], conv);
  switch (v.op) {
    case Op::Sub:
      return vector && side == 0 && c.factor < 0 && c.shift < 0 && take(c.mean, other);
    case Op::Mul:  // a factor of 16-bit floats might leave their range: weights of that type stay
                   // as they are
      return vector && conv.dtype != DType::Float16 && c.shift < 0 && take(c.factor, other);
    case Op::Add:
      if (vector) return take(c.shift, other);
      return r[other].shape == conv.shape && v.dtype == conv.dtype && take(c.residual, other);
    default:
      return false;
  }
}

// Follows the chain by one value, if it continues. (A value that is a convolution's chain already
// is one no more.)
bool step(const Rewriter& r, Chain& c) {
  const Val &conv = r[c.conv], &value = r[c.last];
  const int next = r.reader(c.last);
  if (next < 0 || value.output || value.history) return false;
  const Val& v = r[next];
  if (v.history || v.device != conv.device || !(v.shape == conv.shape)) return false;
  const int side = v.n_in == 2 && v.in[1] == c.last ? 1 : 0;
  if (!follow(r, c, v, v.n_in == 2 ? v.in[1 - side] : -1, side)) return false;
  c.last = next;
  return true;
}

/// The longest chain after a convolution that one call can do; last is -1 when there is none.
/// Where two convolutions are added, the first one asked for takes the sum.
Chain chain_of(const Rewriter& r, int conv) {
  Chain best, now;
  best.conv = now.conv = now.last = conv;
  while (step(r, now)) {
    const bool has_bias = r[conv].epilogues.has(Epilogue::Bias) || now.mean >= 0 || now.shift >= 0;
    if (has_bias && now.any() && r[now.last].dtype == r[conv].dtype) best = now;
  }
  return best;
}

bool takes_all(const Rewriter& r, int v) {
  const Val& conv = r[v];
  if (conv.n_in < 2 || conv.numel() == 0 || !conv.epilogues.within({Epilogue::Bias})) return false;
  if (conv.dtype != DType::Float32 && !is_half(conv.dtype)) return false;
  Backend* backend = backend_for(conv.device.type());
  LibrarySpec call = abstract_call(r.graph(), v);
  if (!call.has(Epilogue::Bias))
    call.operands.push_back({conv.dtype, Dims{conv.shape[1]}, Dims{1}, 0});
  call.operands.push_back(call.operands[0]);
  call.epilogues = {Epilogue::Bias, Epilogue::Residual, Epilogue::Relu};
  return backend && backend->best_offer(call);
}

int wide(Rewriter& r, int v) { return v < 0 ? -1 : r.cast(v, DType::Float32); }

// w * factor, rounded once: what the weights were cast from is scaled, where they were.
int weights(Rewriter& r, int w, int factor) {
  const DType type = r[w].dtype;
  const Dims shape = r[w].shape;
  if (r[w].op == Op::Cast && r[w].n_in == 1 && r[r[w].in[0]].dtype == DType::Float32)
    w = r[w].in[0];
  Dims along = Dims::filled(shape.size(), 1);  // [1, O, 1, ..] -> [O, 1, 1, ..]
  along[0] = shape[0];
  const int each = r.compute(Op::Reshape, DType::Float32, along, {factor});
  return r.cast(r.compute(Op::Mul, DType::Float32, shape, {wide(r, w), each}), type);
}

// (b - mean) * factor + shift
int bias(Rewriter& r, const Chain& c, int factor) {
  const DType type = r[c.conv].dtype;
  const bool has_bias = r[c.conv].epilogues.has(Epilogue::Bias);
  int sum = has_bias ? wide(r, r[c.conv].in[2]) : -1;
  const int mean = wide(r, c.mean), shift = wide(r, c.shift);
  const Dims shape = r[std::max({sum, mean, shift})].shape;
  auto apply = [&](Op op, std::initializer_list<int> in) {
    return r.compute(op, DType::Float32, shape, in);
  };
  if (mean >= 0 && sum >= 0) {
    sum = apply(Op::Sub, {sum, mean});
  } else if (mean >= 0) {  // -mean * factor + shift: the sign goes last
    const int m = factor >= 0 ? apply(Op::Mul, {mean, factor}) : mean;
    return r.cast(shift >= 0 ? apply(Op::Sub, {shift, m}) : apply(Op::Neg, {m}), type);
  }
  if (sum >= 0 && factor >= 0) sum = apply(Op::Mul, {sum, factor});
  if (shift >= 0) sum = sum >= 0 ? apply(Op::Add, {sum, shift}) : shift;
  return r.cast(sum, type);
}

// The call, in the place of the chain's last value.
bool fold(Rewriter& r, const Match& m) {
  const Chain c = chain_of(r, m.root);
  if (c.last < 0) return false;
  const Val conv = r[c.conv];
  r.rewriting(c.last);
  const int factor = wide(r, c.factor);
  const int w = factor < 0 ? conv.in[1] : weights(r, conv.in[1], factor);
  const int b = c.folds() ? bias(r, c, factor) : conv.in[2];
  Epilogues all{Epilogue::Bias};
  all.set(Epilogue::Residual, c.residual >= 0);
  all.set(Epilogue::Relu, c.relu);
  if (c.residual >= 0)
    r.become(c.last, Op::Conv, {conv.in[0], w, b, c.residual}, conv.attrs);
  else
    r.become(c.last, Op::Conv, {conv.in[0], w, b}, conv.attrs);
  r.edit(c.last).epilogues = all;
  return true;
}

const Rule kRules[] = {
    {"batch norm, residual and ReLU of a convolution", Pattern(Op::Conv).where(takes_all), fold},
};

}  // namespace

std::span<const Rule> fold_conv_rules() { return kRules; }
void fold_conv_epilogues(Graph& g) { rewrite(g, kRules); }

}  // namespace ingot
