// What libingot_dnnl.so offers: oneDNN's convolutions, one thread each, activations channels-last.
// Plain C types only: the module is built with oneDNN's headers and knows nothing else of Ingot;
// libingot never sees oneDNN and starts without it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ingot::cpu {

struct DnnlConvDesc {
  enum Kind : int32_t { Forward, GradInput, GradWeight };
  int32_t kind, dims;
  int32_t bf16;  // activations and weights; a weight's gradient is float32 always
  int32_t bias;  // Forward
  int64_t N, C, O, G;
  int64_t x[3], y[3], k[3], stride[3], dilation[3], front[3], behind[3];  // the first `dims` count
  bool operator==(const DnnlConvDesc&) const = default;
};

/// The layout of a convolution's weight: dims (groups first, when there are several) cut into
/// blocks.
struct DnnlBlocking {
  int32_t rank;
  int64_t size[6], padded[6], stride[6];  // stride of whole blocks
  int32_t blocks;
  int64_t block[12];
  int32_t dim[12];
  int64_t bytes;
};

struct DnnlApi {
  int32_t version;  // of this struct
  /// nullptr when oneDNN has no fast code for it.
  void* (*conv_create)(const DnnlConvDesc*);
  void (*conv_destroy)(void*);
  void (*conv_weight)(void*, DnnlBlocking*);
  size_t (*conv_scratch)(void*);
  /// a, b: the operands in the order of the call (x, w / gy, w / x, gy); out: y, gx or gw. bias:
  /// Forward, or nullptr.
  void (*conv_run)(void*, const void* a, const void* b, void* out, const void* bias, void* scratch);
};
inline constexpr int32_t kDnnlApiVersion = 1;

}  // namespace ingot::cpu

extern "C" const ingot::cpu::DnnlApi* ingot_dnnl_api();
