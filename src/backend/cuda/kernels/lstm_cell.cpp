// The cell of an LSTM's step, forward and backward: what is left of a step beside its product.
// Everything is computed in float32.
#include "backend/cuda/kernels/kernel_text.h"

namespace ingot::cuda {
namespace {

constexpr int kThreads = 128;

// What no kernel of this call writes between the last cell and this one is loaded before the
// product in front has ended. n[8]: threads with work, n[9]: H, n[10]: elements between rows of the
// operand that need not be dense.
const char* const kCommon = R"cuda(
typedef TYPE T;
typedef IgParams<11> P;
typedef IgVec<T, LANES> Narrow;
typedef IgVec<float, LANES> Wide;
IG_FN float sigmoid(float x) { return 1.0f / (1.0f + ig_exp(-x)); }
IG_FN float up(T x) { return UP(x); }
IG_FN T down(float x) { return DOWN(x); }
)cuda";

// n: 0 z, 1 the product, 2 c before, 3 h, 4 gates, 5 c after: rows of this step
const char* const kForward = R"cuda(
extern "C" __global__ void __launch_bounds__(128) ENTRY0(const P p) {
  const unsigned i = blockIdx.x * 128u + threadIdx.x, H = (unsigned)p.n[9];
  if (i >= (unsigned)p.n[8]) return;
  const unsigned e = i * LANES, row = e / H, j = e - row * H;
  const T* z = (const T*)p.n[0] + row * p.n[10] + j;
  const float* r = (const float*)p.n[1] + row * 4ll * H + j;
  Narrow x[4], h;
  Wide y[4], c;
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_load<LANES, 0>(x[g], z + g * H);
  ig_load<LANES, 0>(c, (const float*)p.n[2] + e);
  ig_wait();
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_load<LANES, 0>(y[g], r + g * H);
  IG_UNROLL for (int k = 0; k < LANES; ++k) {
    const float in = sigmoid(up(x[0].e[k]) + y[0].e[k]), forget = sigmoid(up(x[1].e[k]) + y[1].e[k]);
    const float fresh = ig_tanh(up(x[2].e[k]) + y[2].e[k]), out = sigmoid(up(x[3].e[k]) + y[3].e[k]);
    c.e[k] = forget * c.e[k] + in * fresh;
    h.e[k] = down(out * ig_tanh(c.e[k]));
    x[0].e[k] = down(in); x[1].e[k] = down(forget); x[2].e[k] = down(fresh); x[3].e[k] = down(out);
  }
  ig_store<LANES, 0>((T*)p.n[3] + e, h);
  ig_store<LANES, 0>((float*)p.n[5] + e, c);
  T* kept = (T*)p.n[4];
  if (!kept) return;
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_store<LANES, 0>(kept + row * 4ll * H + j + g * H, x[g]);
}
)cuda";

// n: 0 gradient of h from above, 1 the product: from the step behind (none: 0), 2 gates, 3 c, 4 c
// before, 5 gradient of c from the step behind, 6 gradient of z, 7 gradient of c for the step
// before
const char* const kBackward = R"cuda(
extern "C" __global__ void __launch_bounds__(128) ENTRY0(const P p) {
  const unsigned i = blockIdx.x * 128u + threadIdx.x, H = (unsigned)p.n[9];
  if (i >= (unsigned)p.n[8]) return;
  const unsigned e = i * LANES, row = e / H, j = e - row * H;
  const T* gates = (const T*)p.n[2] + row * 4ll * H + j;
  Narrow x[4], top;
  Wide c, before, dc, dh;
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_load<LANES, 0>(x[g], gates + g * H);
  ig_load<LANES, 0>(top, (const T*)p.n[0] + row * p.n[10] + j);
  ig_load<LANES, 0>(c, (const float*)p.n[3] + e);
  ig_load<LANES, 0>(before, (const float*)p.n[4] + e);
  ig_load<LANES, 0>(dc, (const float*)p.n[5] + e);
  ig_wait();
  if (p.n[1]) ig_load<LANES, 0>(dh, (const float*)p.n[1] + e);
  IG_UNROLL for (int k = 0; k < LANES; ++k) {
    const float in = up(x[0].e[k]), forget = up(x[1].e[k]), fresh = up(x[2].e[k]), out = up(x[3].e[k]);
    const float t = ig_tanh(c.e[k]), d = up(top.e[k]) + (p.n[1] ? dh.e[k] : 0.0f);
    const float s = dc.e[k] + d * out * (1.0f - t * t);
    x[0].e[k] = down(s * fresh * in * (1.0f - in));
    x[1].e[k] = down(s * before.e[k] * forget * (1.0f - forget));
    x[2].e[k] = down(s * in * (1.0f - fresh * fresh));
    x[3].e[k] = down(d * t * out * (1.0f - out));
    dc.e[k] = s * forget;
  }
  ig_store<LANES, 0>((float*)p.n[7] + e, dc);
  T* dz = (T*)p.n[6] + row * 4ll * H + j;
  IG_UNROLL for (int g = 0; g < 4; ++g) ig_store<LANES, 0>(dz + g * H, x[g]);
}
)cuda";

}  // namespace

HandKernel lstm_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                     int lanes) {
  const TextType t = text_type(type);
  std::string body = std::string(kCommon) + (backward ? kBackward : kForward);
  replace_all(body, "TYPE", t.memory);
  replace_all(body, "LANES", std::to_string(lanes));
  replace_all(body, "UP(x)", t.up + "(x)");
  replace_all(body, "DOWN(x)", t.down + "(x)");
  HandKernel k;
  k.text = hand_text(backward ? "lstm_back" : "lstm_cell", body, {{"", kThreads, false}});
  k.text.waits = true;
  const int64_t threads = rows * width / lanes;
  k.launch.stages = {{static_cast<unsigned>((threads + kThreads - 1) / kThreads), 0}};
  k.launch.words = std::vector<int64_t>(11, 0);
  k.launch.words[8] = threads;
  k.launch.words[9] = width;
  k.launch.words[10] = row_stride;
  k.launch.part_words = 11;
  return k;
}

}  // namespace ingot::cuda
