// See tuning.h.
#include "backend/cuda/tuning.h"

#include <fstream>
#include <sstream>

#include "backend/cuda/private_cache.h"
#include "base/env.h"

namespace ingot::cuda {
namespace {

// A file that the user names may be anybody's (every choice is checked before it is used); one that is found
// must be ours.
std::string text_of(const std::string& path, bool named) {
  if (!named) return read_private(path);
  std::ifstream in(path);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

void read_choices(const std::string& text, std::map<std::string, std::string>& into) {
  std::istringstream in(text);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string key, choice;
    if (words >> key >> choice) into.emplace(key, choice);
  }
}

}  // namespace

bool Tuning::wanted() { return env::flag("INGOT_TUNE"); }

void Tuning::open(const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto named = env::path("INGOT_TUNING_FILE");
  std::string folder = cache_folder();
  named_ = named.has_value();
  path_ = named ? *named : folder.empty() ? "" : folder + "/tuning-" + name + ".txt";
  if (!path_.empty()) read_choices(text_of(path_, named_), choices_);
}

std::string Tuning::find(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto at = choices_.find(key);
  return at == choices_.end() ? std::string() : at->second;
}

void Tuning::keep(const std::string& key, const std::string& choice) {
  std::lock_guard lock(mutex_);
  if (!choices_.emplace(key, choice).second || path_.empty()) return;
  // Another process may have added its own choices since the file was read, or be about to.
  const FileLock one_at_a_time(path_ + ".lock");
  std::map<std::string, std::string> all;
  read_choices(text_of(path_, named_), all);
  for (auto& [k, c] : choices_) all.emplace(k, c);
  std::string text;
  for (auto& [k, c] : all) text += k + " " + c + "\n";
  write_private(path_, text);
}

}  // namespace ingot::cuda
