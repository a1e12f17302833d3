// The progress bar of a training run; plain lines where there is no terminal.
#pragma once
#include <cstdint>
#include <string>

namespace ingot::cli {

class Progress {
 public:
  /// quiet: nothing but warnings. label: a prefix of each line; say() then prints nothing.
  Progress(int64_t total, std::string unit, bool quiet, std::string label = {});
  /// Draws at most ten times a second on a terminal, a line every ten seconds elsewhere. `rest`:
  /// loss, rate and so on.
  void update(int64_t done, double rate, const std::string& rest);
  /// A separate line that stays.
  void say(const std::string& line);
  /// On stderr, even when quiet.
  void warn(const std::string& line);
  void finish();
  /// Is it time to draw? Drawing may have to wait for the device.
  bool due() const;

 private:
  int64_t total_;
  std::string unit_, label_;
  bool quiet_, terminal_, drawn_ = false;
  double start_, last_ = 0;
  int64_t first_ = -1;
};

}  // namespace ingot::cli
