// See find_library.h.
#include "backend/cuda/runtime/find_library.h"

#include <dlfcn.h>
#include <glob.h>

#include "base/env.h"

namespace ingot::cuda {
namespace {

void add_matches(const std::string& pattern, std::vector<std::string>& list) {
  // A variable such as CUDA_HOME that holds a relative path must not bring code from the current
  // folder.
  if (pattern.empty() || pattern[0] != '/') return;
  glob_t g{};
  if (glob(pattern.c_str(), 0, nullptr, &g) == 0)
    for (size_t i = 0; i < g.gl_pathc; ++i) list.emplace_back(g.gl_pathv[i]);
  globfree(&g);
}

std::vector<std::string> candidates(const LibraryQuery& q) {
  std::vector<std::string> list;
  if (const auto named = env::path(q.variable)) return {*named};
  std::vector<std::string> environments;
  for (const auto& e : {env::path("INGOT_VENV"), env::path("VIRTUAL_ENV")})
    if (e) environments.push_back(*e);
  if (const auto home = env::path("HOME")) environments.push_back(*home + "/.cache/ingot/venv");
  for (const char* name : q.sonames) {
    for (const std::string& e : environments)
      for (const char* w : q.wheels)
        add_matches(e + "/lib/python3*/site-packages/nvidia/" + w + "/" + name, list);
    for (const auto& toolkit : {env::path("CUDA_HOME"), env::path("CUDA_PATH")})
      if (toolkit) add_matches(*toolkit + "/lib64/" + name, list);
    list.emplace_back(name);
    add_matches("/usr/local/cuda*/lib64/" + std::string(name), list);
    add_matches("/usr/local/cuda*/targets/x86_64-linux/lib/" + std::string(name), list);
    for (const char* w : q.wheels)
      for (const char* site : {"/usr/local/lib/python3*/dist-packages/nvidia/",
                               "/usr/lib/python3/dist-packages/nvidia/",
                               "/opt/*/.venv/lib/python3*/site-packages/nvidia/"})
        add_matches(site + std::string(w) + "/" + name, list);
  }
  return list;
}

}  // namespace

void* open_library(const LibraryQuery& query, std::string& path, std::string& why) {
  why.clear();
  for (const std::string& c : candidates(query)) {
    if (void* handle = dlopen(c.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      path = c;
      return handle;
    }
    const char* e = dlerror();
    why += std::string(why.empty() ? "" : "; ") + (e ? e : c);
  }
  return nullptr;
}

}  // namespace ingot::cuda
