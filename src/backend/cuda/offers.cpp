// See offers.h. codegen/offer.h says how the table is read.
#include "backend/cuda/offers.h"

#include "backend/cuda/cublaslt/matmul.h"
#include "backend/cuda/cublaslt/recurrent.h"
#include "backend/cuda/cudnn/conv_epilogue.h"
#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/runtime/gpu.h"
#include "runtime/backend.h"
#ifdef INGOT_HAVE_CUDNN
#include "backend/cuda/cudnn/attention.h"
#include "backend/cuda/cudnn/conv.h"
#include "backend/cuda/cudnn/dnn.h"
#endif

namespace ingot::cuda {
namespace {

using Made = std::unique_ptr<Executable>;

Made own(Gpu& gpu, CudaKernel k, const LibrarySpec& spec) {
  auto module = gpu.modules->get(k.text);
  return std::make_unique<KernelExecutable>(
      k.text, std::move(k.launch), 1, static_cast<int>(spec.operands.size()), std::move(module));
}

// Products

const char* row_refuses(const LibrarySpec& s) {
  return is_row_matmul(s) ? nullptr : "it is for a few rows by weights that are dense along K";
}
Made row(Gpu& g, const LibrarySpec& s, const char*&) { return own(g, row_matmul(s), s); }

const char* small_refuses(const LibrarySpec& s) {
  return is_small_matmul(s) ? nullptr : "it is for small products of float32";
}
Made small(Gpu& g, const LibrarySpec& s, const char*&) { return own(g, small_matmul(s), s); }

const char* pass_refuses(const LibrarySpec& s) {
  return has_pass(s) ? nullptr : "nothing follows that needs a pass";
}
const char* simple_refuses(const LibrarySpec& s) {
  return has_pass(s) ? "it has no second result" : nullptr;
}
Made simple(Gpu& g, const LibrarySpec& s, const char*&) { return own(g, simple_matmul(s), s); }

// Convolutions

#ifdef INGOT_HAVE_CUDNN
const char* no_cudnn() { return Dnn::missing().empty() ? nullptr : "the library was not found"; }

const char* cudnn_conv_refuses(const LibrarySpec& s) {
  const char* missing = no_cudnn();
  return missing ? missing : conv_refuses(s);
}
Made cudnn_conv(Gpu& g, const LibrarySpec& s, const char*& why) {
  Made made = prepare_conv(g, s);
  if (!made) why = "the library has no engine for it";
  return made;
}
#endif

const char* split_refuses(const LibrarySpec& s) {
  return has_residual_or_relu(s) ? nullptr : "no residual and no ReLU follow";
}
Made split(Gpu& g, const LibrarySpec& s, const char*&) {
  const KernelSpec epilogue = residual_relu_kernel(s);
  return std::make_unique<SplitConv>(prepare_library(g, without_residual_and_relu(s)),
                                     compile_kernel(g, {&epilogue, 1}), residual_relu_buffers(s));
}
Made any_conv(Gpu& g, const LibrarySpec& s, const char*&) { return own(g, simple_conv(s), s); }
Made folded(Gpu& g, const LibrarySpec& s, const char*&) { return own(g, fold(s), s); }

// Attention

const char* row_attention_refuses(const LibrarySpec& s) {
  return is_row_attention(s) ? nullptr : "it is for one query per head, without a gradient";
}
Made one_row(Gpu& g, const LibrarySpec& s, const char*&) {
  return own(g, row_attention(s, g.major >= 9), s);
}
const char* short_refuses(const LibrarySpec& s) {
  return is_short_attention_grad(s) ? nullptr : "it is for gradients of short sequences in 16 bits";
}
Made short_gradient(Gpu& g, const LibrarySpec& s, const char*&) {
  return own(g, short_attention_grad(s), s);
}
#ifdef INGOT_HAVE_CUDNN
const char* cudnn_attention_refuses(const LibrarySpec& s) {
  const char* missing = no_cudnn();
  return missing ? missing : attention_refuses(attention_problem(s));
}
Made cudnn_attention(Gpu& g, const LibrarySpec& s, const char*& why) {
  Made made = prepare_attention(g, attention_problem(s));
  if (!made) why = "the library has no engine for it";
  return made;
}
#endif

// Index calls

Made scattered(Gpu& g, const LibrarySpec& s, const char*&) {
  return own(g, scatter(s, g.multiprocessors), s);
}
Made scanned(Gpu& g, const LibrarySpec& s, const char*&) {
  return own(g, scan(s, g.multiprocessors), s);
}
Made sorted(Gpu& g, const LibrarySpec& s, const char*&) { return own(g, sort(s), s); }

constexpr OpSet kMatmul{Op::Matmul};
constexpr OpSet kRecurrent(is_recurrent);
constexpr OpSet kConvs{Op::Conv, Op::ConvGradInput, Op::ConvGradWeight};
constexpr OpSet kAttention{Op::Attention, Op::AttentionGrad};
using enum Epilogue;
constexpr Epilogues kActivated{Bias, Relu, GeluTanh};
constexpr Epilogues kSmall{Bias, Relu, GeluTanh, ReluGrad, BiasGrad};
constexpr Epilogues kLibrary{Bias, Relu, GeluTanh, KeepSum, GeluTanhGrad, BiasGrad};
constexpr Epilogues kPass{Bias, GeluTanh, KeepSum, GeluTanhGrad, BiasGrad};
constexpr Epilogues kSimple{Bias, Relu, GeluTanh, ReluGrad};
constexpr Epilogues kConv{Bias, Residual, Relu};

// clang-format off
const LibraryKernel kTable[] = {
    {{"few rows",            kMatmul, kActivated, row_refuses},               row},
    {{"small",               kMatmul, kSmall, small_refuses},                 small},
    {{"cuBLASLt",            kMatmul, kLibrary, lt_matmul_refuses},           prepare_lt_matmul},
    {{"product and pass",    kMatmul, kPass, pass_refuses},                   prepare_matmul_and_pass},
    {{"16 x 16 tiles",       kMatmul, kSimple, simple_refuses},               simple},
#ifdef INGOT_HAVE_CUDNN
    {{"cuDNN",               kConvs, kConv, cudnn_conv_refuses, true},        cudnn_conv},
#endif
    {{"convolution and pass", {Op::Conv}, kConv, split_refuses, true},        split},
    {{"an output a thread",  kConvs, {Bias, Relu}, nullptr, true},            any_conv},
    {{"fold",                {Op::Fold}, {}},                                 folded},
    {{"one row",             {Op::Attention}, {}, row_attention_refuses},     one_row},
    {{"short gradient",      {Op::AttentionGrad}, {}, short_refuses},         short_gradient},
#ifdef INGOT_HAVE_CUDNN
    {{"cuDNN",               kAttention, {}, cudnn_attention_refuses},        cudnn_attention},
#endif
    {{"product and cell",    kRecurrent, {}, recurrent_refuses},             prepare_recurrent},
    {{"scatter",             {Op::ScatterAdd, Op::Scatter}, {}},              scattered},
    {{"scan",                {Op::Scan}, {}, scan_refuses},                   scanned},
    {{"sort",                {Op::Sort}, {}, sort_refuses},                   sorted},
};
// clang-format on

}  // namespace

std::span<const LibraryKernel> library_kernels() { return kTable; }

std::unique_ptr<Executable> prepare_library(Gpu& gpu, const LibrarySpec& spec) {
  gpu.make_current();
  return make_offered(library_kernels(), spec, [&](const LibraryKernel& kernel, const char*& why) {
    return kernel.prepare(gpu, spec, why);
  });
}

}  // namespace ingot::cuda
