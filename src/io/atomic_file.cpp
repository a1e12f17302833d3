// Writing files. Every file that may be needed again is written here, so that the order of write,
// fsync and rename is in one place. See file.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <utility>

#include "ingot/io.h"
#include "io/file.h"
#include "io/hash.h"

namespace ingot::io {
namespace {

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

bool no_room(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

// A write past the file-size limit sends SIGXFSZ to this thread, whose default ends the program.
// While one of these lives the signal stays blocked, the write returns EFBIG, and the pending
// signal is discarded.
class HoldSizeSignal {
 public:
  HoldSizeSignal() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    before_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &set_, &old_);
  }
  ~HoldSizeSignal() {
    const timespec now{};
    while (!before_ && sigtimedwait(&set_, nullptr, &now) == SIGXFSZ) {
    }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }
  HoldSizeSignal(const HoldSizeSignal&) = delete;
  HoldSizeSignal& operator=(const HoldSizeSignal&) = delete;

 private:
  sigset_t set_{}, old_{};
  bool before_ = false;
};

// Temporary names: PATH.tmp-PID-MACHINE-RANDOM. The machine is its name and its process-id
// namespace: ids of another container mean nothing here.
constexpr std::string_view kMark = ".tmp-";

uint32_t machine() {
  static const uint32_t value = [] {
    char space[64] = {};
    const ssize_t n = ::readlink("/proc/self/ns/pid", space, sizeof space);
    const std::string text =
        host_name() + "\n" + std::string(space, n > 0 ? static_cast<size_t>(n) : 0);
    Hash h;
    h.add({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    return static_cast<uint32_t>(h.sum());
  }();
  return value;
}

// The random suffixes of the names that this process uses now.
struct InUse {
  std::mutex mutex;
  std::set<uint32_t> ends;
};
InUse& in_use() {
  static InUse* u = new InUse;
  return *u;
}

uint32_t end_of(const std::string& name) {
  uint32_t end = 0;
  std::from_chars(name.data() + name.size() - 8, name.data() + name.size(), end, 16);
  return end;
}

std::string temporary_name(const std::string& path) {
  std::random_device random;
  std::uniform_int_distribution<uint32_t> any;
  InUse& u = in_use();
  const std::lock_guard lock(u.mutex);
  uint32_t end = any(random);
  while (!u.ends.insert(end).second) ++end;
  char text[64];
  std::snprintf(text, sizeof text, "%d-%08x-%08x", static_cast<int>(::getpid()), machine(), end);
  // A long name is cut: with the suffix it must fit into the 255 bytes that a name may have.
  const size_t slash = path.rfind('/') + 1;
  return path.substr(0, slash) + path.substr(slash, 200) + std::string(kMark) + text;
}

void forget(const std::string& name) {
  InUse& u = in_use();
  const std::lock_guard lock(u.mutex);
  u.ends.erase(end_of(name));
}

// Makes names in a folder durable. A file system that cannot sync a folder offers nothing better; a
// reported failure is an error. Returns errno.
int sync_names(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return 0;
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return error == EIO || no_room(error) ? error : 0;
}

// The same for a folder's name and all folders above it: their creator may not have synced
// them.
int sync_names_above(const std::string& folder) {
  const std::unique_ptr<char, void (*)(void*)> whole(::realpath(folder.c_str(), nullptr),
                                                     std::free);
  if (!whole) return 0;
  int error = 0;
  for (std::string at = whole.get(); at != "/" && !error; at = folder_of(at))
    error = sync_names(folder_of(at));
  return error;
}

// rename() that never replaces. Returns errno; EEXIST when something is there.
int rename_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return errno;
  if (::link(from.c_str(), to.c_str()) == 0) return ::unlink(from.c_str()) == 0 ? 0 : errno;
  if (errno == EEXIST) return EEXIST;
  // The file system supports neither: the fallback can only race with another program.
  struct stat info {};
  if (::lstat(to.c_str(), &info) == 0) return EEXIST;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] ? printable(name) : "this machine";
}

bool is_abandoned(const std::string& name) {
  const size_t mark = name.rfind(kMark);
  if (mark == std::string::npos) return false;
  int pid = 0, used = 0;
  unsigned host = 0, end = 0;
  const char* text = name.c_str() + mark + kMark.size();
  if (std::sscanf(text, "%d-%8x-%8x%n", &pid, &host, &end, &used) != 3 || text[used] || pid <= 0 ||
      host != machine())
    return false;
  if (pid != ::getpid()) return ::kill(pid, 0) != 0 && errno == ESRCH;
  // Left by a process that had this one's id before, as in a restarted container.
  InUse& u = in_use();
  const std::lock_guard lock(u.mutex);
  return u.ends.count(end) == 0;
}

void make_folders(const std::string& path, const char* op, const SourceLoc& loc) {
  std::vector<std::string> missing;
  struct stat info {};
  for (std::string at = path; ::stat(at.c_str(), &info) != 0; at = folder_of(at)) {
    if (errno != ENOENT)
      fail_io(op, path, std::string("cannot be made: ") + std::strerror(errno), loc);
    while (at.size() > 1 && at.back() == '/') at.pop_back();
    missing.push_back(at);
    if (folder_of(at) == at) break;
  }
  if (missing.empty() && !S_ISDIR(info.st_mode))
    fail_io(op, path, "cannot be made: Not a directory", loc);
  int error = 0;
  for (size_t i = missing.size(); !error && i-- > 0;)
    error = ::mkdir(missing[i].c_str(), 0777) == 0 || errno == EEXIST ? 0 : errno;
  if (!error) error = sync_names_above(path);
  if (error) fail_io(op, path, std::string("cannot be made: ") + std::strerror(error), loc);
}

AtomicFile::AtomicFile(const std::string& path, const char* op, const SourceLoc& loc)
    : path_(path), op_(op), loc_(loc) {
  for (int attempt = 0; fd_ < 0; ++attempt) {
    temporary_ = temporary_name(path);
    // O_EXCL: never a file, or a link to one, that another program put there.
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    const int error = errno;
    if (fd_ >= 0) break;
    forget(temporary_);
    if (error == EEXIST && attempt < 100) continue;
    temporary_.clear();
    fail("cannot be written", error);
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  forget(temporary_);
}

void AtomicFile::fail(const std::string& what, int error) {
  // At once, not when the stack unwinds: an uncaught error unwinds nothing, and the space is
  // needed.
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
    forget(temporary_);
    temporary_.clear();
  }
  if (no_room(error))
    throw DiskFull(
        ErrorKind::Io, op_,
        "\"" + printable(path_, 1000) + "\": " + what + ": " + std::strerror(error), loc_,
        error == EFBIG
            ? "raise the limit on file sizes (ulimit -f); files written before are unchanged"
            : "make room on the disk; files written before are unchanged");
  fail_io(op_, path_, what + ": " + std::strerror(error), loc_);
}

void AtomicFile::write(const void* data, size_t bytes) {
  const HoldSizeSignal hold;
  const char* p = static_cast<const char*>(data);
  while (bytes) {
    ssize_t n = ::write(fd_, p, bytes < (size_t{1} << 30) ? bytes : size_t{1} << 30);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("cannot be written", n < 0 ? errno : ENOSPC);
    p += n;
    bytes -= static_cast<size_t>(n);
  }
}

void AtomicFile::sync() {
  if (synced_) return;
  if (::fsync(fd_) != 0) fail("cannot be written", errno);
  if (::close(std::exchange(fd_, -1)) != 0) fail("cannot be written", errno);
  synced_ = true;
}

void AtomicFile::sync_folder() {
  forget(temporary_);
  temporary_.clear();
  if (const int error = sync_names(folder_of(path_))) fail("may not be durable", error);
}

void AtomicFile::commit() {
  sync();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be put in place", errno);
  sync_folder();
}

bool AtomicFile::commit_new(const std::string& path) {
  sync();
  path_ = path;
  const int error = rename_new(temporary_, path_);
  if (error == EEXIST) return false;
  if (error) fail("cannot be put in place", error);
  sync_folder();
  return true;
}

}  // namespace ingot::io
