// The fake CUDA machine of a test program: the plug-in with the fake driver and libraries, a cache of kernels
// of its own, and the machine's counters. One per program, made before the first use of a device.
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
    void* fake = dlopen(FAKE_CUDA, RTLD_NOW);
    launches = reinterpret_cast<int (*)()>(dlsym(fake, "fake_cuda_launches"));
    graph_launches = reinterpret_cast<int (*)()>(dlsym(fake, "fake_cuda_graph_launches"));
    matmuls = reinterpret_cast<int (*)()>(dlsym(fake, "fake_cuda_matmuls"));
    used = reinterpret_cast<size_t (*)()>(dlsym(fake, "fake_cuda_used"));
  }
  std::filesystem::path cache;
  int (*launches)();
  int (*graph_launches)();
  int (*matmuls)();
  size_t (*used)();  // bytes of its memory
};

}  // namespace ingot::test
