// cuDNN, loaded at run time, through its backend API. A build without cuDNN's headers, or a machine
// without the library, has no Dnn; attention is then decomposed by the compiler.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "backend/cuda/runtime/driver.h"

namespace ingot::cuda {

class Dnn {
 public:
  /// A handle on the current GPU, kept until the process ends; nullptr when there is no cuDNN
  /// (missing() says why).
  static std::unique_ptr<Dnn> open();
  /// Empty when the library is there; else what was looked for and how to get it.
  static std::string missing();
  void use(CUstream stream);
  void* handle = nullptr;  // cudnnHandle_t
  size_t version = 0;      // 91900 for 9.19

 private:
  Dnn() = default;
};

}  // namespace ingot::cuda
