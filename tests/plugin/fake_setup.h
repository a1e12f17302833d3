// The fake CUDA machine of a test program: the plug-in with the fake driver and libraries, a cache
// of separate kernels, and the machine's counters. One per program, made before the first use of
// a device.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace ingot::test {

struct FakeMachine {
  explicit FakeMachine(const std::string& name)
      : cache(std::filesystem::current_path() / ("fake_cache_" + name)) {
    setenv("INGOT_CUDA_PLUGIN", CUDA_PLUGIN, 1);
    for (const char* variable : {"INGOT_CUDA_DRIVER", "INGOT_NVRTC", "INGOT_CUBLASLT"})
      setenv(variable, FAKE_CUDA, 1);
    std::filesystem::remove_all(cache);
    setenv("INGOT_CACHE_DIR", cache.c_str(), 1);
    find(launches, "fake_cuda_launches");
    find(graph_launches, "fake_cuda_graph_launches");
    find(matmuls, "fake_cuda_matmuls");
    find(used, "fake_cuda_used");
  }
  /// A function of the machine's own.
  template <class F>
  void find(F& function, const char* name) const {
    function = reinterpret_cast<F>(dlsym(dlopen(FAKE_CUDA, RTLD_NOW), name));
  }
  std::filesystem::path cache;
  int (*launches)();
  int (*graph_launches)();
  int (*matmuls)();
  size_t (*used)();  // bytes of its memory
};

}  // namespace ingot::test
