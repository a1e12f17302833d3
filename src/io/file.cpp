// Reading files. See file.h; atomic_file.cpp writes them.
#include "io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

namespace ingot::io {
namespace {

// The length of the UTF-8 character at the start of `s`, 0 when there is none.
size_t utf8_length(std::string_view s) {
  auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const unsigned first = byte(0);
  const size_t n = first < 0x80                    ? 1
                   : first >= 0xc2 && first < 0xe0 ? 2
                   : first >= 0xe0 && first < 0xf0 ? 3
                   : first >= 0xf0 && first < 0xf5 ? 4
                                                   : 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned second = byte(1);
  const bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                     (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return n > s.size() || wrong ? 0 : n;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (size_t at = 0, n = 0; at < text.size(); at += n)
    if ((n = utf8_length(text.substr(at))) == 0) return false;
  return true;
}

std::string printable(std::string_view text, size_t most) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (out.size() >= most) return out + "...";
    const size_t n = utf8_length(text.substr(at));
    const auto first = static_cast<unsigned char>(text[at]);
    // C0 and C1 (U+0080 to U+009F) move the cursor, colour the screen and set the window's title.
    const bool control =
        first < 0x20 || first == 0x7f ||
        (n == 2 && first == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0);
    if (n && !control) {
      out += text.substr(at, n);
      at += n;
      continue;
    }
    for (size_t i = 0; i < (n ? n : 1); ++i, ++at) {
      char hex[5];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(text[at]));
      out += hex;
    }
  }
  return out;
}

void fail_io(const char* op, const std::string& path, const std::string& what, const SourceLoc& loc,
             const std::string& fix) {
  throw Error(ErrorKind::Io, op, "\"" + printable(path, 1000) + "\": " + printable(what, 2000), loc,
              fix);
}

void fail_memory(const char* op, const std::string& path, const SourceLoc& loc) {
  throw Error(ErrorKind::OutOfMemory, op,
              "\"" + printable(path, 1000) + "\": reading it needs more memory than there is", loc,
              "end other programs, raise the memory limit, or read its tensors one by one with "
              "SafeTensors(path).get(name)");
}

// ---- Reading

File::File(const std::string& path, const char* op, const SourceLoc& loc) : path_(path), op_(op) {
  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd_ < 0) fail_io(op, path, std::string("cannot be opened: ") + std::strerror(errno), loc);
  struct stat info {};
  const int error = ::fstat(fd_, &info) == 0 ? 0 : errno;
  if (error || !S_ISREG(info.st_mode)) {
    ::close(std::exchange(fd_, -1));
    const char* kind = S_ISDIR(info.st_mode)    ? "is a folder"
                       : S_ISFIFO(info.st_mode) ? "is a pipe, not a plain file"
                                                : "is not a plain file";
    fail_io(op, path, error ? std::string("cannot be read: ") + std::strerror(error) : kind, loc);
  }
  size_ = static_cast<size_t>(info.st_size);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      op_(other.op_),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_) {}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

void File::read(uint64_t offset, void* to, size_t bytes, const SourceLoc& loc) const {
  auto* p = static_cast<uint8_t*>(to);
  while (bytes) {
    ssize_t n = ::pread(fd_, p, bytes < (size_t{1} << 30) ? bytes : size_t{1} << 30,
                        static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_io(op_, path_, std::string("cannot be read: ") + std::strerror(errno), loc);
    if (n == 0)
      fail_io(op_, path_,
              "became shorter while it was read: it had " + std::to_string(size_) + " bytes, now " +
                  std::to_string(offset) + " at most",
              loc,
              "replace files that are in use by renaming a new one over them, not by writing into "
              "them");
    p += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
}

namespace {

// From here on memory is taken in large pages: a page fault for every 4 KiB would take longer than
// reading.
constexpr size_t kLarge = size_t{2} << 20;

void* anonymous(size_t bytes) {
  if (bytes < kLarge) return ::operator new(bytes);
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  ::madvise(p, bytes, MADV_HUGEPAGE);
  return p;
}

void release(void* p, size_t bytes) {
  if (bytes < kLarge)
    ::operator delete(p);
  else
    ::munmap(p, bytes);
}

}  // namespace

FileBytes::FileBytes(const std::string& path, const char* op, const SourceLoc& loc) {
  const File file(path, op, loc);
  size_ = file.size();
  data_ = static_cast<uint8_t*>(anonymous(size_));
  try {
    file.read(0, data_, size_, loc);
  } catch (...) {
    release(data_, size_);
    throw;
  }
}

FileBytes::~FileBytes() { release(data_, size_); }

std::string read_text(const std::string& path, size_t limit, const char* op, const SourceLoc& loc) {
  File file(path, op, loc);
  if (file.size() > limit)
    fail_io(op, path,
            "has " + std::to_string(file.size()) + " bytes, more than the " +
                std::to_string(limit) + " allowed here",
            loc);
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size(), loc);
  return text;
}

void Cursor::fail(const std::string& what, const std::string& fix) const {
  fail_io(op_, path_, what, loc_, fix);
}

void Cursor::seek(size_t to) {
  if (to > bytes_.size())
    fail("the file ends early: it has " + std::to_string(bytes_.size()) + " bytes, " +
         std::to_string(to) + " are needed");
  at_ = to;
}

Bytes Cursor::take(size_t n) {
  if (n > left())
    fail("the file ends early: " + std::to_string(n) + " bytes are needed at " +
         std::to_string(at_) + ", " + std::to_string(left()) + " are left");
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
  return static_cast<uint32_t>(b[0]) | static_cast<uint32_t>(b[1]) << 8 |
         static_cast<uint32_t>(b[2]) << 16 | static_cast<uint32_t>(b[3]) << 24;
}
uint64_t Cursor::u64() {
  uint64_t low = u32();
  return low | static_cast<uint64_t>(u32()) << 32;
}
uint32_t Cursor::u32_big() { return __builtin_bswap32(u32()); }

}  // namespace ingot::io
