// See signals.h. The handler only records the signal's number; for the second signal the default
// action is back in place.
#include "io/signals.h"

#include <csignal>
#include <mutex>

namespace ingot::io {
namespace {

volatile std::sig_atomic_t pending = 0;
constexpr int kSignals[] = {SIGTERM, SIGINT};

void note(int number) { pending = number; }

struct Watch {
  std::mutex mutex;
  int watchers = 0;
  bool ours[2] = {};
};
Watch& watch() {
  static Watch* w = new Watch;
  return *w;
}

}  // namespace

void watch_signals() {
  Watch& w = watch();
  std::lock_guard lock(w.mutex);
  if (w.watchers++) return;
  for (int i = 0; i < 2; ++i) {
    struct sigaction old {};
    sigaction(kSignals[i], nullptr, &old);
    if ((old.sa_flags & SA_SIGINFO) || old.sa_handler != SIG_DFL) continue;
    struct sigaction mine {};
    mine.sa_handler = note;
    mine.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    sigemptyset(&mine.sa_mask);
    w.ours[i] = sigaction(kSignals[i], &mine, nullptr) == 0;
  }
}

void unwatch_signals() {
  Watch& w = watch();
  std::lock_guard lock(w.mutex);
  if (--w.watchers) return;
  for (int i = 0; i < 2; ++i) {
    struct sigaction now {};
    sigaction(kSignals[i], nullptr, &now);
    if (w.ours[i] && now.sa_handler == note) std::signal(kSignals[i], SIG_DFL);
    w.ours[i] = false;
  }
}

int pending_signal() { return pending; }

}  // namespace ingot::io
