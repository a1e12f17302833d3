// See decompose_attention.h. The gradient takes the probabilities from the rows' log-sum-exp, as
// the call does, so either of the two may be written out without the other.
#include "compile/decompose_attention.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace ingot {
namespace {

size_t at(int v) { return static_cast<size_t>(v); }

class Writer {
 public:
  Writer(Graph& g, const std::vector<AttentionCall>& calls)
      : old_(g), calls_(calls), now_(g.vals.size(), -1) {}

  void run() {
    for (size_t i = 0; i < old_.vals.size(); ++i) {
      Val v = old_.vals[i];
      const bool named =
          is_written_out(v) && std::count(calls_.begin(), calls_.end(), attention_call(old_, v));
      const auto parts = v.op == Op::Result ? results_.find(v.in[0]) : results_.end();
      if (parts != results_.end()) {
        now_[i] = claim(parts->second[at(v.attrs.as<ResultAttrs>().index)], v);
        continue;
      }
      for (int k = 0; k < v.n_in; ++k) v.in[at(k)] = now_[at(v.in[at(k)])];
      if (!named) {
        now_[i] = push(v);
        continue;
      }
      const Results r = v.op == Op::Attention ? forward(v) : gradient(v);
      results_[static_cast<int>(i)] = r;
      now_[i] = claim(r[0], v);
    }
    old_.vals = std::move(out_.vals);
    old_.count_users();
  }

 private:
  using Results = std::array<int, 3>;

  int push(const Val& v) {
    out_.vals.push_back(v);
    return static_cast<int>(out_.vals.size()) - 1;
  }
  const Dims& shape(int v) const { return out_.vals[at(v)].shape; }

  // What is made here is no traced node's value, but for the results.
  int compute(Op op, DType t, const Dims& shape, std::initializer_list<int> in) {
    Val v;
    v.op = op;
    v.dtype = t;
    v.device = device_;
    v.shape = shape;
    for (int x : in) v.in[v.n_in++] = x;
    return push(v);
  }
  int cast(int a, DType t) {
    return out_.vals[at(a)].dtype == t ? a : compute(Op::Cast, t, Dims(shape(a)), {a});
  }
  int number(double x) {
    const int c = compute(Op::Const, kWide, {}, {});
    out_.vals[at(c)].attrs = ConstAttrs{x};
    return c;
  }
  int each(Op op, int a) { return compute(op, kWide, Dims(shape(a)), {a}); }
  int each(Op op, int a, int b) { return compute(op, kWide, Dims(shape(a)), {a, b}); }
  int turned(int a) {
    Dims s = shape(a);
    std::swap(s[2], s[3]);
    const int v = compute(Op::Permute, out_.vals[at(a)].dtype, s, {a});
    out_.vals[at(v)].attrs = PermuteAttrs{{0, 1, 3, 2}};
    return v;
  }
  int product(int a, int b, DType t) {
    Dims s = shape(a);
    s[3] = shape(b)[3];
    return compute(Op::Matmul, t, s, {a, b});
  }
  /// Over the last dim, which stays with size 1.
  int over_row(Op op, int a) {
    Dims s = shape(a);
    s[3] = 1;
    const int v = compute(op, kWide, s, {a});
    out_.vals[at(v)].attrs = ReduceAttrs{1u << 3};
    return v;
  }
  int places(int64_t n, const Dims& as) {
    const int i = compute(Op::Iota, DType::Int64, {n}, {});
    return as.size() == 1 ? i : compute(Op::Reshape, DType::Int64, as, {i});
  }

  int scores(const Val& call, int bias) {
    int s = each(Op::Mul, product(call.in[0], turned(call.in[1]), kWide),
                 number(call.attrs.as<AttentionAttrs>().scale));
    if (bias >= 0) s = each(Op::Add, s, cast(bias, kWide));
    if (!call.attrs.as<AttentionAttrs>().causal()) return s;
    const int64_t rows = shape(s)[2], columns = shape(s)[3];
    const int seen = compute(Op::Le, DType::Bool, {rows, columns},
                             {places(columns, {columns}), places(rows, {rows, 1})});
    return compute(Op::Where, kWide, Dims(shape(s)),
                   {seen, s, number(-std::numeric_limits<double>::infinity())});
  }

  // The output, and the rows' log-sum-exp.
  Results forward(const Val& call) {
    device_ = call.device;
    const int s = scores(call, call.n_in > 3 ? call.in[3] : -1), most = over_row(Op::Max, s);
    const int e = each(Op::Exp, each(Op::Sub, s, most)), sum = over_row(Op::Sum, e);
    const int p = cast(each(Op::Mul, e, each(Op::Reciprocal, sum)), call.dtype);
    const Dims rows{shape(s)[0], shape(s)[1], shape(s)[2]};
    const int a = compute(Op::Reshape, kWide, rows, {most}),
              b = compute(Op::Reshape, kWide, rows, {sum});
    return {product(p, call.in[2], call.dtype), each(Op::Add, a, each(Op::Log, b)), -1};
  }

  Results gradient(const Val& call) {
    device_ = call.device;
    const DType t = call.dtype;
    const int q = call.in[0], k = call.in[1], v = call.in[2], o = call.in[3], go = call.in[4],
              lse = call.in[5];
    const int s = scores(call, call.n_in > 6 ? call.in[6] : -1);
    const Dims rows{shape(s)[0], shape(s)[1], shape(s)[2], 1};
    const int p = each(Op::Exp, each(Op::Sub, s, compute(Op::Reshape, kWide, rows, {lse})));
    const int dp = product(go, turned(v), kWide);
    const int delta = over_row(Op::Sum, each(Op::Mul, cast(go, kWide), cast(o, kWide)));
    const int ds = cast(each(Op::Mul, each(Op::Mul, each(Op::Sub, dp, delta), p),
                             number(call.attrs.as<AttentionAttrs>().scale)),
                        t);
    return {product(ds, k, t), product(turned(ds), q, t), product(turned(cast(p, t)), go, t)};
  }

  /// The result stands for the traced value v from now on.
  int claim(int result, const Val& v) {
    if (out_.vals[at(result)].node >= 0)  // by another name already
      out_.vals[at(result = compute(Op::Reshape, v.dtype, v.shape, {result}))].copied = true;
    Val& r = out_.vals[at(result)];
    r.node = v.node;
    r.output = v.output;
    r.history = v.history;
    return result;
  }

  static constexpr DType kWide = DType::Float32;
  Graph& old_;
  const std::vector<AttentionCall>& calls_;
  Graph out_;
  Device device_{DeviceType::CPU, 0};
  std::vector<int> now_;
  std::map<int, Results> results_;  // by the call
};

}  // namespace

AttentionCall attention_call(const Graph& g, const Val& v) {
  auto shape = [&](int k) { return g.vals[at(v.in[at(k)])].shape; };
  return {v.op, v.dtype, shape(0), shape(1), shape(2), v.attrs, v.n_in, v.device};
}

bool is_written_out(const Val& v) {
  return (v.op == Op::Attention && !v.attrs.as<AttentionAttrs>().newest()) ||
         v.op == Op::AttentionGrad;
}

void write_out_attention(Graph& g, const std::vector<AttentionCall>& calls) {
  if (!calls.empty()) Writer(g, calls).run();
}

}  // namespace ingot
