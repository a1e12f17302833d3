// cuBLASLt, loaded at run time. The few functions and constants used have been stable since CUDA
// 11; they are declared here, so that the plug-in builds from cuda.h alone (a test compares them
// with cublasLt.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/cuda/runtime/driver.h"
#include "backend/cuda/runtime/tuning.h"
#include "ingot/dtype.h"

namespace ingot::cuda {

namespace lt {
using Handle = void*;
using MatmulDesc = void*;
using Layout = void*;
using Preference = void*;
struct Algo {
  uint64_t data[8];
};
struct Heuristic {
  Algo algo;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
enum DescAttribute : int {
  kTransA = 3,
  kTransB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kAuxPointer = 11,
  kAuxLd = 12,
  kBiasType = 26
};
enum LayoutAttribute : int { kBatchCount = 5, kBatchStride = 6 };
enum PreferenceAttribute : int {
  kMaxWorkspace = 1,
  kAlignA = 5,
  kAlignB = 6,
  kAlignC = 7,
  kAlignD = 8
};
enum EpilogueKind : int {
  kDefault = 1,
  kRelu = 2,
  kBias = 4,
  kGelu = 32,
  kAux = 128,
  kGeluGrad = 192,
  kSumA = 256,
  kSumB = 512
};
enum ComputeType : int {
  kCompute32F = 68,
  kCompute32FPedantic = 69,
  kCompute32FTf32 = 77,
  kCompute64F = 70
};
enum DataType : int { kF32 = 0, kF64 = 1, kF16 = 2, kBF16 = 14 };
/// cudaDataType of a dtype, or -1.
int data_type(DType t);
}  // namespace lt

struct BlasLtFunctions {
  int (*create)(lt::Handle*) = nullptr;
  size_t (*version)() = nullptr;
  const char* (*status_name)(int) = nullptr;
  int (*layout_create)(lt::Layout*, int type, uint64_t rows, uint64_t cols, int64_t ld) = nullptr;
  int (*layout_destroy)(lt::Layout) = nullptr;
  int (*layout_set)(lt::Layout, int attribute, const void*, size_t) = nullptr;
  int (*desc_create)(lt::MatmulDesc*, int compute, int scale) = nullptr;
  int (*desc_destroy)(lt::MatmulDesc) = nullptr;
  int (*desc_set)(lt::MatmulDesc, int attribute, const void*, size_t) = nullptr;
  int (*preference_create)(lt::Preference*) = nullptr;
  int (*preference_destroy)(lt::Preference) = nullptr;
  int (*preference_set)(lt::Preference, int attribute, const void*, size_t) = nullptr;
  int (*heuristic)(lt::Handle, lt::MatmulDesc, lt::Layout, lt::Layout, lt::Layout, lt::Layout,
                   lt::Preference, int, lt::Heuristic*, int*) = nullptr;
  int (*check_algo)(lt::Handle, lt::MatmulDesc, lt::Layout, lt::Layout, lt::Layout, lt::Layout,
                    const lt::Algo*, lt::Heuristic*) = nullptr;
  int (*matmul)(lt::Handle, lt::MatmulDesc, const void* alpha, const void* a, lt::Layout,
                const void* b, lt::Layout, const void* beta, const void* c, lt::Layout, void* d,
                lt::Layout, const lt::Algo*, void* workspace, size_t, CUstream) = nullptr;
  std::string path;

  /// Empty, or why the library is missing and how to get it.
  std::string load();
};
BlasLtFunctions& blaslt();

class Gpu;

/// A handle on one GPU.
class BlasLt {
 public:
  explicit BlasLt(Gpu& gpu);
  Gpu& gpu;
  lt::Handle handle = nullptr;
  Tuning tuning;
};

/// Throws Error(Internal) naming the call.
void check_lt(int status, const char* what);

}  // namespace ingot::cuda
