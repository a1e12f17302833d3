#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli.h"

namespace ingot::cli {

std::string format(const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  va_list again;
  va_copy(again, arguments);
  std::string s(static_cast<size_t>(std::vsnprintf(nullptr, 0, pattern, arguments)), '\0');
  std::vsnprintf(s.data(), s.size() + 1, pattern, again);
  va_end(again);
  va_end(arguments);
  return s;
}

std::string bytes_text(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  for (; std::abs(bytes) >= 1024 && u < 4; ++u) bytes /= 1024;
  return format(u == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[u]);
}

std::string count_text(int64_t n) {
  std::string digits = std::to_string(n < 0 ? -n : n), s;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) s += ',';
    s += digits[i];
  }
  return n < 0 ? "-" + s : s;
}

std::string rate_text(double v) {
  const char* units[] = {"", " k", " M", " G", " T", " P"};
  int u = 0;
  for (; v >= 1000 && u < 5; ++u) v /= 1000;
  return format(v >= 100 ? "%.0f%s" : v >= 10 ? "%.1f%s" : "%.2f%s", v, units[u]);
}

std::string time_text(double s) {
  if (s < 1e-3) return format("%.0f us", s * 1e6);
  if (s < 1) return format("%.0f ms", s * 1e3);
  if (s < 60) return format(s < 10 ? "%.1f s" : "%.0f s", s);
  const auto whole = static_cast<int64_t>(std::llround(s));
  if (whole < 3600)
    return format("%d min %d s", static_cast<int>(whole / 60), static_cast<int>(whole % 60));
  return format("%d h %d min", static_cast<int>(whole / 3600), static_cast<int>(whole / 60 % 60));
}

size_t parse_bytes(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string unit;
  for (; *end; ++end)
    if (!std::isspace(static_cast<unsigned char>(*end)))
      unit += static_cast<char>(std::tolower(*end));
  double factor = 0;
  if (unit.empty() || unit == "b") factor = 1;
  for (const auto& [letter, power] : {std::pair{'k', 1}, {'m', 2}, {'g', 3}, {'t', 4}}) {
    const std::string l(1, letter);
    if (unit == l || unit == l + "ib") factor = std::pow(1024.0, power);
    if (unit == l + "b") factor = std::pow(1000.0, power);
  }
  if (factor == 0 || end == text.c_str() || !(number > 0))
    throw Failure(kUsage, "\"" + text + "\" is not an amount of memory",
                  "Write it as 8GiB, 24GB or 500MiB.");
  // No machine has more, and the product would overflow.
  if (!(number * factor < std::pow(2.0, 60)))
    throw Failure(kUsage, "\"" + text + "\" is more memory than any machine has",
                  "Write it as 8GiB, 24GB or 500MiB.");
  return static_cast<size_t>(number * factor);
}

// Length of the UTF-8 character at `at`; 0 when it is not valid.
static size_t utf8_length(const std::string& s, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < s.size() ? static_cast<unsigned char>(s[at + i]) : 0u;
  };
  const unsigned first = byte(0), second = byte(1);
  const size_t n = first < 0x80                    ? 1
                   : first >= 0xC2 && first < 0xE0 ? 2
                   : first >= 0xE0 && first < 0xF0 ? 3
                   : first >= 0xF0 && first < 0xF5 ? 4
                                                   : 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // An overlong form, a surrogate, or beyond the last character.
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90))
    return 0;
  return n;
}

bool is_utf8(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const size_t n = utf8_length(text, i);
    if (n == 0) return false;
    i += n;
  }
  return true;
}

std::string printable(const std::string& text) {
  std::string s;
  for (size_t i = 0; i < text.size();) {
    const size_t n = utf8_length(text, i);
    const auto c = static_cast<unsigned char>(text[i]);
    const bool control = c < 0x20 || c == 0x7F ||
                         (n == 2 && c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0);
    if (c == '\n')
      s += "\\n";
    else if (c == '\t')
      s += "\\t";
    else if (n == 0 || control)
      for (size_t k = 0; k < std::max<size_t>(n, 1); ++k)
        s += format("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[i + k])));
    else
      s += text.substr(i, n);
    i += std::max<size_t>(n, 1);
  }
  return s;
}

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || (c && std::strchr("_-./=:,+@%", c));
  });
  if (plain) return text;
  std::string s = "'";
  for (const char c : text) s += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return s + "'";
}

static size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t before = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, before + (a[i - 1] != b[j - 1])});
      before = above;
    }
  }
  return row[b.size()];
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  if (word.size() > 100) return {};
  std::string best;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& k : known) {
    const size_t d = distance(word, k);
    if (d < least) least = d, best = k;
  }
  return best;
}

// Characters as a terminal counts them: UTF-8 continuation bytes take no column.
static size_t columns(const std::string& s) {
  return static_cast<size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

void Table::row(std::vector<std::string> cells) {
  for (std::string& c : cells) c = printable(c);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> width;
  for (const auto& r : rows_) {
    width.resize(std::max(width.size(), r.size()));
    for (size_t i = 0; i < r.size(); ++i) width[i] = std::max(width[i], columns(r[i]));
  }
  std::vector<bool> right(width.size(), rows_.size() > 1);
  for (size_t r = 1; r < rows_.size(); ++r)
    for (size_t i = 0; i < rows_[r].size(); ++i)
      if (const std::string& cell = rows_[r][i]; !cell.empty())
        right[i] =
            right[i] && (std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '-');
  std::string s;
  for (const auto& r : rows_) {
    std::string line;
    for (size_t i = 0; i < r.size(); ++i) {
      const std::string pad(width[i] - columns(r[i]), ' ');
      line += (i ? "  " : "") + (right[i] ? pad + r[i] : r[i] + pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    s += line + "\n";
  }
  return s;
}

bool on_terminal() { return isatty(STDOUT_FILENO) != 0; }

int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 100;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace ingot::cli
