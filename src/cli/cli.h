// Shared by the program's commands: how they fail, and how numbers are printed.
#pragma once
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace ingot::cli {

/// What the program exits with. docs/errors.md lists them for users.
enum ExitCode : int {
  kOk = 0,
  kFailed = 1,         ///< anything not listed below; `ingot doctor` found an error
  kUsage = 2,          ///< an option, a recipe or a setting that does not exist
  kNoData = 3,         ///< a file or folder that is missing or cannot be read
  kNoDevice = 4,       ///< a device that is not available
  kNoRoom = 5,         ///< it does not fit into the device's memory
  kDamaged = 6,        ///< a checkpoint or data file that is damaged or from another program
  kConflict = 7,       ///< the folder holds another run, or another process works there
  kNotWritten = 8,     ///< a result could not be written: a full disk, a folder without permission
  kInterrupted = 130,  ///< Ctrl-C: saved, `--resume` continues
  kTerminated = 143,   ///< SIGTERM: saved, `--resume` continues
};

/// One clear sentence, and the fix.
class Failure : public std::exception {
 public:
  Failure(ExitCode code, std::string what, std::string fix = {})
      : code_(code), what_(std::move(what)), fix_(std::move(fix)) {}
  ExitCode code() const { return code_; }
  const std::string& fix() const { return fix_; }
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  ExitCode code_;
  std::string what_, fix_;
};

/// "1.5 GiB", "312 KiB".
std::string bytes_text(double bytes);
/// "1,234,567".
std::string count_text(int64_t n);
/// "1.23 T", "45.6 G": three digits and a prefix of 1000.
std::string rate_text(double per_second);
/// "2 min 5 s", "340 ms".
std::string time_text(double seconds);
/// "64 MB", "1.5GiB", "24g": bytes. Throws Failure(kUsage) for another text.
size_t parse_bytes(const std::string& text);
/// The word in `known` that is closest to `word`, or "" when none is close.
std::string nearest(const std::string& word, const std::vector<std::string>& known);
/// Untrusted text for a terminal: control characters and bytes that are not UTF-8 as \\x1b,
/// newlines as \\n.
std::string printable(const std::string& text);
/// Is all of it valid UTF-8?
bool is_utf8(const std::string& text);
/// A word for a POSIX shell, quoted where it needs to be.
std::string shell_word(const std::string& text);
/// printf into a string.
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

/// Lines with columns; numbers are right-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  /// Cells may hold anything: they are made printable.
  void row(std::vector<std::string> cells);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Is stdout a terminal?
bool on_terminal();
/// Its width in columns; 100 elsewhere.
int terminal_width();
/// Seconds since some moment.
double now();

}  // namespace ingot::cli
