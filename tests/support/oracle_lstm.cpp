// The oracle's LSTM: the formulas of a step, one element after the other.
#include <cmath>

#include "support/oracle.h"

namespace ingot::oracle {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Sizes {
  int64_t T, N, H;
  bool backwards;
  explicit Sizes(const Node& n, const Dims& wide)
      : T(wide[0]), N(wide[1]), H(wide[2] / 4), backwards(n.attrs.as<RecurrentAttrs>().reverse) {}
  int64_t step(int64_t i) const { return backwards ? T - 1 - i : i; }
  // Places in [T, N, H], in [T, N, 4 H] and in the weight.
  int64_t at(int64_t t, int64_t n, int64_t j) const { return (t * N + n) * H + j; }
  int64_t gate(int64_t t, int64_t n, int64_t g, int64_t j) const {
    return ((t * N + n) * 4 + g) * H + j;
  }
  int64_t weight(int64_t g, int64_t j, int64_t k) const { return (g * H + j) * H + k; }
};

}  // namespace

std::vector<Value> lstm(const Node& n, std::span<const Value* const> in, bool exact) {
  const Value &z = *in[0], &w = *in[1], &h0 = *in[2], &c0 = *in[3];
  const Sizes s(n, z.shape);
  Value h(n.dtype, n.shape), gates(n.dtype, z.shape), c(c0.dtype, n.shape);
  for (int64_t i = 0; i < s.T; ++i)
    for (int64_t r = 0; r < s.N; ++r)
      for (int64_t j = 0; j < s.H; ++j) {
        const int64_t t = s.step(i), before = i > 0 ? s.step(i - 1) : 0;
        double sum[4];
        for (int64_t g = 0; g < 4; ++g) {
          sum[g] = z.f[s.gate(t, r, g, j)];
          for (int64_t k = 0; k < s.H; ++k)
            sum[g] +=
                w.f[s.weight(g, j, k)] * (i > 0 ? h.f[s.at(before, r, k)] : h0.f[r * s.H + k]);
          const double v = g == 2 ? std::tanh(sum[g]) : sigmoid(sum[g]);
          gates.f[s.gate(t, r, g, j)] = sum[g] = v;
        }
        const double now =
            sum[1] * (i > 0 ? c.f[s.at(before, r, j)] : c0.f[r * s.H + j]) + sum[0] * sum[2];
        const double out = sum[3] * std::tanh(now);
        c.f[s.at(t, r, j)] = now;
        h.f[s.at(t, r, j)] =
            exact ? out : round_to(n.dtype, out);  // the next step reads what is stored
      }
  return {h, gates, c};
}

std::vector<Value> lstm_grad(const Node& n, std::span<const Value* const> in, bool exact) {
  const Value &gates = *in[0], &w = *in[1], &top = *in[2], &last = *in[3], &c = *in[4],
              &c0 = *in[5];
  const Sizes s(n, gates.shape);
  Value dz(n.dtype, n.shape), dh(c0.dtype, c0.shape), dc(last.dtype, last.shape);
  dc.f = last.f;
  for (int64_t i = s.T - 1; i >= 0; --i) {
    const int64_t t = s.step(i);
    for (int64_t r = 0; r < s.N; ++r)
      for (int64_t j = 0; j < s.H; ++j) {
        const int64_t e = r * s.H + j;
        double g[4];
        for (int64_t k = 0; k < 4; ++k) g[k] = gates.f[s.gate(t, r, k, j)];
        const double tanh_c = std::tanh(c.f[s.at(t, r, j)]), d = top.f[s.at(t, r, j)] + dh.f[e];
        const double through = dc.f[e] + d * g[3] * (1 - tanh_c * tanh_c),
                     before = i > 0 ? c.f[s.at(s.step(i - 1), r, j)] : c0.f[e];
        const double of[4] = {through * g[2] * g[0] * (1 - g[0]),
                              through * before * g[1] * (1 - g[1]),
                              through * g[0] * (1 - g[2] * g[2]), d * tanh_c * g[3] * (1 - g[3])};
        for (int64_t k = 0; k < 4; ++k)
          dz.f[s.gate(t, r, k, j)] = exact ? of[k] : round_to(n.dtype, of[k]);
        dc.f[e] = through * g[1];
      }
    for (int64_t r = 0; r < s.N; ++r)
      for (int64_t k = 0; k < s.H; ++k) {
        double sum = 0;
        for (int64_t g = 0; g < 4; ++g)
          for (int64_t j = 0; j < s.H; ++j)
            sum += dz.f[s.gate(t, r, g, j)] * w.f[s.weight(g, j, k)];
        dh.f[r * s.H + k] = sum;
      }
  }
  return {dz, dh, dc};
}

}  // namespace ingot::oracle
