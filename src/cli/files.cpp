#include "files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <ingot/ingot.h>

#include "cli.h"

namespace ingot::cli {
namespace fs = std::filesystem;
using nlohmann::json;

std::string json_text(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

json as_kept(const json& value) { return json::parse(json_text(value)); }

PathKind kind_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return PathKind::None;
    throw Failure(kNoData, path + " cannot be read: " + std::strerror(errno), "Name another path.");
  }
  return S_ISREG(info.st_mode)   ? PathKind::File
         : S_ISDIR(info.st_mode) ? PathKind::Folder
                                 : PathKind::Other;
}

void require_plain(const std::string& path) {
  if (kind_of(path) == PathKind::Other)
    throw Failure(kNoData, path + " is a pipe or a device, not a plain file",
                  "Copy what it gives into a file.");
}

std::optional<std::string> read_file(const std::string& path, size_t most) {
  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return {};
  struct Close {
    int fd;
    ~Close() {
      if (fd >= 0) ::close(fd);
    }
  } const close{fd};
  auto fail = [&](ExitCode code, const std::string& why) {
    throw Failure(code, path + " " + why, "Name another file, or replace it.");
  };
  struct stat info {};
  if (fd < 0 || ::fstat(fd, &info) != 0)
    fail(kNoData, std::string("cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    fail(kNoData, S_ISDIR(info.st_mode) ? "is a folder" : "is not a plain file");
  if (static_cast<uint64_t>(info.st_size) > most)
    fail(kDamaged, "has " + count_text(info.st_size) + " bytes, more than such a file can have");
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(kNoData, std::string("cannot be read: ") + std::strerror(errno));
    if (n == 0) break;  // it has become shorter
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  try {
    io::write_text(path, text);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Io) throw;
    throw Failure(kNotWritten, e.reason(),
                  "Make room on the disk, or name another folder with --out.");
  }
}

// ---- GrowingFile

GrowingFile::~GrowingFile() {
  if (fd_ >= 0) ::close(fd_);
}

void GrowingFile::open(const std::string& path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  struct stat info {};
  if (fd_ >= 0 && ::fstat(fd_, &info) == 0) size_ = info.st_size;
  if (fd_ < 0)
    throw Failure(kNotWritten, path + " cannot be written: " + std::strerror(errno),
                  "Name another folder with --out.");
}

bool GrowingFile::add(const std::string& piece) {
  // A disk that stays full for days must not fill memory: figures after a checkpoint's step are
  // written again when the run resumes.
  constexpr size_t kMost = size_t{64} << 20;
  if (waiting_.size() + piece.size() <= kMost) waiting_ += piece;
  size_t done = 0;
  while (done < waiting_.size()) {
    const ssize_t n = ::pwrite(fd_, waiting_.data() + done, waiting_.size() - done,
                               static_cast<off_t>(size_ + static_cast<int64_t>(done)));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      // Half a line would corrupt the next one.
      if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0) return false;
      return false;
    }
    done += static_cast<size_t>(n);
  }
  size_ += static_cast<int64_t>(done);
  waiting_.clear();
  return true;
}

void GrowingFile::sync() const {
  (void)::fdatasync(fd_);  // metrics are not worth an error
}

// ---- FolderLock

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = folder + "/.lock";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0)
    throw Failure(kNotWritten,
                  "the folder " + folder + " cannot be written to: " + std::strerror(errno),
                  "Name another with --out.");
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    char who[200] = {};
    const ssize_t n = ::pread(fd_, who, sizeof who - 1, 0);
    ::close(std::exchange(fd_, -1));
    std::string name(who, n > 0 ? static_cast<size_t>(n) : 0);
    name.erase(name.find_last_not_of(" \n") + 1);
    throw Failure(kConflict,
                  "another process works in " + folder + (name.empty() ? "" : " (" + name + ")"),
                  "Wait until it ends, or name another folder with --out.");
  }
  // On a file system without locks the folder stays unprotected.
}

void FolderLock::sign() const {
  char host[64] = "this machine";
  ::gethostname(host, sizeof host - 1);
  const std::string mine = format("process %d on %s\n", static_cast<int>(::getpid()), host);
  if (::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, mine.data(), mine.size(), 0) < 0) {
    // The lock is held even if the name cannot be written.
  }
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

// ---- Fingerprint of the data

namespace {

class Sum {
 public:
  void add(const void* data, size_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < bytes; ++i) h_ = (h_ ^ p[i]) * 0x100000001b3ull;
    h_ ^= h_ >> 29;
  }
  void add(const std::string& s) { add(s.data(), s.size() + 1); }
  std::string text() const { return format("%016llx", static_cast<unsigned long long>(h_)); }

 private:
  uint64_t h_ = 0xcbf29ce484222325ull;
};

// The size, and `samples` blocks of 4 KiB spread over the file, the first and last included.
void add_file(Sum& sum, const std::string& path, int samples) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info {};
  if (fd < 0 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    if (fd >= 0) ::close(fd);
    return;
  }
  const auto size = static_cast<int64_t>(info.st_size);
  sum.add(&size, sizeof size);
  std::vector<char> block(4096);
  const int64_t last = std::max<int64_t>(0, size - static_cast<int64_t>(block.size()));
  for (int i = 0; i < samples; ++i) {
    const int64_t at = samples > 1 ? last / (samples - 1) * i : 0;
    const ssize_t n =
        ::pread(fd, block.data(), block.size(), static_cast<off_t>(i + 1 == samples ? last : at));
    if (n > 0) sum.add(block.data(), static_cast<size_t>(n));
  }
  ::close(fd);
}

}  // namespace

std::string fingerprint(const std::string& path) {
  std::error_code e;
  Sum sum;
  if (fs::is_regular_file(path, e)) {
    add_file(sum, path, 256);
    return sum.text();
  }
  if (!fs::is_directory(path, e)) return {};
  std::vector<std::string> files;
  for (fs::recursive_directory_iterator i(path, e), end; !e && i != end; i.increment(e)) {
    std::error_code ignored;
    if (i->is_regular_file(ignored)) files.push_back(i->path().string());
  }
  std::sort(files.begin(), files.end());
  // A few large files (IDX, CIFAR) are sampled; for very many small ones names and sizes are
  // enough.
  const int samples = files.size() <= 64 ? 256 : files.size() <= 20000 ? 1 : 0;
  for (const std::string& f : files) {
    sum.add(f.substr(path.size()));
    add_file(sum, f, samples);
  }
  return sum.text();
}

}  // namespace ingot::cli
