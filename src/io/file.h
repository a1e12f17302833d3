// Files: opened and read, written atomically. Every failure is an Error(Io) that
// names the file.
#pragma once
#include <cstdint>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/error.h"
#include "ingot/source.h"

namespace ingot::io {

using Bytes = std::span<const uint8_t>;

/// Text from a file as messages show it: control characters and bytes that are not UTF-8 as \x1b,
/// cut after `most` bytes.
std::string printable(std::string_view text, size_t most = 200);
/// Whether the bytes are UTF-8 (no surrogates, no overlong forms).
bool is_utf8(std::string_view text);

/// Throws Error(Io) with `what`, for the file `path`. Both are made printable: they may hold names
/// from files.
[[noreturn]] void fail_io(const char* op, const std::string& path, const std::string& what,
                          const SourceLoc& loc, const std::string& fix = {});
/// Throws Error(OutOfMemory) for the file `path`.
[[noreturn]] void fail_memory(const char* op, const std::string& path, const SourceLoc& loc);

/// Runs a reader: running out of memory becomes an error that names the file.
template <class F>
auto reading(const char* op, const std::string& path, const SourceLoc& loc, F&& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    fail_memory(op, path, loc);
  } catch (const std::length_error&) {
    fail_memory(op, path, loc);
  }
}

/// A plain file, open for reading. Never waits: a FIFO or a device is refused.
class File {
 public:
  File(const std::string& path, const char* op, const SourceLoc& loc);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  File(const File&) = delete;
  size_t size() const { return size_; }
  int descriptor() const { return fd_; }
  /// Exactly `bytes` bytes from `offset` on. Error(Io) when the file has become shorter since it
  /// was opened, where a mapping would end the process by SIGBUS. Safe to call from several threads
  /// at once.
  void read(uint64_t offset, void* to, size_t bytes, const SourceLoc& loc) const;

 private:
  std::string path_;
  const char* op_;
  int fd_ = -1;
  size_t size_ = 0;
};

/// A file's bytes for as long as this lives: read, not mapped, so that a file that becomes shorter
/// is an error and not a SIGBUS.
class FileBytes {
 public:
  FileBytes(const std::string& path, const char* op, const SourceLoc& loc);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  Bytes bytes() const { return {data_, size_}; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// Creates a folder and those above it, and makes their names durable (fsync), existing ones
/// included.
void make_folders(const std::string& path, const char* op, const SourceLoc& loc);

/// Writes `path` atomically: it is the complete old file or the complete new one, even when the
/// machine stops half-way: a temporary file beside it, fsync, rename, fsync of the folder.
/// Destroyed before commit(), it removes the temporary file. Any number of threads and programs may
/// write one path: the last one wins. A full disk is DiskFull; so is a file-size limit, which is
/// not a signal.
class AtomicFile {
 public:
  AtomicFile(const std::string& path, const char* op, const SourceLoc& loc);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(const void* data, size_t bytes);
  void commit();
  /// Puts the file at another path of the same folder, never over an existing file: then it returns
  /// false and may be tried again under another name.
  bool commit_new(const std::string& path);

 private:
  [[noreturn]] void fail(const std::string& what, int error);
  void sync();
  void sync_folder();
  std::string path_, temporary_;
  const char* op_;
  SourceLoc loc_;
  int fd_ = -1;
  bool synced_ = false;
};

/// Whether a file name is that of a temporary file whose program, on this machine, has ended.
bool is_abandoned(const std::string& name);
/// The machine's name.
std::string host_name();

/// The content of a small file. Error(Io) past `limit` bytes.
std::string read_text(const std::string& path, size_t limit, const char* op, const SourceLoc& loc);

/// Reads numbers from bytes and never past their end: a read that does not fit throws Error(Io),
/// "the file ends early".
class Cursor {
 public:
  Cursor(Bytes bytes, const char* op, std::string path, const SourceLoc& loc)
      : bytes_(bytes), op_(op), path_(std::move(path)), loc_(loc) {}
  size_t at() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }
  void seek(size_t to);
  Bytes take(size_t n);
  uint8_t u8() { return take(1)[0]; }
  uint16_t u16();  ///< little-endian, as all below
  uint32_t u32();
  uint64_t u64();
  uint32_t u32_big();
  [[noreturn]] void fail(const std::string& what, const std::string& fix = {}) const;

 private:
  Bytes bytes_;
  size_t at_ = 0;
  const char* op_;
  std::string path_;
  SourceLoc loc_;
};

}  // namespace ingot::io
