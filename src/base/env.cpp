// See env.h.
#include "base/env.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "ingot/environment.h"
#include "ingot/error.h"

namespace ingot {
namespace env {
namespace {

size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t before = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, before + (a[i - 1] != b[j - 1])});
      before = above;
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view name) {
  return std::string(
      std::ranges::min(kTable, {}, [&](const Variable& v) { return distance(name, v.name); }).name);
}

bool known(std::string_view name) {
  return std::ranges::find(kTable, name, &Variable::name) != std::end(kTable) ||
         std::ranges::any_of(kOfTests,
                             [&](std::string_view start) { return name.starts_with(start); });
}

bool report_unknown() {
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view all = *entry;
    const std::string name(all.substr(0, all.find('=')));
    if (name.starts_with("INGOT_") && !known(name))
      std::fprintf(stderr, "[ingot] %s is set, but there is no such variable; the nearest is %s\n",
                   name.c_str(), nearest(name).c_str());
  }
  return true;
}

// The first use reports variables that are set and unknown.
const char* read(const Variable& v) {
  [[maybe_unused]] static const bool reported = report_unknown();
  return std::getenv(v.name.data());
}
const char* read(Name v) { return read(kTable[v.index()]); }

void report_nonsense(Name v, const char* value, const std::string& wanted) {
  static std::atomic<bool> reported[std::size(kTable)];
  if (reported[v.index()].exchange(true)) return;
  const Variable& variable = kTable[v.index()];
  std::fprintf(stderr, "[ingot] %s=%s is not a %s: %s is used\n", variable.name.data(), value,
               wanted.c_str(), variable.standard.data());
}

std::optional<int64_t> parsed_number(const char* text, const Variable& v) {
  char* end = nullptr;
  const int64_t n =
      std::strtoll(text, &end, 10);  // a number that is too long is beyond every range
  return *end || n < v.least || n > v.most ? std::nullopt : std::optional(n);
}

// "8GiB", "500MiB" or a number of bytes.
std::optional<size_t> parsed_bytes(std::string_view s) {
  constexpr size_t kMost = std::numeric_limits<size_t>::max();
  size_t n = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
  const std::string_view unit = s.substr(static_cast<size_t>(end - s.data()));
  const int shift = unit.empty()    ? 0
                    : unit == "MiB" ? 20
                    : unit == "GiB" ? 30
                    : unit == "TiB" ? 40
                                    : -1;
  if (error != std::errc() || shift < 0) return std::nullopt;
  return n > kMost >> shift ? kMost / 2 : n << shift;
}

std::vector<std::string> parsed_words(std::string_view s) {
  std::vector<std::string> words;
  for (size_t comma; !s.empty(); s.remove_prefix(std::min(s.size(), comma + 1))) {
    comma = std::min(s.find(','), s.size());
    words.emplace_back(s.substr(0, comma));
  }
  return words;
}

std::string_view kind_text(Kind k) {
  constexpr std::string_view kNames[] = {"flag", "number", "bytes", "words", "path"};
  return kNames[static_cast<size_t>(k)];
}

std::optional<std::string> text_of(const char* value) {
  return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace

std::optional<std::string> text(Name v) { return text_of(read(v)); }
std::optional<std::string> path(NameOf<Kind::Path> v) { return text(v); }

bool flag(NameOf<Kind::Flag> v) {
  const char* value = read(v);
  return (value && *value ? std::string_view(value) : kTable[v.index()].standard) != "0";
}

int64_t number(NameOf<Kind::Number> v) {
  const Variable& variable = kTable[v.index()];
  const char* value = read(v);
  if (value && *value) {
    if (const auto n = parsed_number(value, variable)) return *n;
    report_nonsense(
        v, value,
        "number from " + std::to_string(variable.least) + " to " + std::to_string(variable.most));
  }
  return *parsed_number(variable.standard.data(), variable);
}

size_t bytes(NameOf<Kind::Bytes> v) {
  const char* value = read(v);
  if (value && *value) {
    if (const auto n = parsed_bytes(value)) return *n;
    report_nonsense(v, value, "number of bytes, MiB, GiB or TiB");
  }
  return *parsed_bytes(kTable[v.index()].standard);
}

bool is(NameOf<Kind::Words> v, std::string_view word) {
  const char* value = read(v);
  return value && value == word;
}

bool debug(std::string_view word) {
  static const auto& words = *new std::vector(parsed_words(text("INGOT_DEBUG").value_or("")));
  return std::ranges::find(words, word) != words.end();
}

}  // namespace env

std::vector<EnvironmentVariable> environment_variables() {
  std::vector<EnvironmentVariable> all;
  for (const env::Variable& v : env::kTable)
    all.push_back({std::string(v.name), std::string(env::kind_text(v.kind)),
                   std::string(v.standard), std::string(v.purpose), std::string(v.reader),
                   env::text_of(env::read(v))});
  return all;
}

std::optional<std::string> environment(const std::string& name, SourceLoc loc) {
  const auto* v = std::ranges::find(env::kTable, name, &env::Variable::name);
  if (v != std::end(env::kTable)) return env::text_of(env::read(*v));
  throw Error(ErrorKind::Value, "environment", "Ingot reads no variable " + name, loc,
              "the nearest is " + env::nearest(name));
}

}  // namespace ingot
