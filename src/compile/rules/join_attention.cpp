// The gradients of q, k and v that were cut from one projection are put together again: three
// padded values, added. Attention's gradient writes them where they belong instead, side by side in
// one buffer.
#include "compile/rewrite.h"
#include "runtime/backend.h"

namespace ingot {
namespace {

struct Joined {
  int call = -1;
  Dims offset = Dims::filled(3, -1);  // of each result in the rows of the sum
};

// The pads below a tree of additions.
bool collect(const Rewriter& r, int v, bool top, std::vector<int>& pads) {
  const Val& val = r[v];
  if (!top && (!r.used_once(v) || val.history)) return false;
  if (val.op == Op::Add && val.n_in == 2)
    return collect(r, val.in[0], false, pads) && collect(r, val.in[1], false, pads);
  if (top || val.op != Op::Pad || val.n_in != 1 || val.attrs.as<PadAttrs>().value != 0)
    return false;
  pads.push_back(v);
  return pads.size() <= 3;
}

int only_input(const Rewriter& r, int v, Op op) {
  const Val& val = r[v];
  return val.op == op && val.n_in == 1 && !val.copied && r.used_once(v) ? val.in[0] : -1;
}

// The call itself is named by its other two results as well.
int users_of(const Val& result) { return result.op == Op::Result ? 1 : 3; }

// Finds which result of which call is padded, and notes where it goes.
bool place(const Rewriter& r, int p, const Val& sum, Joined& j) {
  const Val& pad = r[p];
  const Dims& front = pad.attrs.as<PadAttrs>().front;
  const int flat = pad.in[0], permuted = only_input(r, flat, Op::Reshape);
  const int result = permuted < 0 ? -1 : only_input(r, permuted, Op::Permute);
  if (result < 0 || front[0] != 0 || front[1] != 0 || !(pad.shape == sum.shape)) return false;
  if (!(r[permuted].attrs.as<PermuteAttrs>().order == Dims{0, 2, 1, 3})) return false;
  const Val& of = r[result];
  const Val& rows = r[flat];  // [B, T, H D]
  if (of.shape.size() != 4 || rows.shape.size() != 3 || rows.shape[0] != of.shape[0] ||
      rows.shape[1] != of.shape[2] || rows.shape[0] != sum.shape[0] ||
      rows.shape[1] != sum.shape[1] || rows.shape[2] * 3 != sum.shape[2] ||
      front[2] % rows.shape[2] != 0 || r.users(result) > users_of(of))
    return false;
  const int call = of.op == Op::Result ? of.in[0] : result;
  const int number = of.op == Op::Result ? of.attrs.as<ResultAttrs>().index : 0;
  if (r[call].op != Op::AttentionGrad || (j.call >= 0 && call != j.call) || of.output || of.history)
    return false;
  j.call = call;
  j.offset[number] = front[2];
  return true;
}

bool supported(const Rewriter& r, const Joined& j, const Val& sum) {
  const Val& call = r[j.call];
  Backend* backend = backend_for(call.device.type());
  LibrarySpec s = abstract_call(r.graph(), j.call);
  s.written = 3;
  s.results = 7;
  std::vector<OperandSpec> results;
  for (int k = 0; k < 3; ++k)
    results.push_back(joined_operand(r[call.in[static_cast<size_t>(k)]], sum.dtype,
                                     sum.shape.back(), j.offset[k]));
  s.operands.erase(s.operands.begin());
  s.operands.insert(s.operands.begin(), results.begin(), results.end());
  return backend && backend->best_offer(s);
}

bool join(Rewriter& r, const Match& m) {
  const Val& sum = r[m.root];
  std::vector<int> pads;
  Joined j;
  if (sum.history || sum.shape.size() != 3 || !collect(r, m.root, true, pads) || pads.size() != 3)
    return false;
  for (int pad : pads)
    if (!place(r, pad, sum, j)) return false;
  for (int64_t o : j.offset)
    if (o < 0) return false;
  if (j.offset[0] == j.offset[1] || j.offset[0] == j.offset[2] || j.offset[1] == j.offset[2])
    return false;
  const Val& call = r[j.call];
  if (call.output || call.history || call.dtype != sum.dtype || !supported(r, j, sum)) return false;
  r.edit(j.call).shape = sum.shape;
  r.edit(j.call).joined_at = j.offset;
  r.replace(m.root, j.call);
  return true;
}

const Rule kRules[] = {
    {"gradients of q, k and v written side by side", Pattern(Op::Add), join},
};

}  // namespace

OperandSpec joined_operand(const Val& of, DType type, int64_t row, int64_t offset) {
  const Dims& s = of.shape;
  return {type, s, Dims{s[2] * row, s[3], row, 1}, offset};
}

std::span<const Rule> join_attention_rules() { return kRules; }
void join_attention_gradients(Graph& g) {
  for (const Val& v : g.vals)
    if (v.op == Op::AttentionGrad && v.n_in > 0) {
      rewrite(g, kRules);
      return;
    }
}

}  // namespace ingot
