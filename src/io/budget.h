// How much memory reading a file may take. Compressed data, pickles and headers can request far
// more memory, and work, than the file has bytes; every reader of such a file draws on one budget
// in proportion to those bytes.
#pragma once
#include <cstdint>
#include <string>

#include "ingot/source.h"

namespace ingot::io {

class Budget {
 public:
  /// 64 MiB and 32 bytes for each of the file's. INGOT_READ_LIMIT (bytes, or "8GiB") raises it for
  /// files that are trusted.
  Budget(size_t file_bytes, const char* op, const std::string& path, const SourceLoc& loc);
  /// Throws Error(Io), naming the file, when more is taken than is left.
  void take(size_t bytes) {
    if (bytes > left_) fail();
    left_ -= bytes;
  }
  void take(size_t count, size_t each) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, each, &bytes)) fail();
    take(bytes);
  }
  /// Gives back what was taken temporarily.
  void give_back(size_t bytes) { left_ += bytes; }
  size_t left() const { return left_; }

 private:
  [[noreturn]] void fail() const;
  size_t left_, file_;
  const char* op_;
  std::string path_;
  SourceLoc loc_;
};

/// The pixels an image may have: 8 million, and 32 for each byte of the file; 128 million where
/// INGOT_READ_LIMIT is set.
int64_t max_pixels(size_t file_bytes);

}  // namespace ingot::io
