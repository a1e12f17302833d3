// Convolutions for what cuDNN does not take (other types, odd strides, no cuDNN), one output element per
// thread, and Fold. Correct first, not fast. Sums run in one order: the same bits every time.
#include "backend/cuda/kernel_text.h"
#include "codegen/conv_shape.h"
#include "ingot/error.h"

namespace ingot::cuda {
namespace {

constexpr int kNumbers = 60;

// n: 0-3 operands; 4 N, 5 C, 6 O, 7 groups; 8 x sizes, 11 y sizes, 14 window, 17 stride, 20 dilation, 23
// padding (three each); 26, 32, 38: offset and strides (batch or out, channel, dims) of x, w, y; 44, 45 the
// bias's offset and stride; 46 elements of out
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

// n: 0-2 out, value, position; 4 dims of a plane's number; 5 elements of out; 6 L, 9 O, 12 K, 15 stride, 18
// dilation, 21 out strides, 24 value strides, 27 window strides, 30 position strides (three each); 33-35
// offsets; from 36 four words a leading dim: size, strides
const char* const kFold = R"cuda(
typedef TYPE T; typedef ACCUMULATOR A; typedef INDEX IX;
typedef IgParams<72> P;
extern "C" __global__ void __launch_bounds__(256) ENTRY0(const P p) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= p.n[5]) return;
  const long long *L = p.n + 6, *O = p.n + 9, *K = p.n + 12, *S = p.n + 15, *D = p.n + 18;
  long long t = i;
  const long long e = t % L[2]; t /= L[2];
  const long long d = t % L[1]; t /= L[1];
  const long long c = t % L[0]; t /= L[0];
  long long to = p.n[33] + c * p.n[21] + d * p.n[22] + e * p.n[23], value = p.n[34], position = p.n[35];
  for (int k = (int)p.n[4] - 1; k >= 0; --k) {
    const long long* q = p.n + 36 + 4 * k;
    const long long at = t % q[0]; t /= q[0];
    to += at * q[1]; value += at * q[2]; position += at * q[3];
  }
  const T* v = (const T*)ig_pointer(p.n[1]);
  const IX* where = (const IX*)ig_pointer(p.n[2]);
  A sum = A(0);
  // From the last place of the window to the first: windows in their own order.
  for (long long a = K[0] - 1; a >= 0; --a) {
    const long long x = c - a * D[0];
    if (x < 0 || x % S[0] || x / S[0] >= O[0]) continue;
    for (long long b = K[1] - 1; b >= 0; --b) {
      const long long y = d - b * D[1];
      if (y < 0 || y % S[1] || y / S[1] >= O[1]) continue;
      for (long long f = K[2] - 1; f >= 0; --f) {
        const long long z = e - f * D[2];
        if (z < 0 || z % S[2] || z / S[2] >= O[2]) continue;
        const long long q = value + x / S[0] * p.n[24] + y / S[1] * p.n[25] + z / S[2] * p.n[26];
        ADD
      }
    }
  }
  ((T*)ig_pointer(p.n[0]))[to] = DOWN(TC(sum));
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
              spec.op == LibOp::Conv            ? kForward
              : spec.op == LibOp::ConvGradInput ? kGradInput
                                                : kGradWeight);
  std::string bias =
      spec.bias ? "sum += up(((const T*)ig_pointer(p.n[3]))[p.n[44] + (CHANNEL) * p.n[45]]);" : "";
  if (spec.epilogue == Epilogue::Relu) bias += " sum = sum > A(0) ? sum : (sum != sum ? sum : A(0));";
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

HandKernel simple_conv(const LibrarySpec& spec) {
  for (const OperandSpec& o : spec.operands)
    if (o.dtype != spec.operands[0].dtype)
      throw Error(ErrorKind::Unsupported, name_of(spec.op), "operands of different types");
  const ConvShape s(spec);
  HandKernel k;
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
  if (spec.bias) n[44] = spec.operands[3].offset, n[45] = spec.operands[3].stride[0];
  n[46] = spec.operands[0].shape.numel();
  k.launch.stages = {{blocks_for(n[46], name_of(spec.op)), 0}};
  k.launch.part_words = kNumbers;
  return k;
}

HandKernel fold(const LibrarySpec& spec) {
  const bool picks = spec.operands.size() == 3;
  const OperandSpec &out = spec.operands[0], &value = spec.operands[1];
  const int dims = spec.d1.size(), lead = out.shape.size() - dims;
  if (lead > 8 || dims > 3) throw Error(ErrorKind::Unsupported, "fold", "too many dims");
  const TextType t = text_type(out.dtype);
  std::string body = kFold;
  replace_all(
      body, "ADD",
      picks
          ? "const long long at = position + x / S[0] * p.n[30] + y / S[1] * p.n[31] + z / S[2] * p.n[32];\n"
            "        if ((long long)where[at] == (a * K[1] + b) * K[2] + f) sum += A(UP(v[q]));"
          : "sum += A(UP(v[q + a * p.n[27] + b * p.n[28] + f * p.n[29]]));");
  replace_all(body, "INDEX", picks ? text_type(spec.operands[2].dtype).memory : "int");
  replace_all(body, "TYPE", t.memory);
  replace_all(body, "ACCUMULATOR", accumulator(out.dtype));
  replace_all(body, "UP(", t.up + "(");
  replace_all(body, "DOWN(TC(", t.down + "((" + t.compute + ")(");
  HandKernel k;
  k.text = hand_text("fold", body, {{"", 256, true}});
  std::vector<int64_t>& n = k.launch.words;
  n.assign(72, 0);
  n[4] = lead;
  n[5] = out.shape.numel();
  for (int d = 0; d < 3; ++d) {
    const int from = d - (3 - dims);
    const bool there = from >= 0;
    const auto i = static_cast<size_t>(d);
    n[6 + i] = there ? out.shape[lead + from] : 1, n[9 + i] = there ? value.shape[lead + from] : 1,
          n[12 + i] = there ? spec.d1[from] : 1;
    n[15 + i] = there ? spec.d0[from] : 1, n[18 + i] = there ? spec.d0[dims + from] : 1;
    if (!there) continue;
    n[21 + i] = out.stride[lead + from], n[24 + i] = value.stride[lead + from];
    if (picks)
      n[30 + i] = spec.operands[2].stride[lead + from];
    else
      n[27 + i] = value.stride[lead + dims + from];
  }
  n[33] = out.offset, n[34] = value.offset, n[35] = picks ? spec.operands[2].offset : 0;
  for (int d = 0; d < lead; ++d) {
    int64_t* q = &n[36 + 4 * static_cast<size_t>(d)];
    q[0] = out.shape[d], q[1] = out.stride[d], q[2] = value.stride[d],
    q[3] = picks ? spec.operands[2].stride[d] : 0;
  }
  k.launch.stages = {{blocks_for(n[5], "fold"), 0}};
  k.launch.part_words = 72;
  return k;
}

}  // namespace ingot::cuda
