// Files of a run: written atomically, or line by line; which process works in a folder; which data
// was used.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace ingot::cli {

/// A value as JSON text. Bytes that are not UTF-8 (names of files may hold any) become U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
/// The value after a round trip through json_text(): what a file of it holds.
nlohmann::json as_kept(const nlohmann::json& value);

/// What a path names, links followed.
enum class PathKind { None, File, Folder, Other };
/// Throws Failure(kNoData) where that cannot be found out: a loop of links, a name that is too
/// long, a folder without permission.
PathKind kind_of(const std::string& path);
inline bool is_file(const std::string& path) { return kind_of(path) == PathKind::File; }
inline bool is_folder(const std::string& path) { return kind_of(path) == PathKind::Folder; }
/// Throws Failure(kNoData) for a FIFO or a device, where opening or reading could wait for ever.
void require_plain(const std::string& path);

/// The content of a plain file; nothing where there is no such file. Throws Failure(kNoData) for
/// anything else, and Failure(kDamaged) for more than `most` bytes.
std::optional<std::string> read_file(const std::string& path, size_t most);

/// Replaces the file atomically: the new content or the old one, whatever happens. Throws
/// Failure(kNotWritten).
void write_file(const std::string& path, const std::string& text);

/// A file that pieces are appended to. A piece is written completely or not at all; while the disk
/// is full, pieces are kept in memory and written when there is room again.
class GrowingFile {
 public:
  GrowingFile() = default;
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;
  /// Appends to what is there.
  void open(const std::string& path);
  /// False: not written (yet).
  bool add(const std::string& piece);
  /// What was written survives a loss of power.
  void sync() const;

 private:
  int fd_ = -1;
  int64_t size_ = 0;     // what is written as complete pieces
  std::string waiting_;  // what is not yet
};

/// One process at a time in a folder, for as long as this lives (or the process does).
class FolderLock {
 public:
  /// Throws Failure(kConflict) with the process that has it.
  explicit FolderLock(const std::string& folder);
  /// Records the holder, for the message of other processes.
  void sign() const;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

/// A fingerprint of a file or folder: names, sizes and samples of the content. The same data under
/// another path has the same fingerprint. "" when there is nothing.
std::string fingerprint(const std::string& path);

}  // namespace ingot::cli
