// See blaslt.h.
#include "backend/cuda/cublaslt/blaslt.h"

#include <dlfcn.h>

#include "backend/cuda/runtime/find_library.h"
#include "backend/cuda/runtime/gpu.h"
#include "ingot/error.h"

namespace ingot::cuda {

namespace lt {
int data_type(DType t) {
  switch (t) {
    case DType::Float64:
      return kF64;
    case DType::Float32:
      return kF32;
    case DType::Float16:
      return kF16;
    case DType::BFloat16:
      return kBF16;
    default:
      return -1;
  }
}
}  // namespace lt

BlasLtFunctions& blaslt() {
  static BlasLtFunctions f;
  return f;
}

std::string BlasLtFunctions::load() {
  // The library of the driver's generation first.
  bool thirteen = driver().version >= 13000;
  LibraryQuery q{"INGOT_CUBLASLT",
                 thirteen ? std::vector<const char*>{"libcublasLt.so.13", "libcublasLt.so.12"}
                          : std::vector<const char*>{"libcublasLt.so.12"},
                 {"cu13/lib", "cublas/lib"}};
  std::string why;
  void* library = open_library(q, path, why);
  if (!library)
    return "cuBLASLt was not found (" + why + "). Install it with `pip install nvidia-cublas" +
           (thirteen ? "" : "-cu12") +
           "` and set INGOT_VENV to that Python environment, install a CUDA toolkit, or set "
           "INGOT_CUBLASLT "
           "to the library's path";
  std::string missing;
  auto find = [&](auto& slot, const char* name) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(library, name));
    if (!slot && missing.empty()) missing = name;
  };
  find(create, "cublasLtCreate");
  find(version, "cublasLtGetVersion");
  find(status_name, "cublasLtGetStatusName");
  find(layout_create, "cublasLtMatrixLayoutCreate");
  find(layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(layout_set, "cublasLtMatrixLayoutSetAttribute");
  find(desc_create, "cublasLtMatmulDescCreate");
  find(desc_destroy, "cublasLtMatmulDescDestroy");
  find(desc_set, "cublasLtMatmulDescSetAttribute");
  find(preference_create, "cublasLtMatmulPreferenceCreate");
  find(preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(check_algo, "cublasLtMatmulAlgoCheck");
  find(matmul, "cublasLtMatmul");
  if (!missing.empty())
    return "the cuBLASLt in " + path + " has no " + missing + ": install a newer one";
  return {};
}

void check_lt(int status, const char* what) {
  if (status == 0) return;
  throw Error(ErrorKind::Internal, "matmul",
              std::string(what) + " failed: " + blaslt().status_name(status));
}

BlasLt::BlasLt(Gpu& g) : gpu(g) {
  gpu.make_current();
  check_lt(blaslt().create(&handle), "starting cuBLASLt");
  tuning.open(gpu.architecture + "-" + std::to_string(gpu.multiprocessors) + "-cublaslt" +
              std::to_string(blaslt().version()));
}

}  // namespace ingot::cuda
