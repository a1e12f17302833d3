// A folder that one program at a time writes to.
#pragma once
#include <memory>
#include <string>

#include "ingot/source.h"

namespace ingot::io {

/// Holds folder/.lock by flock() while it lives, with the process and the machine written into it:
/// the system releases it when the process ends, however it ends.
class FolderLock {
 public:
  /// Shared by all users of the same folder in this process. Error(State), naming process and
  /// machine, when another process holds it. Null on a file system without locks, or where the
  /// folder cannot be written to.
  static std::shared_ptr<FolderLock> take(const std::string& folder, const char* op,
                                          const SourceLoc& loc);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace ingot::io
