// Files of a run: written whole or not at all, or line by line; who works in a folder; what data it
// was.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace ingot::cli {

/// A value as JSON text. Bytes that are not UTF-8 (names of files may hold any) become U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
/// The value as it is after json_text() and back: what a file of it says.
nlohmann::json as_kept(const nlohmann::json& value);

/// The whole file or the old one, whatever happens. Throws Failure(kNotWritten).
void write_file(const std::string& path, const std::string& text);

/// A file that pieces are added to. A piece is there as a whole or not at all; while the disk is
/// full pieces are kept in memory and written when there is room again.
class GrowingFile {
 public:
  GrowingFile() = default;
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;
  /// Adds to the end of what is there.
  void open(const std::string& path);
  /// False: not written (yet).
  bool add(const std::string& piece);
  /// What is there outlasts a loss of power.
  void sync() const;

 private:
  int fd_ = -1;
  int64_t size_ = 0;     // what is there as whole pieces
  std::string waiting_;  // what is not
};

/// One process at a time in a folder, for as long as this lives (or the process does).
class FolderLock {
 public:
  /// Throws Failure(kConflict) with the process that has it.
  explicit FolderLock(const std::string& folder);
  /// Writes down who has it, for the others' message.
  void sign() const;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

/// What a file or a folder of files holds: names, sizes and samples of the content. The same data
/// in another place has the same one. "" when there is nothing.
std::string fingerprint(const std::string& path);

}  // namespace ingot::cli
