// Loading the plug-in: every way it can fail says which part failed and what to do, and the CPU
// continues.
#include <doctest/doctest.h>

#include <cstdlib>

#include "ingot/ingot.h"
#include "runtime/plugin.h"

using namespace ingot;

namespace {

std::string reason_with(const char* plugin, const char* driver, const char* blas) {
  setenv("INGOT_CUDA_PLUGIN", plugin, 1);
  setenv("INGOT_CUDA_DRIVER", driver, 1);
  setenv("INGOT_NVRTC", FAKE_CUDA, 1);
  setenv("INGOT_CUBLASLT", blas, 1);
  std::string reason;
  CHECK(load_cuda_plugin(reason) == nullptr);
  MESSAGE(reason);
  return reason;
}

bool says(const std::string& text, const char* what) {
  return text.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("what is missing is named, with the command that fixes it") {
  std::string none = reason_with("/nowhere/libingot_cuda.so", FAKE_CUDA, FAKE_CUDA);
  CHECK(says(none, "/nowhere/libingot_cuda.so"));
  CHECK(says(none, "cmake --preset cuda"));
  std::string other = reason_with(FAKE_CUDA, FAKE_CUDA, FAKE_CUDA);
  CHECK(says(other, "build and install both together"));
  std::string driver = reason_with(CUDA_PLUGIN, "/nowhere/libcuda.so.1", FAKE_CUDA);
  CHECK(says(driver, "no NVIDIA driver"));
  CHECK(says(driver, "nvidia-smi"));
  std::string blas = reason_with(CUDA_PLUGIN, FAKE_CUDA, "/nowhere/libcublasLt.so");
  CHECK(says(blas, "cuBLASLt was not found"));
  CHECK(says(blas, "pip install nvidia-cublas"));
  setenv("FAKE_CUDA_VERSION", "12020", 1);
  std::string old = reason_with(CUDA_PLUGIN, FAKE_CUDA, FAKE_CUDA);
  CHECK(says(old, "it supports CUDA 12.2, Ingot needs 12.4"));
  CHECK(says(old, "Install driver 550 or newer"));
  setenv("FAKE_CUDA_VERSION", "12040", 1);  // the fake NVRTC is of CUDA 13
  std::string compiler = reason_with(CUDA_PLUGIN, FAKE_CUDA, FAKE_CUDA);
  CHECK(says(compiler, "is newer than the driver, which supports CUDA 12.4"));
  CHECK(says(compiler, "pip install nvidia-cuda-nvrtc-cu12"));
  unsetenv("FAKE_CUDA_VERSION");
}

TEST_CASE("without a driver Device(\"cuda\") throws and the CPU works") {
  setenv("INGOT_CUDA_PLUGIN", CUDA_PLUGIN, 1);
  setenv("INGOT_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  try {
    Device d("cuda");
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::Device);
    CHECK(says(e.what(), "no NVIDIA driver"));
  }
  CHECK(Device::best() == Device("cpu"));
  CHECK(Device::all().size() == 1);
  CHECK((full({2}, 20.0) + 22.0).sum().item() == 84.0);
}
