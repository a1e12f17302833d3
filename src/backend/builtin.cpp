// The one place that knows which backends exist.
#include <memory>

#include "backend/cpu/cpu_backend.h"
#include "backend/null/null_backend.h"
#include "runtime/plugin.h"

namespace ingot {

std::unique_ptr<Backend> make_builtin_backend(DeviceType type, std::string& reason) {
  switch (type) {
    case DeviceType::CPU:
      return make_cpu_backend();
    case DeviceType::Null:
      return make_null_backend();
    case DeviceType::CUDA:
      return load_cuda_plugin(reason);
  }
  return nullptr;
}

}  // namespace ingot
