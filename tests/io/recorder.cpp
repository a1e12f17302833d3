// Loaded before a program (LD_PRELOAD), this library records what the program does to the files
// below a folder, in order and with their contents, for disk.py to play back: INGOT_RECORD_FOLDER
// is the folder (an absolute path without links), INGOT_RECORD_LOG the log. Files there are not
// synced, since nothing is cut off in truth.
//
// A record: its length, then what was done (a letter), the file's number and an offset, and three
// texts (path, second path, data), each after its length. Numbers are little-endian.
//
// Not seen: what the C library writes by itself (stdio's streams), copy_file_range() and its like.
// power_cuts.py compares the folder with the record, and fails when something was missed.
#undef _FORTIFY_SOURCE  // these are the functions themselves
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

namespace {

// What happens and its record are one: no other thread comes between them.
std::recursive_mutex& one_at_a_time() {
  static auto* m = new std::recursive_mutex;
  return *m;
}

template <class F>
F* next(F*, const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}
#define NEXT(f) static auto* real = next(f, #f)

const std::string& folder() {
  static const char* given = std::getenv("INGOT_RECORD_FOLDER");
  static const auto* f = new std::string(given ? given : "");
  return *f;
}

// Errors of the recorder end the program: a log with holes proves nothing.
[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::_Exit(99);
}

int log_file() {
  static const int fd = [] {
    const char* path = std::getenv("INGOT_RECORD_LOG");
    NEXT(open);
    return path ? real(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
  }();
  return fd;
}

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& to, std::string_view text) {
  append(to, static_cast<uint32_t>(text.size()));
  to += text;
}

void record(char what, ino_t file, off_t offset, std::string_view path,
            std::string_view second = {}, std::string_view data = {}) {
  NEXT(write);
  std::string body(1, what), all;
  append(body, static_cast<uint64_t>(file));
  append(body, static_cast<int64_t>(offset));
  append_text(body, path);
  append_text(body, second);
  append_text(body, data);
  append_text(all, body);
  if (real(log_file(), all.data(), all.size()) != static_cast<ssize_t>(all.size()))
    give_up("recorder");
}

bool inside(const std::string& path) {
  return !folder().empty() && path.compare(0, folder().size(), folder()) == 0 &&
         (path.size() == folder().size() || path[folder().size()] == '/');
}

std::string link_text(const std::string& path) {
  char text[4096];
  const ssize_t n = ::readlink(path.c_str(), text, sizeof text);
  return n < 0 ? std::string() : std::string(text, static_cast<size_t>(n));
}

// The path of an open file.
std::string path_of(int fd) { return link_text("/proc/self/fd/" + std::to_string(fd)); }

// An absolute path without ".", ".." and "//".
std::string whole(int at, const char* path) {
  std::string from = path, clean;
  if (from[0] != '/')
    from = (at == AT_FDCWD ? link_text("/proc/self/cwd") : path_of(at)) + "/" + from;
  for (size_t i = 0, end; i < from.size(); i = end + 1) {
    end = std::min(from.find('/', i), from.size());
    const std::string part = from.substr(i, end - i);
    if (part == "..")
      clean.erase(std::min(clean.rfind('/'), clean.size()));
    else if (!part.empty() && part != ".")
      clean += "/" + part;
  }
  return clean;
}

ino_t number_of(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? info.st_ino : 0;
}

int opened(int fd, int flags) {
  const int error = errno;
  if (fd >= 0 && (flags & O_ACCMODE) != O_RDONLY)
    if (const std::string path = path_of(fd); inside(path))
      record(flags & O_TRUNC ? 'C' : 'O', number_of(fd), 0, path);
  errno = error;
  return fd;
}

// n bytes of `data` have been written at `offset`, or at the file's position.
ssize_t written(int fd, const void* data, ssize_t n, off_t offset = -1) {
  const int error = errno;
  if (n > 0)
    if (const std::string path = path_of(fd); inside(path))
      record('W', number_of(fd), offset >= 0 ? offset : ::lseek(fd, 0, SEEK_CUR) - n, path, {},
             {static_cast<const char*>(data), static_cast<size_t>(n)});
  errno = error;
  return n;
}

std::string joined(const iovec* parts, int count) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  return all;
}

int resized(int fd, off_t size, int result) {
  const int error = errno;
  if (const std::string path = path_of(fd); result == 0 && inside(path))
    record('T', number_of(fd), size, path);
  errno = error;
  return result;
}

// A name was changed.
int named(char what, int result, const std::string& path, const std::string& second = {}) {
  const int error = errno;
  if (result == 0 && (inside(path) || inside(second))) record(what, 0, 0, path, second);
  errno = error;
  return result;
}

template <class F>
int synced(int fd, F* real) {
  const std::string path = path_of(fd);
  if (!inside(path)) return real(fd);
  struct stat info {};
  ::fstat(fd, &info);
  record(S_ISDIR(info.st_mode) ? 'D' : 'F', info.st_ino, 0, path);
  return 0;
}

mode_t mode_in(int flags, va_list more) {
  return flags & (O_CREAT | __O_TMPFILE) ? static_cast<mode_t>(va_arg(more, int)) : 0;
}

int flags_of(std::string_view mode) {
  if (mode[0] == 'w') return O_WRONLY | O_TRUNC;
  return mode[0] == 'a' || mode.find('+') != std::string_view::npos ? O_RDWR : O_RDONLY;
}

}  // namespace

#define LOCK const std::lock_guard guard(one_at_a_time())

// NOLINTBEGIN: these are the C library's names.
extern "C" {

#define OPEN(name)                                 \
  int name(const char* path, int flags, ...) {     \
    va_list more;                                  \
    va_start(more, flags);                         \
    const mode_t mode = mode_in(flags, more);      \
    va_end(more);                                  \
    LOCK;                                          \
    NEXT(name);                                    \
    return opened(real(path, flags, mode), flags); \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                   \
  int name(int at, const char* path, int flags, ...) { \
    va_list more;                                      \
    va_start(more, flags);                             \
    const mode_t mode = mode_in(flags, more);          \
    va_end(more);                                      \
    LOCK;                                              \
    NEXT(name);                                        \
    return opened(real(at, path, flags, mode), flags); \
  }
OPENAT(openat)
OPENAT(openat64)

// What _FORTIFY_SOURCE makes of them.
int __open_2(const char* path, int flags) { return open(path, flags); }
int __open64_2(const char* path, int flags) { return open64(path, flags); }
int __openat_2(int at, const char* path, int flags) { return openat(at, path, flags); }
int __openat64_2(int at, const char* path, int flags) { return openat64(at, path, flags); }

int creat(const char* path, mode_t mode) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode); }
int creat64(const char* path, mode_t mode) {
  return open64(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

#define TEMPORARY(name, arguments, values) \
  int name arguments {                     \
    LOCK;                                  \
    NEXT(name);                            \
    return opened(real values, O_RDWR);    \
  }
TEMPORARY(mkstemp, (char* path), (path))
TEMPORARY(mkstemp64, (char* path), (path))
TEMPORARY(mkostemp, (char* path, int flags), (path, flags))
TEMPORARY(mkostemp64, (char* path, int flags), (path, flags))
TEMPORARY(mkstemps, (char* path, int end), (path, end))
TEMPORARY(mkostemps, (char* path, int end, int flags), (path, end, flags))

// std::ofstream opens its files by these.
#define STREAM(name)                               \
  FILE* name(const char* path, const char* mode) { \
    LOCK;                                          \
    NEXT(name);                                    \
    FILE* f = real(path, mode);                    \
    if (f) opened(fileno(f), flags_of(mode));      \
    return f;                                      \
  }
STREAM(fopen)
STREAM(fopen64)

ssize_t write(int fd, const void* data, size_t bytes) {
  LOCK;
  NEXT(write);
  return written(fd, data, real(fd, data, bytes));
}

#define PWRITE(name, offset_type)                                                        \
  ssize_t name(int fd, const void* data, size_t bytes, offset_type offset) {             \
    LOCK;                                                                                \
    NEXT(name);                                                                          \
    return written(fd, data, real(fd, data, bytes, offset), static_cast<off_t>(offset)); \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t writev(int fd, const iovec* parts, int count) {
  LOCK;
  NEXT(writev);
  return written(fd, joined(parts, count).data(), real(fd, parts, count));
}

#define PWRITEV(name, offset_type)                                                           \
  ssize_t name(int fd, const iovec* parts, int count, offset_type offset) {                  \
    LOCK;                                                                                    \
    NEXT(name);                                                                              \
    return written(fd, joined(parts, count).data(), real(fd, parts, count, offset), offset); \
  }
PWRITEV(pwritev, off_t)
PWRITEV(pwritev64, off64_t)

#define TRUNCATE(name, offset_type)             \
  int name(int fd, offset_type size) noexcept { \
    LOCK;                                       \
    NEXT(name);                                 \
    return resized(fd, size, real(fd, size));   \
  }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define SYNC(name)           \
  int name(int fd) {         \
    LOCK;                    \
    NEXT(name);              \
    return synced(fd, real); \
  }
SYNC(fsync)
SYNC(fdatasync)

int renameat2(int at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  LOCK;
  NEXT(renameat2);
  const std::string old_path = whole(at, from), path = whole(to_at, to);
  return named(flags & RENAME_EXCHANGE ? 'X' : 'R', real(at, from, to_at, to, flags), old_path,
               path);
}
int renameat(int at, const char* from, int to_at, const char* to) noexcept {
  return renameat2(at, from, to_at, to, 0);
}
int rename(const char* from, const char* to) noexcept {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int at, const char* from, int to_at, const char* to, int flags) noexcept {
  LOCK;
  NEXT(linkat);
  return named('L', real(at, from, to_at, to, flags), whole(at, from), whole(to_at, to));
}
int link(const char* from, const char* to) noexcept {
  return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int at, const char* path, int flags) noexcept {
  LOCK;
  NEXT(unlinkat);
  const std::string gone = whole(at, path);
  return named('U', real(at, path, flags), gone);
}
int unlink(const char* path) noexcept { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) noexcept { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) noexcept {
  struct stat info {};
  const bool is_folder = ::lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
  return is_folder ? rmdir(path) : unlink(path);
}

int mkdirat(int at, const char* path, mode_t mode) noexcept {
  LOCK;
  NEXT(mkdirat);
  return named('K', real(at, path, mode), whole(at, path));
}
int mkdir(const char* path, mode_t mode) noexcept { return mkdirat(AT_FDCWD, path, mode); }

// A mapping that is written to would be seen by nobody: none is allowed.
#define MMAP(name, offset_type)                                                                    \
  void* name(void* at, size_t bytes, int access, int flags, int fd, offset_type offset) noexcept { \
    if (fd >= 0 && (access & PROT_WRITE) && (flags & MAP_SHARED)) {                                \
      LOCK;                                                                                        \
      const int error = errno;                                                                     \
      if (const std::string path = path_of(fd); inside(path)) record('X', number_of(fd), 0, path); \
      errno = error;                                                                               \
    }                                                                                              \
    return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, access, flags, fd, offset));       \
  }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

}  // extern "C"
// NOLINTEND
