// Files that hold machine code, or decide which is taken: believed only when no other user can have
// written them.
//
// ${INGOT_CACHE_DIR:-~/.cache/ingot} and the folders in it are made with mode 0700. A folder or
// file that belongs to another user, or that others may write to, is passed over with one warning;
// kernels are then compiled in each process. INGOT_CACHE=0 does without.
#pragma once
#include <string>

namespace ingot::cuda {

/// The cache folder, created if it is missing; empty when it cannot be created, or when others can
/// write to it.
std::string cache_folder();
/// The contents of a regular file that only we can write to; empty when there is no such file.
std::string read_private(const std::string& path);
/// Replaces a file by a private one (mode 0600): written under a name nobody can guess, synced,
/// renamed. False: not written (no room, no permission), which is no error.
bool write_private(const std::string& path, const std::string& text);

/// The content of a cache file: what it was made from and the code, each with its SHA-256.
std::string sealed(const std::string& made_from, const std::string& code);
/// The code, if the file says that it was made from exactly this and is complete; empty otherwise.
std::string unsealed(const std::string& file, const std::string& made_from);

/// One process at a time, while it lives. A lock that cannot be had is done without.
class FileLock {
 public:
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace ingot::cuda
