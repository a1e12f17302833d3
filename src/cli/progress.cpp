#include "progress.h"

#include <algorithm>
#include <cstdio>

#include "cli.h"

namespace ingot::cli {

Progress::Progress(int64_t total, std::string unit, bool quiet, std::string label)
    : total_(total),
      unit_(std::move(unit)),
      label_(std::move(label)),
      quiet_(quiet),
      terminal_(on_terminal()),
      start_(now()),
      last_(label_.empty() ? 0 : start_) {}  // a labelled line among many waits its turn

bool Progress::due() const { return !quiet_ && now() - last_ >= (terminal_ ? 0.1 : 10.0); }

void Progress::update(int64_t done, double rate, const std::string& rest) {
  if (first_ < 0) first_ = done - 1;
  if (quiet_ || (!due() && (done < total_ || !label_.empty()))) return;
  last_ = now();
  const double per_step =
      (last_ - start_) / static_cast<double>(std::max<int64_t>(1, done - first_));
  const std::string left = done < total_
                               ? time_text(per_step * static_cast<double>(total_ - done)) + " left"
                               : "in " + time_text(last_ - start_);
  const std::string name = label_.empty() ? "" : label_ + "  ";
  const std::string tail = format(" %lld/%lld  %s%s/s  %s  %s", static_cast<long long>(done),
                                  static_cast<long long>(total_), rate_text(rate).c_str(),
                                  unit_.c_str(), left.c_str(), rest.c_str());
  if (!terminal_) {
    std::printf("%s%3.0f %%%s\n", name.c_str(),
                100.0 * static_cast<double>(done) / static_cast<double>(total_), tail.c_str());
    std::fflush(stdout);
    return;
  }
  // The bar fills the space left by the figures; eighths of a column make it move smoothly.
  const int room =
      std::clamp(terminal_width() - static_cast<int>(tail.size() + name.size()) - 2, 0, 30);
  const auto eighths =
      static_cast<int>(8.0 * room * static_cast<double>(done) / static_cast<double>(total_));
  const char* part[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += part[eighths % 8];
  const int used = eighths / 8 + (eighths % 8 != 0);
  bar += std::string(static_cast<size_t>(std::max(0, room - used)), ' ');
  const auto left_over = static_cast<int>(name.size()) + room + 1;
  std::printf(
      "\r%s%s%s\033[K", name.c_str(), bar.c_str(),
      tail.substr(0, static_cast<size_t>(std::max(10, terminal_width() - left_over))).c_str());
  std::fflush(stdout);
  drawn_ = true;
}

void Progress::say(const std::string& line) {
  if (quiet_ || !label_.empty()) return;
  std::printf("%s%s\n", drawn_ ? "\r\033[K" : "", line.c_str());
  std::fflush(stdout);
  drawn_ = false;
}

void Progress::warn(const std::string& line) {
  if (drawn_) std::printf("\r\033[K");
  std::fflush(stdout);
  std::fprintf(stderr, "ingot: %s\n", printable(line).c_str());
  drawn_ = false;
}

void Progress::finish() {
  if (drawn_) std::printf(label_.empty() ? "\n" : "\r\033[K");
  drawn_ = false;
  std::fflush(stdout);
}

}  // namespace ingot::cli
