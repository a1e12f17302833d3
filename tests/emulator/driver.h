// The CUDA driver, loaded at run time, as far as tests of generated text need it: no CUDA header,
// no plug-in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/cuda/emit/text.h"

namespace ingot::test {

class Driver {
 public:
  /// nullptr when there is no driver or no GPU; missing() says which.
  static Driver* get();
  static std::string missing();

  std::string name, arch;  // "NVIDIA H200", "sm_90"
  int multiprocessors = 0;

  void* allocate(size_t bytes);
  void release(void* p);
  void upload(void* to, const void* from, size_t bytes);
  void download(void* to, const void* from, size_t bytes);
  void copy(void* to, const void* from, size_t bytes);
  void synchronize();

  /// A compiled text; lives as long as the process.
  struct Kernel {
    void* function[2] = {};
    std::string log;
  };
  Kernel compile(const CudaText& text, const CudaLaunch& launch, bool verbose = false);
  void launch(const Kernel& kernel, const CudaText& text, const CudaLaunch& launch,
              const CudaHeader& header);
  /// Microseconds of one call of f, the median of several after a warm-up.
  template <class F>
  double time(F f, int repeats = 20);
  double elapsed(void (*f)(void*), void* data, int repeats);

 private:
  Driver() = default;
  std::string start();
  struct Api;
  Api* api_ = nullptr;
};

template <class F>
double Driver::time(F f, int repeats) {
  return elapsed([](void* p) { (*static_cast<F*>(p))(); }, &f, repeats);
}

}  // namespace ingot::test
