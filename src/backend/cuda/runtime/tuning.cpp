// See tuning.h.
#include "backend/cuda/runtime/tuning.h"

#include <charconv>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "backend/cuda/runtime/private_cache.h"
#include "base/env.h"

namespace ingot::cuda {
namespace {

// A file that the user names may be anybody's (every choice is checked before it is used); one that
// is found must be ours.
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

std::string hex(std::span<const uint64_t> words) {
  std::string s;
  char word[20];
  for (const uint64_t w : words) {
    std::snprintf(word, sizeof word, "%016llx", static_cast<unsigned long long>(w));
    s += word;
  }
  return s;
}

bool unhex(const std::string& s, std::span<uint64_t> words) {
  if (s.size() != 16 * words.size() || s.find_first_not_of("0123456789abcdef") != std::string::npos)
    return false;
  for (size_t i = 0; i < words.size(); ++i)
    std::from_chars(&s[16 * i], &s[16 * i] + 16, words[i], 16);
  return true;
}

std::optional<int> place_in(const std::string& s, int count) {
  int place = -1;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), place);
  const bool whole = error == std::errc() && end == s.data() + s.size();
  return whole && place >= 0 && place < count ? std::optional<int>(place) : std::nullopt;
}

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
