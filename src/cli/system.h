// The machine as `ingot doctor` sees it: files, folders, sizes and variables, of this machine or of
// a folder laid out like one (--root), so that tests can simulate any machine.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace ingot::cli {

class System {
 public:
  /// "" is this machine. In another root, variables come from etc/environment and the sizes of file
  /// systems from .sizes ("/dev/shm 67108864 67108864": path, total, free).
  explicit System(std::string root = {}) : root_(std::move(root)) {}
  bool real() const { return root_.empty(); }
  const std::string& root() const { return root_; }

  std::string read(const std::string& path) const;  ///< "" when there is no such file
  bool exists(const std::string& path) const;
  /// May all users read and write it? (By its mode, so that root sees what other users would.)
  bool open_to_all(const std::string& path) const;
  bool writable(const std::string& folder) const;
  std::vector<std::string> list(const std::string& folder) const;  ///< names, sorted
  std::optional<std::string> env(const std::string& name) const;
  struct Size {
    double total = 0, free = 0;
  };
  std::optional<Size> size_of(const std::string& path) const;

  /// The first file whose name begins with this in the library folders (and in Python wheels under
  /// the given environments); its full path, or "".
  std::string find_library(const std::string& prefix) const;
  /// The folder of libingot itself ("/usr/lib/ingot" in another root).
  std::string ingot_folder() const;

 private:
  std::string at(const std::string& path) const { return root_ + path; }
  std::vector<std::string> library_folders() const;
  std::string root_;
};

}  // namespace ingot::cli
