// The line that moves while something trains; plain lines where there is no terminal.
#pragma once
#include <cstdint>
#include <string>

namespace ingot::cli {

class Progress {
 public:
  /// quiet: nothing but warnings. label: what stands in front of each line; then say() says
  /// nothing.
  Progress(int64_t total, std::string unit, bool quiet, std::string label = {});
  /// Draws at most ten times a second on a terminal, a line every ten seconds elsewhere. `rest`:
  /// loss, rate and so on.
  void update(int64_t done, double rate, const std::string& rest);
  /// A line of its own that stays.
  void say(const std::string& line);
  /// On stderr, however quiet.
  void warn(const std::string& line);
  void finish();
  /// Is it time to draw? What is drawn may cost a wait for the device.
  bool due() const;

 private:
  int64_t total_;
  std::string unit_, label_;
  bool quiet_, terminal_, drawn_ = false;
  double start_, last_ = 0;
  int64_t first_ = -1;
};

}  // namespace ingot::cli
