// Convolutions of up to three dims and their gradients, for what cuDNN does not take: other dtypes,
// odd strides, no cuDNN. Groups, dilation, bias and ReLU. Correct first, not fast; sums run in one
// order, so the bits are always the same.
//
// Launch: a thread per element of the output, 256 threads a block, no shared memory. Bound by the
// L1 cache: each multiply-add loads both of its factors.
#include "codegen/conv_shape.h"

#include "backend/cuda/kernels/kernel_source.h"
#include "ingot/error.h"

namespace ingot::cuda {
namespace {

INGOT_KERNEL_PARAMS(ConvParams, {
  struct Place {
    long long offset;
    long long outer;  // strides: batch or output channel, channel, dims
    long long channel;
    long long dim[3];
  };
  Address operands[4];  // out, the two factors, bias
  long long N;
  long long C;
  long long O;
  long long groups;
  long long x_size[3];
  long long y_size[3];
  long long window[3];
  long long stride[3];
  long long dilation[3];
  long long padding[3];
  Place x;
  Place w;
  Place y;
  long long bias_offset;
  long long bias_stride;
  long long elements;  // of out
});

const char* const kText = R"cuda(
// Where element (a, b, c, d, e) of an operand stands: batch or output channel, channel, three dims.
IG_FN long long at(const ConvParams::Place& q, long long a, long long b, long long c, long long d, long long e) {
  return q.offset + a * q.outer + b * q.channel + c * q.dim[0] + d * q.dim[1] + e * q.dim[2];
}
// The epilogues: bias and ReLU.
template <class Type, class A, bool kBias, bool kRelu> IG_FN A finish(const Argument<ConvParams>& p, A sum, long long channel) {
  typedef typename Type::Memory T;
  if (kBias) sum += A(Type::up(((const T*)ig_pointer(p.operands[3]))[p.bias_offset + channel * p.bias_stride]));
  if (kRelu) sum = sum > A(0) ? sum : (sum != sum ? sum : A(0));
  return sum;
}
template <class Type, class A, bool kBias, bool kRelu> IG_FN void conv(const Argument<ConvParams>& p) {
  typedef typename Type::Memory T;
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= p.elements) return;
  const long long *X = p.x_size, *Y = p.y_size, *K = p.window, *S = p.stride, *D = p.dilation, *L = p.padding;
  const long long cg = p.C / p.groups, og = p.O / p.groups;
  A sum = A(0);
  const T* x = (const T*)ig_pointer(p.operands[1]);
  const T* w = (const T*)ig_pointer(p.operands[2]);
  long long t = i;
  const long long e = t % Y[2]; t /= Y[2];
  const long long d = t % Y[1]; t /= Y[1];
  const long long c = t % Y[0]; t /= Y[0];
  const long long o = t % p.O, n = t / p.O, first = o / og * cg;
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
          sum += A(Type::up(x[at(p.x, n, first + k, u, v, z)])) * A(Type::up(w[at(p.w, o, k, a, b, f)]));
        }
      }
    }
  sum = finish<Type, A, kBias, kRelu>(p, sum, o);
  ((T*)ig_pointer(p.operands[0]))[at(p.y, n, o, c, d, e)] = Type::down(typename Type::Compute(sum));
}
template <class Type, class A, bool kBias, bool kRelu> IG_FN void conv_grad_input(const Argument<ConvParams>& p) {
  typedef typename Type::Memory T;
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= p.elements) return;
  const long long *X = p.x_size, *Y = p.y_size, *K = p.window, *S = p.stride, *D = p.dilation, *L = p.padding;
  const long long cg = p.C / p.groups, og = p.O / p.groups;
  A sum = A(0);
  const T* y = (const T*)ig_pointer(p.operands[1]);
  const T* w = (const T*)ig_pointer(p.operands[2]);
  long long t = i;
  const long long e = t % X[2]; t /= X[2];
  const long long d = t % X[1]; t /= X[1];
  const long long c = t % X[0]; t /= X[0];
  const long long q = t % p.C, n = t / p.C, first = q / cg * og;
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
          sum += A(Type::up(y[at(p.y, n, first + k, u / S[0], v / S[1], z / S[2])])) *
                 A(Type::up(w[at(p.w, first + k, q % cg, a, b, f)]));
        }
      }
    }
  sum = finish<Type, A, kBias, kRelu>(p, sum, q);
  ((T*)ig_pointer(p.operands[0]))[at(p.x, n, q, c, d, e)] = Type::down(typename Type::Compute(sum));
}
template <class Type, class A> IG_FN void conv_grad_weight(const Argument<ConvParams>& p) {
  typedef typename Type::Memory T;
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= p.elements) return;
  const long long *X = p.x_size, *Y = p.y_size, *K = p.window, *S = p.stride, *D = p.dilation, *L = p.padding;
  const long long cg = p.C / p.groups, og = p.O / p.groups;
  A sum = A(0);
  const T* x = (const T*)ig_pointer(p.operands[1]);
  const T* y = (const T*)ig_pointer(p.operands[2]);
  long long t = i;
  const long long f = t % K[2]; t /= K[2];
  const long long b = t % K[1]; t /= K[1];
  const long long a = t % K[0]; t /= K[0];
  const long long k = t % cg, o = t / cg, from = o / og * cg + k;
  for (long long n = 0; n < p.N; ++n)
    for (long long c = 0; c < Y[0]; ++c) {
      const long long u = c * S[0] + a * D[0] - L[0];
      if (u < 0 || u >= X[0]) continue;
      for (long long d = 0; d < Y[1]; ++d) {
        const long long v = d * S[1] + b * D[1] - L[1];
        if (v < 0 || v >= X[1]) continue;
        for (long long e = 0; e < Y[2]; ++e) {
          const long long z = e * S[2] + f * D[2] - L[2];
          if (z < 0 || z >= X[2]) continue;
          sum += A(Type::up(x[at(p.x, n, from, u, v, z)])) * A(Type::up(y[at(p.y, n, o, c, d, e)]));
        }
      }
    }
  ((T*)ig_pointer(p.operands[0]))[at(p.w, o, k, a, b, f)] = Type::down(typename Type::Compute(sum));
}
)cuda";

const char* accumulator(DType t) {
  return is_float(t) ? (t == DType::Float64 ? "double" : "float") : "long long";
}

}  // namespace

CudaKernel simple_conv(const LibrarySpec& spec) {
  const DType t = spec.operands[0].dtype;
  for (const OperandSpec& o : spec.operands)
    if (o.dtype != t)
      throw Error(ErrorKind::Unsupported, info(spec.op).name, "operands of different types");
  const ConvShape s(spec);
  ConvParams p{};
  p.N = s.N, p.C = s.C, p.O = s.O, p.groups = s.G;
  for (size_t d = 0; d < 3; ++d) {
    p.x_size[d] = s.x[d], p.y_size[d] = s.y[d], p.window[d] = s.k[d];
    p.stride[d] = s.stride[d], p.dilation[d] = s.dilation[d], p.padding[d] = s.pad[d];
  }
  auto place = [](const ConvShape::Place& q) {
    return ConvParams::Place{q.offset, q.outer, q.channel, {q.dim[0], q.dim[1], q.dim[2]}};
  };
  p.x = place(s.px), p.w = place(s.pw), p.y = place(s.py);
  const bool bias = spec.has(Epilogue::Bias), relu = spec.has(Epilogue::Relu);
  if (bias) p.bias_offset = spec.operands[3].offset, p.bias_stride = spec.operands[3].stride[0];
  p.elements = spec.operands[0].shape.numel();
  const char* sum = accumulator(t);
  const std::string function = spec.op == Op::Conv ? instance("conv", t, sum, bias, relu)
                               : spec.op == Op::ConvGradInput
                                   ? instance("conv_grad_input", t, sum, bias, relu)
                                   : instance("conv_grad_weight", t, sum);
  return make_kernel("conv", kText, {{function, (p.elements + 255) / 256, 256, true}}, p);
}

}  // namespace ingot::cuda
