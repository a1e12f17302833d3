// See file.h.
#include "io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace ingot::io {

void fail_io(const char* op, const std::string& path, const std::string& what, const SourceLoc& loc,
             const std::string& fix) {
  throw Error(ErrorKind::Io, op, "\"" + path + "\": " + what, loc, fix);
}

// ---- Reading

MappedFile::MappedFile(const std::string& path, const char* op, const SourceLoc& loc) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_io(op, path, std::string("cannot be opened: ") + std::strerror(errno), loc);
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    fail_io(op, path, S_ISDIR(info.st_mode) ? "is a folder" : "is not a plain file", loc);
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_) {
    void* p = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    ::close(fd);
    if (p == MAP_FAILED) fail_io(op, path, std::string("cannot be mapped: ") + std::strerror(error), loc);
    data_ = static_cast<const uint8_t*>(p);
  } else {
    ::close(fd);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<uint8_t*>(data_), size_);
}

std::string read_text(const std::string& path, size_t limit, const char* op, const SourceLoc& loc) {
  MappedFile file(path, op, loc);
  Bytes b = file.bytes();
  if (b.size() > limit)
    fail_io(op, path,
            "has " + std::to_string(b.size()) + " bytes, more than the " + std::to_string(limit) +
                " allowed here",
            loc);
  return b.empty() ? std::string() : std::string(reinterpret_cast<const char*>(b.data()), b.size());
}

void Cursor::fail(const std::string& what, const std::string& fix) const {
  fail_io(op_, path_, what, loc_, fix);
}

void Cursor::seek(size_t to) {
  if (to > bytes_.size())
    fail("the file ends early: it has " + std::to_string(bytes_.size()) + " bytes, " + std::to_string(to) +
         " are needed");
  at_ = to;
}

Bytes Cursor::take(size_t n) {
  if (n > left())
    fail("the file ends early: " + std::to_string(n) + " bytes are needed at " + std::to_string(at_) + ", " +
         std::to_string(left()) + " are left");
  Bytes b = bytes_.subspan(at_, n);
  at_ += n;
  return b;
}

uint16_t Cursor::u16() {
  Bytes b = take(2);
  return static_cast<uint16_t>(b[0] | b[1] << 8);
}
uint32_t Cursor::u32() {
  Bytes b = take(4);
  return static_cast<uint32_t>(b[0]) | static_cast<uint32_t>(b[1]) << 8 | static_cast<uint32_t>(b[2]) << 16 |
         static_cast<uint32_t>(b[3]) << 24;
}
uint64_t Cursor::u64() {
  uint64_t low = u32();
  return low | static_cast<uint64_t>(u32()) << 32;
}
uint32_t Cursor::u32_big() { return __builtin_bswap32(u32()); }

// ---- Writing

namespace {

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, const char* op, const SourceLoc& loc)
    : path_(path), temporary_(path + ".tmp-" + std::to_string(::getpid())), op_(op), loc_(loc) {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) fail_io(op_, path_, std::string("cannot be written: ") + std::strerror(errno), loc_);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) {
    ::close(fd_);
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::fail(const std::string& what, int error) {
  // At once, not when the stack unwinds: an error that nobody catches unwinds nothing, and the room is
  // needed.
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  ::unlink(temporary_.c_str());
  bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  fail_io(op_, path_, what + ": " + std::strerror(error), loc_,
          full ? "make room on the disk; files written before are as they were" : "");
}

void AtomicFile::write(const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes) {
    ssize_t n = ::write(fd_, p, std::min<size_t>(bytes, size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("cannot be written", n < 0 ? errno : ENOSPC);
    p += n;
    bytes -= static_cast<size_t>(n);
  }
}

void AtomicFile::write_at(uint64_t offset, const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes) {
    ssize_t n = ::pwrite(fd_, p, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("cannot be written", n < 0 ? errno : ENOSPC);
    p += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail("cannot be written", errno);
  int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("cannot be put in place", errno);
  }
  // The new name must last too; a file system that cannot sync a folder has no better promise to give.
  int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

}  // namespace ingot::io
