// Compiled where cuBLASLt's own header is: what blaslt.h declares by itself must be what the header
// says.
#include <cublasLt.h>

#include "backend/cuda/cublaslt/blaslt.h"

namespace ingot::cuda::lt {

static_assert(sizeof(Algo) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(Heuristic, workspace) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(kTransA == int{CUBLASLT_MATMUL_DESC_TRANSA} &&
              kTransB == int{CUBLASLT_MATMUL_DESC_TRANSB});
static_assert(kEpilogue == int{CUBLASLT_MATMUL_DESC_EPILOGUE} &&
              kBiasPointer == int{CUBLASLT_MATMUL_DESC_BIAS_POINTER});
static_assert(kBiasType == int{CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE});
static_assert(kBatchCount == int{CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT} &&
              kBatchStride == int{CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET});
static_assert(kMaxWorkspace == int{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES} &&
              kAlignA == int{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES});
static_assert(kAlignD == int{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES});
static_assert(kDefault == int{CUBLASLT_EPILOGUE_DEFAULT} && kRelu == int{CUBLASLT_EPILOGUE_RELU} &&
              kBias == int{CUBLASLT_EPILOGUE_BIAS});
static_assert(kGelu == int{CUBLASLT_EPILOGUE_GELU} && kGeluGrad == int{CUBLASLT_EPILOGUE_DGELU});
static_assert(kSumA == int{CUBLASLT_EPILOGUE_BGRADA} && kSumB == int{CUBLASLT_EPILOGUE_BGRADB});
static_assert((kGelu | kAux | kBias) == int{CUBLASLT_EPILOGUE_GELU_AUX_BIAS});
static_assert(kAuxPointer == int{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER} &&
              kAuxLd == int{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD});
static_assert(kCompute32F == int{CUBLAS_COMPUTE_32F} &&
              kCompute32FTf32 == int{CUBLAS_COMPUTE_32F_FAST_TF32});
static_assert(kCompute64F == int{CUBLAS_COMPUTE_64F} &&
              kCompute32FPedantic == int{CUBLAS_COMPUTE_32F_PEDANTIC});
static_assert(kF32 == int{CUDA_R_32F} && kF64 == int{CUDA_R_64F} && kF16 == int{CUDA_R_16F} &&
              kBF16 == int{CUDA_R_16BF});

}  // namespace ingot::cuda::lt
