// The tuning file: which algorithm was fastest for a matrix product on this kind of GPU, so that
// every process makes the same choice, and gets the same bits.
// <cache>/tuning-<architecture>-<library version>.txt, one line per product: its key, then the
// algorithm in hexadecimal. INGOT_TUNE=0 takes the library's first suggestion instead of measuring;
// INGOT_TUNING_FILE names another file.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace ingot::cuda {

/// A choice is words of 64 bits in hexadecimal, or the index in a list of `count`. What a file
/// holds may be anything: false, nothing, for what is neither.
std::string hex(std::span<const uint64_t> words);
bool unhex(const std::string& choice, std::span<uint64_t> words);
std::optional<int> place_in(const std::string& choice, int count);

class Tuning {
 public:
  void open(const std::string& name);
  /// The kept choice, or empty.
  std::string find(const std::string& key);
  /// Keeps a choice, in this process and in the file. The first choice for a key stays.
  void keep(const std::string& key, const std::string& choice);
  static bool wanted();
  const std::string& path() const { return path_; }

 private:
  std::mutex mutex_;
  std::string path_;
  bool named_ = false;  // by the user
  std::map<std::string, std::string> choices_;
};

}  // namespace ingot::cuda
