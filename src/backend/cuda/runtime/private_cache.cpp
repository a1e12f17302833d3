// See private_cache.h.
#include "backend/cuda/runtime/private_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <iostream>

#include "base/env.h"
#include "base/sha256.h"

namespace ingot::cuda {
namespace {

constexpr size_t kDigits = 64;
const std::string kMagic = "ingot kernel 1\n";

void warn_once(const std::string& path, const char* why) {
  static std::atomic<bool> warned = false;
  if (warned.exchange(true)) return;
  std::cerr << "ingot: the cache " << path << " is not used: " << why
            << ". Give it to your user alone (chown, chmod go-w), or name another folder with "
               "INGOT_CACHE_DIR"
            << std::endl;
}

/// Is it ours, and nobody else's to write? Says why not.
bool ours(const struct stat& info, const std::string& path) {
  if (info.st_uid != ::geteuid()) return warn_once(path, "it belongs to another user"), false;
  if (info.st_mode & (S_IWGRP | S_IWOTH))
    return warn_once(path, "other users may write to it"), false;
  return true;
}

bool private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ELOOP || errno == ENOTDIR) warn_once(path, "it is a link or no folder");
    return false;
  }
  struct stat info {};
  const bool good = ::fstat(fd, &info) == 0 && ours(info, path);
  ::close(fd);
  return good;
}

}  // namespace

std::string cache_folder() {
  if (!env::flag("INGOT_CACHE")) return {};
  const std::string named = env::path("INGOT_CACHE_DIR").value_or(""),
                    home = env::path("HOME").value_or("");
  if (named.empty() && home.empty()) return {};
  const std::string folder = named.empty() ? home + "/.cache/ingot" : named;
  std::error_code failed;
  const std::filesystem::path parent = std::filesystem::path(folder).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, failed);
  // Whoever may write to the outer folder could replace the inner one.
  return private_folder(folder) && private_folder(folder + "/cubin") ? folder : std::string();
}

std::string read_private(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return {};
  struct stat info {};
  std::string all;
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && ours(info, path)) {
    all.resize(static_cast<size_t>(info.st_size));
    size_t done = 0;
    while (done < all.size()) {
      const ssize_t n = ::read(fd, all.data() + done, all.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    all.resize(done);
  }
  ::close(fd);
  return all;
}

bool write_private(const std::string& path, const std::string& text) {
  std::string part = path + ".XXXXXX";
  const int fd = ::mkostemp(part.data(), O_CLOEXEC);  // 0600
  if (fd < 0) return false;
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  const bool whole = done == text.size() && ::fsync(fd) == 0;
  if (::close(fd) == 0 && whole && ::rename(part.c_str(), path.c_str()) == 0) return true;
  ::unlink(part.c_str());
  return false;
}

std::string sealed(const std::string& made_from, const std::string& code) {
  return kMagic + sha256(made_from) + "\n" + sha256(code) + "\n" + code;
}

std::string unsealed(const std::string& file, const std::string& made_from) {
  const size_t head = kMagic.size() + 2 * (kDigits + 1);
  if (file.size() <= head) return {};
  const std::string code = file.substr(head);
  return file.compare(0, head, kMagic + sha256(made_from) + "\n" + sha256(code) + "\n") == 0
             ? code
             : std::string();
}

FileLock::FileLock(const std::string& path)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) {
  while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace ingot::cuda
