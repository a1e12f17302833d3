// See plugin.h. The plug-in is never unloaded: tensors may outlive main.
#include "runtime/plugin.h"

#include <dlfcn.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/env.h"
#include "ingot/version.h"

namespace ingot {
namespace {

/// The folder this library was loaded from, with a slash; empty when it is unknown.
std::string own_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(&own_folder), &info) || !info.dli_fname) return {};
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

}  // namespace

std::unique_ptr<Backend> load_cuda_plugin(std::string& reason) {
  const auto named = env::path("INGOT_CUDA_PLUGIN");
  std::vector<std::string> places;
  if (named)
    places = {*named};
  else
    places = {own_folder() + "libingot_cuda.so", "libingot_cuda.so"};
  void* library = nullptr;
  std::string tried;
  for (const std::string& p : places) {
    if ((library = dlopen(p.c_str(), RTLD_NOW | RTLD_LOCAL))) break;
    const char* e = dlerror();
    tried += (tried.empty() ? "" : "; ") + std::string(e ? e : p);
  }
  if (!library) {
    reason = "the CUDA plug-in libingot_cuda.so could not be loaded (" + tried +
             "). Build it with `cmake --preset cuda && cmake --build --preset cuda`, or use the "
             "device \"cpu\"";
    return nullptr;
  }
  auto version = reinterpret_cast<const char* (*)()>(dlsym(library, "ingot_cuda_version"));
  auto make = reinterpret_cast<Backend* (*)(std::string*)>(dlsym(library, "ingot_cuda_backend"));
  if (!version || !make || std::strcmp(version(), INGOT_VERSION_STRING) != 0) {
    reason = std::string("the CUDA plug-in belongs to Ingot ") +
             (version ? version() : "of another kind") + ", this is " + INGOT_VERSION_STRING +
             ": build and install both together";
    return nullptr;
  }
  return std::unique_ptr<Backend>(make(&reason));
}

}  // namespace ingot
