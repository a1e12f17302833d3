// See driver.h.
#include "backend/cuda/runtime/driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/env.h"
#include "ingot/error.h"

namespace ingot::cuda {
namespace {

// The name behind cuda.h's macro: cuMemAlloc is cuMemAlloc_v2.
#define INGOT_NAME_OF(x) #x
#define INGOT_EXPANDED_NAME_OF(x) INGOT_NAME_OF(x)

std::string version_text(int v) {
  return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
}

constexpr int kOldest = 12040;  // CUDA 12.4

}  // namespace

Driver& driver() {
  static Driver d;
  return d;
}

std::string Driver::load() {
  const auto named = env::path("INGOT_CUDA_DRIVER");
  std::string tried;
  void* library = nullptr;
  for (const char* name :
       {named ? named->c_str() : "libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
        "/usr/lib/wsl/lib/libcuda.so.1"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library || named) break;
    if (tried.empty()) tried = dlerror();
  }
  if (!library)
    return "no NVIDIA driver: libcuda.so.1 could not be loaded (" +
           (tried.empty() ? named.value_or("") : tried) +
           "). Install the driver (Debian: apt install nvidia-driver; Ubuntu: ubuntu-drivers "
           "install) and "
           "see that nvidia-smi "
           "works, or use the device \"cpu\"";
#define X(member, function)                                                                      \
  member = reinterpret_cast<decltype(member)>(dlsym(library, INGOT_EXPANDED_NAME_OF(function))); \
  if (!member)                                                                                   \
    return "the NVIDIA driver is too old: it has no " INGOT_EXPANDED_NAME_OF(                    \
        function) ". Install driver 550 or newer (CUDA 12.4)";
  INGOT_CUDA_FUNCTIONS(X)
#undef X
#define X(member, function) \
  member = reinterpret_cast<decltype(member)>(dlsym(library, INGOT_EXPANDED_NAME_OF(function)));
  INGOT_CUDA_VMM_FUNCTIONS(X)
#undef X
  // Newer headers mean a second version, which older drivers do not have; the two differ in what
  // they measure, not in form.
  for (const char* name : {"cuEventElapsedTime_v2", "cuEventElapsedTime"})
    if (!event_elapsed_time)
      event_elapsed_time = reinterpret_cast<decltype(event_elapsed_time)>(dlsym(library, name));
  // The numbers nvidia-smi shows, unless the user chose otherwise.
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  if (CUresult r = init(0))
    return "the NVIDIA driver does not start: " + describe(r) +
           ". See what nvidia-smi says; in a container, pass the GPU "
           "(docker run --gpus all)";
  if (CUresult r = driver_get_version(&version))
    return "the NVIDIA driver gives no version: " + describe(r);
  if (version < kOldest)
    return "the NVIDIA driver is too old: it supports CUDA " + version_text(version) +
           ", Ingot needs " + version_text(kOldest) + ". Install driver 550 or newer";
  return {};
}

std::string describe(CUresult r) {
  const char *name = nullptr, *text = nullptr;
  if (driver().get_error_name) driver().get_error_name(r, &name);
  if (driver().get_error_string) driver().get_error_string(r, &text);
  return std::string(name ? name : "unknown error") + " (" +
         (text ? text : std::to_string(static_cast<int>(r))) + ")";
}

void check(CUresult r, const char* what) {
  if (r == CUDA_SUCCESS) return;
  throw Error(
      ErrorKind::Internal, "cuda", std::string(what) + " failed: " + describe(r), {},
      "run again with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the kernel");
}

}  // namespace ingot::cuda
