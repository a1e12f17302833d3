// Files that the CUDA plug-in keeps: the tuning file, compiled kernels.
#include <cstdlib>
#include <map>
#include <sstream>

#include "backend/cuda/runtime/private_cache.h"
#include "backend/cuda/runtime/tuning.h"
#include "base/sha256.h"
#include "file_targets.h"
#include "targets.h"

namespace ingot::fuzz {
namespace {

using namespace ingot::cuda;

void require(bool right) {
  if (!right) std::abort();
}

// The words of a file, read another way.
std::map<std::string, std::string> first_words(const std::string& text) {
  std::map<std::string, std::string> all;
  std::istringstream lines(text);
  for (std::string line, key, choice; std::getline(lines, line);) {
    std::istringstream words(line);
    if (words >> key >> choice) all.emplace(key, choice);
  }
  return all;
}

void use(const std::string& choice) {
  uint64_t words[8];
  if (unhex(choice, words)) require(hex(words) == choice);
  if (const auto place = place_in(choice, 8)) require(*place >= 0 && *place < 8);
}

}  // namespace

// What a file says is found; what is kept beside it is found by the next process, and nothing is
// lost.
void tuning(const uint8_t* data, size_t size) {
  static const std::string file = [] {
    const std::string path = folder() + "/tuning.txt";
    setenv("INGOT_TUNING_FILE", path.c_str(), 1);
    return path;
  }();
  const std::string text(reinterpret_cast<const char*>(data), size);
  put(file, text);
  Tuning first;
  first.open("fuzz");
  const auto before = first_words(text);
  for (const auto& [key, choice] : before) {
    require(first.find(key) == choice);
    use(choice);
  }
  first.keep("fuzz", "1");
  Tuning second;
  second.open("fuzz");
  for (const auto& [key, choice] : before) require(second.find(key) == choice);
  require(second.find("fuzz") == first.find("fuzz"));
}

// What a kernel was made from, a zero byte, its file. With 'c' before it the two sums in the file
// are made right.
void cubin(const uint8_t* data, size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  const size_t end = all.find('\0');
  if (end == std::string::npos || end == 0) return;
  const std::string made_from = all.substr(1, end - 1);
  std::string file = all.substr(end + 1);
  if (all[0] == 'c') {
    const size_t first = file.find('\n'), code = first + 2 * 65 + 1;
    if (first == std::string::npos || file.size() <= code) return;
    file.replace(first + 1, 64, sha256(made_from))
        .replace(first + 66, 64, sha256(file.substr(code)));
  }
  const std::string path = folder() + "/kernel";
  write_private(path, file);
  require(read_private(path) == file);
  if (const std::string code = unsealed(read_private(path), made_from); !code.empty())
    require(sealed(made_from, code) == file);
}

}  // namespace ingot::fuzz
