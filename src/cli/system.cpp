#include "system.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <ingot/version.h>

#include "ingot/devices.h"
#include "ingot/environment.h"

namespace ingot::cli {
namespace fs = std::filesystem;

std::string System::read(const std::string& path) const {
  std::ifstream in(at(path), std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return in ? s.str() : "";
}

bool System::exists(const std::string& path) const {
  std::error_code e;
  return fs::exists(at(path), e);
}

bool System::open_to_all(const std::string& path) const {
  struct stat s {};
  return stat(at(path).c_str(), &s) == 0 && (s.st_mode & 0006) == 0006;
}

bool System::writable(const std::string& folder) const {
  struct stat s {};
  if (real()) return access(folder.c_str(), W_OK) == 0;
  return stat(at(folder).c_str(), &s) == 0 && (s.st_mode & 0222) != 0;
}

std::vector<std::string> System::list(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code e;
  for (fs::directory_iterator i(at(folder), e), end; !e && i != end; i.increment(e))
    names.push_back(i->path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> System::env(const std::string& name) const {
  if (real()) return environment(name);
  std::istringstream lines(read("/etc/environment"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
  return std::nullopt;
}

std::optional<System::Size> System::size_of(const std::string& path) const {
  if (real()) {
    struct statvfs s {};
    if (statvfs(path.c_str(), &s) != 0) return std::nullopt;
    const auto block = static_cast<double>(s.f_frsize);
    return Size{block * static_cast<double>(s.f_blocks), block * static_cast<double>(s.f_bavail)};
  }
  std::istringstream lines(read("/.sizes"));
  std::string name;
  for (Size s; lines >> name >> s.total >> s.free;)
    if (name == path) return s;
  return std::nullopt;
}

std::string System::ingot_folder() const {
  if (!real()) return "/usr/lib/ingot";
  Dl_info info{};
  std::vector<DeviceInfo> (*function)() = &list_devices;
  if (!dladdr(reinterpret_cast<void*>(function), &info) || !info.dli_fname) return ".";
  return fs::absolute(info.dli_fname).parent_path();
}

std::vector<std::string> System::library_folders() const {
  std::vector<std::string> folders;
  if (const auto path = env("LD_LIBRARY_PATH")) {
    std::istringstream parts(*path);
    for (std::string p; std::getline(parts, p, ':');)
      if (!p.empty()) folders.push_back(p);
  }
  for (const char* f :
       {"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/lib64",
        "/usr/local/cuda/compat", "/usr/lib/wsl/lib"})
    folders.emplace_back(f);
  folders.push_back(ingot_folder());
  const std::string home = env("HOME").value_or("/");
  for (const std::string& venv : {env("INGOT_VENV").value_or(home + "/.cache/ingot/venv")}) {
    for (const std::string& python : list(venv + "/lib")) {
      const std::string wheels = venv + "/lib/" + python + "/site-packages/nvidia";
      for (const std::string& wheel : list(wheels))
        folders.push_back(wheels + "/" + wheel + "/lib");
    }
  }
  return folders;
}

std::string System::find_library(const std::string& prefix) const {
  for (const std::string& folder : library_folders())
    for (const std::string& name : list(folder))
      if (name.starts_with(prefix)) return folder + "/" + name;
  return {};
}

}  // namespace ingot::cli
