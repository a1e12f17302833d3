// Files: mapped for reading, written whole or not at all. Every failure is an Error(Io) that names the file.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ingot/error.h"
#include "ingot/source.h"

namespace ingot::io {

using Bytes = std::span<const uint8_t>;

/// Error(Io): `what`, of the file `path`.
[[noreturn]] void fail_io(const char* op, const std::string& path, const std::string& what,
                          const SourceLoc& loc, const std::string& fix = {});

/// A file's bytes, mapped read-only for as long as this lives. What is not touched is never read.
class MappedFile {
 public:
  MappedFile(const std::string& path, const char* op, const SourceLoc& loc);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  Bytes bytes() const { return {data_, size_}; }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// Writes `path` so that it is either the old file or the new one, whole, even when the machine stops
/// half-way: a temporary file beside it, fsync, rename, fsync of the folder. Destroyed before commit() it
/// takes the temporary file away.
class AtomicFile {
 public:
  AtomicFile(const std::string& path, const char* op, const SourceLoc& loc);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(const void* data, size_t bytes);
  /// Writes over what is there already.
  void write_at(uint64_t offset, const void* data, size_t bytes);
  void commit();

 private:
  [[noreturn]] void fail(const std::string& what, int error);
  std::string path_, temporary_;
  const char* op_;
  SourceLoc loc_;
  int fd_ = -1;
};

/// The whole of a small file. Error(Io) past `limit` bytes.
std::string read_text(const std::string& path, size_t limit, const char* op, const SourceLoc& loc);

/// Reads numbers from bytes and never past their end: a read that does not fit throws Error(Io), "the file
/// ends early".
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
