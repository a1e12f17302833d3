// See lock.h.
#include "io/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "io/file.h"

namespace ingot::io {
namespace {

struct Held {
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<FolderLock>> locks;
};
Held& held() {
  static Held* h = new Held;
  return *h;
}

// "process 1234 on host", as the holder wrote it.
std::string holder(int fd) {
  char text[400] = {};
  const ssize_t n = ::pread(fd, text, sizeof text - 1, 0);
  std::string line(text, n > 0 ? static_cast<size_t>(n) : 0);
  line = line.substr(0, line.find('\n'));
  return line.empty() ? "another process" : printable(line);
}

}  // namespace

std::shared_ptr<FolderLock> FolderLock::take(const std::string& folder, const char* op,
                                             const SourceLoc& loc) {
  const std::string path = folder + "/.lock";
  // Closes the file even if something throws from here on: an open file would keep the folder
  // locked.
  std::shared_ptr<FolderLock> lock(new FolderLock(-1));
  const int fd = lock->fd_ =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (fd < 0) {
    if (errno == EROFS || errno == EACCES || errno == EPERM) return nullptr;  // only read here
    fail_io(op, path, std::string("cannot be opened: ") + std::strerror(errno), loc);
  }
  struct stat info {};
  ::fstat(fd, &info);
  Held& h = held();
  const std::lock_guard guard(h.mutex);
  auto& slot = h.locks[{info.st_dev, info.st_ino}];
  if (std::shared_ptr<FolderLock> mine = slot.lock()) return mine;
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    const std::string who = holder(fd);
    if (error == EWOULDBLOCK)
      throw Error(ErrorKind::State, op, "\"" + printable(folder) + "\" is in use by " + who, loc,
                  "wait until it ends, or use another folder: two runs in one folder would "
                  "overwrite each other");
    return nullptr;
  }
  const std::string line = "process " + std::to_string(::getpid()) + " on " + host_name() + "\n";
  // Only for other processes' messages: on a full disk they are less specific.
  if (::ftruncate(fd, 0) == 0) (void)!::pwrite(fd, line.data(), line.size(), 0);
  slot = lock;
  return lock;
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace ingot::io
