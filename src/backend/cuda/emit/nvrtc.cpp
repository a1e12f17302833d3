// See emit/nvrtc.h. The few functions used have had the same C signatures since CUDA 11, so no
// header is needed.
//
// Floating-point contraction is off: a multiply and an add that happen to land in one kernel must
// give the same bits as in two, and the kernels wait for memory, not for arithmetic.
#include "backend/cuda/emit/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>

#include <algorithm>

#include "base/env.h"

namespace ingot {

struct Nvrtc::Functions {
  using Program = void*;
  int (*version)(int*, int*);
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy)(Program*);
  int (*compile)(Program, int, const char* const*);
  int (*cubin_size)(Program, size_t*);
  int (*cubin)(Program, char*);
  int (*ptx_size)(Program, size_t*);
  int (*ptx)(Program, char*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  const char* (*error)(int);
};

namespace {

std::vector<std::string> matches(const std::string& pattern) {
  std::vector<std::string> found;
  glob_t g{};
  if (glob(pattern.c_str(), 0, nullptr, &g) == 0)
    for (size_t i = 0; i < g.gl_pathc; ++i) found.emplace_back(g.gl_pathv[i]);
  globfree(&g);
  std::sort(found.rbegin(), found.rend());  // newer versions first
  return found;
}

/// Where NVRTC may be, best first: what the user names, Python environments, toolkits, the loader's
/// own search.
std::vector<std::string> candidates() {
  std::vector<std::string> list;
  auto add = [&](const std::string& pattern) {
    // A variable such as CUDA_HOME that holds a relative path must not bring code from the current
    // folder.
    if (pattern.empty() || pattern[0] != '/') return;
    for (std::string& s : matches(pattern)) list.push_back(std::move(s));
  };
  if (const auto exact = env::path("INGOT_NVRTC")) list.push_back(*exact);
  auto add_venv = [&](const std::string& venv) {
    for (const char* folder : {"cu13/lib", "cuda_nvrtc/lib"})
      add(venv + "/lib/python3*/site-packages/nvidia/" + folder + "/libnvrtc.so.1[2-9]");
  };
  for (const auto& venv : {env::path("INGOT_VENV"), env::path("VIRTUAL_ENV")})
    if (venv) add_venv(*venv);
  if (const auto home = env::path("HOME")) add_venv(*home + "/.cache/ingot/venv");
  for (const auto& toolkit : {env::path("CUDA_HOME"), env::path("CUDA_PATH")})
    if (toolkit) add(*toolkit + "/lib64/libnvrtc.so");
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
    list.emplace_back(name);
  add("/usr/local/cuda/lib64/libnvrtc.so");
  add("/usr/local/cuda-*/lib64/libnvrtc.so");
  return list;
}

}  // namespace

bool Nvrtc::load(const std::string& path, std::string& why) {
  // NVRTC opens its library of built-ins by name alone; outside the loader's path it is found only
  // if it is there already.
  if (size_t slash = path.rfind('/'); slash != std::string::npos)
    for (const std::string& builtins : matches(path.substr(0, slash) + "/libnvrtc-builtins.so.*"))
      dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL);
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    why = dlerror();
    return false;
  }
  static Functions f;
  auto find = [&](auto& slot, const char* name) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(library_, name));
    if (slot == nullptr) why = std::string("it has no ") + name;
  };
  find(f.version, "nvrtcVersion");
  find(f.create, "nvrtcCreateProgram");
  find(f.destroy, "nvrtcDestroyProgram");
  find(f.compile, "nvrtcCompileProgram");
  find(f.cubin_size, "nvrtcGetCUBINSize");
  find(f.cubin, "nvrtcGetCUBIN");
  find(f.ptx_size, "nvrtcGetPTXSize");
  find(f.ptx, "nvrtcGetPTX");
  find(f.log_size, "nvrtcGetProgramLogSize");
  find(f.log, "nvrtcGetProgramLog");
  find(f.error, "nvrtcGetErrorString");
  if (why.empty() && (f.version(&major_, &minor_) != 0 || major_ < 12))
    why = "its version is below 12";
  if (!why.empty()) {
    dlclose(library_);
    return false;
  }
  f_ = &f;
  path_ = path;
  return true;
}

static int newest_wanted = 99;
void Nvrtc::set_newest(int major) { newest_wanted = major; }

bool Nvrtc::search(std::string& tried, int newest) {
  tried = "NVRTC (libnvrtc.so.12 or newer) was not found. Looked at:\n";
  for (const std::string& path : candidates()) {
    std::string why;
    if (load(path, why)) {
      if (major_ <= newest) return true;
      dlclose(library_);
      why = "it is newer than the driver";
    }
    tried += "  " + path + ": " + why + "\n";
  }
  tried +=
      "Install a CUDA toolkit, or `pip install nvidia-cuda-nvrtc` and set INGOT_VENV to that "
      "Python "
      "environment, or set "
      "INGOT_NVRTC to the library's path.";
  return false;
}

const Nvrtc* Nvrtc::get() {
  static Nvrtc n;
  static std::string tried;
  static const bool found = n.search(tried, newest_wanted) || n.search(tried, 99);
  return found ? &n : nullptr;
}

std::string Nvrtc::missing() {
  std::string tried;
  Nvrtc n;
  return n.search(tried, 99) ? "" : tried;
}

NvrtcResult Nvrtc::compile(const std::string& source, const std::string& arch, bool verbose) const {
  NvrtcResult r;
  Functions::Program program = nullptr;
  int rc = f_->create(&program, source.c_str(), "ingot_kernel.cu", 0, nullptr, nullptr);
  if (rc != 0) {
    r.log = f_->error(rc);
    return r;
  }
  std::string target = "--gpu-architecture=" + arch;
  std::vector<const char*> options{target.c_str(), "--std=c++17", "--fmad=false",
                                   "--device-as-default-execution-space", "--disable-warnings"};
  if (verbose) options.push_back("--ptxas-options=-v");
  rc = f_->compile(program, static_cast<int>(options.size()), options.data());
  r.ok = rc == 0;
  size_t size = 0;
  f_->log_size(program, &size);
  r.log.resize(size);
  f_->log(program, r.log.data());
  while (!r.log.empty() && r.log.back() == '\0') r.log.pop_back();
  if (r.ok) {
    bool ptx = arch.starts_with("compute_");
    (ptx ? f_->ptx_size : f_->cubin_size)(program, &size);
    r.code.resize(size);
    (ptx ? f_->ptx : f_->cubin)(program, r.code.data());
  } else if (r.log.empty()) {
    r.log = f_->error(rc);
  }
  f_->destroy(&program);
  return r;
}

}  // namespace ingot
