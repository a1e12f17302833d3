// Convolutions for what cuDNN does not take (other types, odd strides, no cuDNN), one output
// element per thread, and Fold. Correct first, not fast. Sums run in one order: the same bits every
// time.
#include <algorithm>
#include <cstdlib>

#include "backend/cuda/kernels/kernels.h"
#include "codegen/conv_shape.h"
#include "ingot/error.h"

namespace ingot::cuda {
namespace {

constexpr int kNumbers = 60;

// n: 0-3 operands; 4 N, 5 C, 6 O, 7 groups; 8 x sizes, 11 y sizes, 14 window, 17 stride, 20
// dilation, 23 padding (three each); 26, 32, 38: offset and strides (batch or out, channel, dims)
// of x, w, y; 44, 45 the bias's offset and stride; 46 elements of out
const char* const kConv = R"cuda(
typedef TYPE T; typedef ACCUMULATOR A;
typedef IgParams<60> P;
IG_FN A up(T v) { return A(UP(v)); }
IG_FN long long at5(const long long* q, long long a, long long b, long long c, long long d, long long e) {
  return q[0] + a * q[1] + b * q[2] + c * q[3] + d * q[4] + e * q[5];
}
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const P p) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= p.n[46]) return;
  const long long *X = p.n + 8, *Y = p.n + 11, *K = p.n + 14, *S = p.n + 17, *D = p.n + 20, *L = p.n + 23;
  const long long *px = p.n + 26, *pw = p.n + 32, *py = p.n + 38;
  const long long cg = p.n[5] / p.n[7], og = p.n[6] / p.n[7];
  A sum = A(0);
  BODY
}
)cuda";

const char* const kForward = R"cuda(
  const T* x = (const T*)ig_pointer(p.n[1]);
  const T* w = (const T*)ig_pointer(p.n[2]);
  long long t = i;
  const long long e = t % Y[2]; t /= Y[2];
  const long long d = t % Y[1]; t /= Y[1];
  const long long c = t % Y[0]; t /= Y[0];
  const long long o = t % p.n[6], n = t / p.n[6], first = o / og * cg;
  for (long long k = 0; k < cg; ++k)
    for (long long a = 0; a < K[0]; ++a) {
      const long long u = c * S[0] + a * D[0] - L[0];
      if (u < 0 || u >= X[0]) continue;
      for (long long b = 0; b < K[1]; ++b) {
        const long long v = d * S[1] + b * D[1] - L[1];
        if (v < 0 || v >= X[1]) continue;
        for (long long f = 0; f < K[2]; ++f) {
          const long long z = e * S[2] + f * D[2] - L[2];
          if (z < 0 || z >= X[2]) continue;
          sum += up(x[at5(px, n, first + k, u, v, z)]) * up(w[at5(pw, o, k, a, b, f)]);
        }
      }
    }
  BIAS(o)
  ((T*)ig_pointer(p.n[0]))[at5(py, n, o, c, d, e)] = DOWN(TC(sum));
)cuda";

const char* const kGradInput = R"cuda(
  const T* y = (const T*)ig_pointer(p.n[1]);
  const T* w = (const T*)ig_pointer(p.n[2]);
  long long t = i;
  const long long e = t % X[2]; t /= X[2];
  const long long d = t % X[1]; t /= X[1];
  const long long c = t % X[0]; t /= X[0];
  const long long q = t % p.n[5], n = t / p.n[5], first = q / cg * og;
  for (long long k = 0; k < og; ++k)
    for (long long a = 0; a < K[0]; ++a) {
      const long long u = c + L[0] - a * D[0];
      if (u < 0 || u % S[0] || u / S[0] >= Y[0]) continue;
      for (long long b = 0; b < K[1]; ++b) {
        const long long v = d + L[1] - b * D[1];
        if (v < 0 || v % S[1] || v / S[1] >= Y[1]) continue;
        for (long long f = 0; f < K[2]; ++f) {
          const long long z = e + L[2] - f * D[2];
          if (z < 0 || z % S[2] || z / S[2] >= Y[2]) continue;
          sum += up(y[at5(py, n, first + k, u / S[0], v / S[1], z / S[2])]) * up(w[at5(pw, first + k, q % cg, a, b, f)]);
        }
      }
    }
  BIAS(q)
  ((T*)ig_pointer(p.n[0]))[at5(px, n, q, c, d, e)] = DOWN(TC(sum));
)cuda";

const char* const kGradWeight = R"cuda(
  const T* x = (const T*)ig_pointer(p.n[1]);
  const T* y = (const T*)ig_pointer(p.n[2]);
  long long t = i;
  const long long f = t % K[2]; t /= K[2];
  const long long b = t % K[1]; t /= K[1];
  const long long a = t % K[0]; t /= K[0];
  const long long k = t % cg, o = t / cg, from = o / og * cg + k;
  for (long long n = 0; n < p.n[4]; ++n)
    for (long long c = 0; c < Y[0]; ++c) {
      const long long u = c * S[0] + a * D[0] - L[0];
      if (u < 0 || u >= X[0]) continue;
      for (long long d = 0; d < Y[1]; ++d) {
        const long long v = d * S[1] + b * D[1] - L[1];
        if (v < 0 || v >= X[1]) continue;
        for (long long e = 0; e < Y[2]; ++e) {
          const long long z = e * S[2] + f * D[2] - L[2];
          if (z < 0 || z >= X[2]) continue;
          sum += up(x[at5(px, n, from, u, v, z)]) * up(y[at5(py, n, o, c, d, e)]);
        }
      }
    }
  ((T*)ig_pointer(p.n[0]))[at5(pw, o, k, a, b, f)] = DOWN(TC(sum));
)cuda";

// LANES neighbouring elements of the result per thread; sizes, strides and offsets are part of the
// text, so that divisions are by constants. Neighbouring threads have neighbouring memory of the
// result. Each element gathers from the windows that it lies in, in their own order: N0 * N1 * N2
// at most, the loads of M of them under way at once. n: out, value, position
const char* const kFold = R"cuda(
typedef TYPE T; typedef ACCUMULATOR A; typedef INDEX IX; typedef COUNTER I;
typedef IgParams<4> P;
// The windows [first, last] that place e lies in, with e = window * S + place * D - F.
IG_FN I first_window(I h, I reach, I S) { return h <= reach ? 0 : (h - reach + S - 1) / S; }
IG_FN I last_window(I h, I S, I O) { return h < 0 ? -1 : h / S < O ? h / S : O - 1; }
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const P p) {
  const I i = (I)blockIdx.x * 256 + (I)threadIdx.x;
  if (i >= ELEMENTS) return;
  I t = i, to = OUT, value = VALUE, position = PLACE;
  DECODE
  const T* v = (const T*)ig_pointer(p.n[1]);
  const IX* where = (const IX*)ig_pointer(p.n[2]);
  A sum[LANES];
  IG_UNROLL for (int j = 0; j < LANES; ++j) sum[j] = A(0);
  const I h0 = e0 + F0, h1 = e1 + F1, h2 = e2 + F2;
  const I x0 = first_window(h0, (K0 - 1) * D0, S0), x1 = last_window(h0, S0, O0);
  const I y0 = first_window(h1, (K1 - 1) * D1, S1), y1 = last_window(h1, S1, O1);
  const I z0 = first_window(h2, (K2 - 1) * D2, S2), z1 = last_window(h2, S2, O2);
  const int N = N0 * N1 * N2, M = N < 4 ? N : 4;
  for (int m = 0; m < N; m += M) {
    IgVec<T, LANES> r[M];
    IgVec<IX, LANES> at[M];
    I here[M];  // which place of the window the element is; -1: none
    IG_UNROLL for (int u = 0; u < M; ++u) {
      const int n = m + u;
      const I x = x0 + n / (N1 * N2), y = y0 + n / N2 % N1, z = z0 + n % N2;
      const I a = (h0 - x * S0) / D0, b = (h1 - y * S1) / D1, f = (h2 - z * S2) / D2;
      const bool hit = a * D0 == h0 - x * S0 && b * D1 == h1 - y * S1 && f * D2 == h2 - z * S2;  // not between two places
      const bool in = n < N && x <= x1 && y <= y1 && z <= z1 && hit;
      here[u] = in ? (a * K1 + b) * K2 + f : -1;
      if (in) { LOAD }
    }
    IG_UNROLL for (int u = 0; u < M; ++u) if (here[u] >= 0) {
      IG_UNROLL for (int j = 0; j < LANES; ++j) ADD
    }
  }
  IgVec<T, LANES> w;
  IG_UNROLL for (int j = 0; j < LANES; ++j) w.e[j] = DOWN(TC(sum[j]));
  ig_store<LANES, 0>((T*)ig_pointer(p.n[0]) + to, w);
}
)cuda";

std::string accumulator(DType t) {
  return is_float(t) ? (t == DType::Float64 ? "double" : "float") : "long long";
}

unsigned blocks_for(int64_t elements, const char* op) {
  const int64_t blocks = (elements + 255) / 256;
  if (blocks > 0x7fffffff) throw Error(ErrorKind::Unsupported, op, "more than 2^39 elements");
  return static_cast<unsigned>(blocks);
}

CudaText conv_text(const LibrarySpec& spec) {
  const TextType t = text_type(spec.operands[0].dtype);
  std::string body = kConv;
  replace_all(body, "BODY",
              spec.op == Op::Conv            ? kForward
              : spec.op == Op::ConvGradInput ? kGradInput
                                             : kGradWeight);
  std::string bias =
      spec.has(Epilogue::Bias)
          ? "sum += up(((const T*)ig_pointer(p.n[3]))[p.n[44] + (CHANNEL) * p.n[45]]);"
          : "";
  if (spec.has(Epilogue::Relu)) bias += " sum = sum > A(0) ? sum : (sum != sum ? sum : A(0));";
  for (const char* channel : {"o", "q"}) {
    std::string text = bias;
    replace_all(text, "CHANNEL", channel);
    replace_all(body, std::string("BIAS(") + channel + ")", text);
  }
  replace_all(body, "TYPE", t.memory);
  replace_all(body, "ACCUMULATOR", accumulator(spec.operands[0].dtype));
  replace_all(body, "UP(", t.up + "(");
  replace_all(body, "DOWN(TC(", t.down + "((" + t.compute + ")(");
  return hand_text("conv", body, {{"", 256, true}});
}

}  // namespace

CudaKernel simple_conv(const LibrarySpec& spec) {
  for (const OperandSpec& o : spec.operands)
    if (o.dtype != spec.operands[0].dtype)
      throw Error(ErrorKind::Unsupported, info(spec.op).name, "operands of different types");
  const ConvShape s(spec);
  CudaKernel k;
  k.text = conv_text(spec);
  std::vector<int64_t>& n = k.launch.words;
  n.assign(kNumbers, 0);
  n[4] = s.N, n[5] = s.C, n[6] = s.O, n[7] = s.G;
  for (size_t d = 0; d < 3; ++d) {
    n[8 + d] = s.x[d], n[11 + d] = s.y[d], n[14 + d] = s.k[d], n[17 + d] = s.stride[d],
          n[20 + d] = s.dilation[d], n[23 + d] = s.pad[d];
  }
  const ConvShape::Place* places[] = {&s.px, &s.pw, &s.py};
  for (size_t i = 0; i < 3; ++i) {
    int64_t* q = &n[26 + 6 * i];
    q[0] = places[i]->offset, q[1] = places[i]->outer, q[2] = places[i]->channel;
    for (int d = 0; d < 3; ++d) q[3 + d] = places[i]->dim[d];
  }
  if (spec.has(Epilogue::Bias)) n[44] = spec.operands[3].offset, n[45] = spec.operands[3].stride[0];
  n[46] = spec.operands[0].shape.numel();
  k.launch.stages = {{blocks_for(n[46], info(spec.op).name), 0}};
  k.launch.part_words = kNumbers;
  return k;
}

// The dim along which the result is contiguous, the one that neighbouring threads have neighbours
// of.
static int fold_inner_dim(const OperandSpec& out) {
  int inner = 0;
  for (int d = 1; d < out.shape.size(); ++d)
    if (out.stride[d] <= out.stride[inner]) inner = d;
  return inner;
}

// How many neighbouring elements a thread may take at once: sixteen bytes of them where they lie
// side by side in the same window of every operand (channels last), else one.
static int fold_lanes(const LibrarySpec& spec, int lead) {
  const int inner = fold_inner_dim(spec.operands[0]);
  if (inner >= lead) return 1;
  int lanes = static_cast<int>(16 / size_of(spec.operands[0].dtype));
  auto fits = [&](const OperandSpec& o) {
    bool fine = o.stride[inner] == 1 && o.shape[inner] % lanes == 0 && o.offset % lanes == 0;
    for (int d = 0; d < o.shape.size(); ++d)
      fine = fine && (d == inner || o.stride[d] % lanes == 0);
    return fine;
  };
  while (lanes > 1 && !std::all_of(spec.operands.begin(), spec.operands.end(), fits)) lanes /= 2;
  return lanes;
}

// Lines that take a thread's number apart, the result's innermost axis first: its place among the
// windows' dims (e0, e1, e2) and the offsets of its leading dims.
static std::string fold_decode(const LibrarySpec& spec, int lead, int lanes,
                               const std::string& counter) {
  const OperandSpec& out = spec.operands[0];
  const int rank = out.shape.size(), dims = rank - lead, inner = fold_inner_dim(out);
  std::vector<int> order;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return out.stride[a] > out.stride[b]; });
  std::string text;
  for (int d = 0; d < 3 - dims; ++d) text += "const I e" + std::to_string(d) + " = 0; ";
  for (size_t k = order.size(); k-- > 0;) {
    const int d = order[k], step = d == inner ? lanes : 1;
    const bool spatial = d >= lead;
    const std::string name =
        spatial ? "e" + std::to_string(3 - dims + d - lead) : "l" + std::to_string(d);
    const std::string size = std::to_string(out.shape[d] / step);
    text += "const I " + name + " = (" + counter + ")t % " + size + " * " + std::to_string(step) +
            "; t = (" + counter + ")t / " + size + "; to += " + name + " * " +
            std::to_string(out.stride[d]) + ";";
    if (!spatial) {
      text += " value += " + name + " * " + std::to_string(spec.operands[1].stride[d]) + ";";
      if (spec.operands.size() == 3)
        text += " position += " + name + " * " + std::to_string(spec.operands[2].stride[d]) + ";";
    }
    text += "\n  ";
  }
  return text;
}

// May every position be counted in 32 bits?
static bool is_small_fold(const LibrarySpec& spec) {
  for (const OperandSpec& o : spec.operands) {
    int64_t reach = o.offset;
    for (int d = 0; d < o.shape.size(); ++d) reach += (o.shape[d] - 1) * std::abs(o.stride[d]);
    if (reach >= (int64_t{1} << 30) || o.shape.numel() >= (int64_t{1} << 30)) return false;
  }
  return true;
}

CudaKernel fold(const LibrarySpec& spec) {
  const bool picks = spec.operands.size() == 3, small = is_small_fold(spec);
  const OperandSpec &out = spec.operands[0], &value = spec.operands[1];
  const FoldAttrs& a = spec.attrs.as<FoldAttrs>();
  const int dims = a.window.size(), lead = out.shape.size() - dims;
  if (dims > 3) throw Error(ErrorKind::Unsupported, "fold", "too many dims");
  const int lanes = fold_lanes(spec, lead);
  const TextType t = text_type(out.dtype);
  std::string body = kFold;
  // What a window adds: its value where the place that was picked is this one, or the value at this
  // place.
  replace_all(
      body, "LOAD",
      picks ? "ig_load<LANES, 1>(r[u], v + (value + x * V0 + y * V1 + z * V2));\n"
              "        ig_load<LANES, 1>(at[u], where + (position + x * P0 + y * P1 + z * P2));"
            : "ig_load<LANES, 1>(r[u], v + (value + x * V0 + y * V1 + z * V2 + a * W0 + b * W1 + f "
              "* W2));");
  replace_all(
      body, "ADD",
      std::string(picks ? "if ((I)at[u].e[j] == here[u]) " : "") + "sum[j] += A(UP(r[u].e[j]));");
  replace_all(body, "DECODE",
              fold_decode(spec, lead, lanes, small ? "unsigned" : "unsigned long long"));
  for (int d = 0; d < 3; ++d) {
    const int from = d - (3 - dims);
    const bool there = from >= 0;
    const std::string n = std::to_string(d);
    auto put = [&](const char* name, int64_t v) {
      replace_all(body, name + n, "(I)" + std::to_string(v));
    };
    put("K", there ? a.window[from] : 1);
    put("S", there ? a.stride[from] : 1);
    put("D", there ? a.dilation[from] : 1);
    put("F", there ? a.front[from] : 0);
    // Windows that one element can lie in.
    put("N", there ? (a.window[from] - 1) * a.dilation[from] / a.stride[from] + 1 : 1);
    put("O", there ? value.shape[lead + from] : 1);
    put("V", there ? value.stride[lead + from] : 0);
    put("P", there && picks ? spec.operands[2].stride[lead + from] : 0);
    put("W", there && !picks ? value.stride[lead + dims + from] : 0);
  }
  replace_all(body, "ELEMENTS", std::to_string(out.shape.numel() / lanes));
  replace_all(body, "LANES", std::to_string(lanes));
  replace_all(body, "OUT", std::to_string(out.offset));
  replace_all(body, "VALUE", std::to_string(value.offset));
  replace_all(body, "PLACE", std::to_string(picks ? spec.operands[2].offset : 0));
  replace_all(body, "COUNTER", small ? "int" : "long long");
  replace_all(body, "INDEX", picks ? text_type(spec.operands[2].dtype).memory : "int");
  replace_all(body, "TYPE", t.memory);
  replace_all(body, "ACCUMULATOR", accumulator(out.dtype));
  replace_all(body, "UP(", t.up + "(");
  replace_all(body, "DOWN(TC(", t.down + "((" + t.compute + ")(");
  CudaKernel k;
  k.text = hand_text("fold", body, {{"", 256, true}});
  k.launch.words.assign(4, 0);
  k.launch.stages = {{blocks_for(out.shape.numel() / lanes, "fold"), 0}};
  k.launch.part_words = 4;
  return k;
}

}  // namespace ingot::cuda
