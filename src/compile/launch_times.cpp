#include "compile/launch_times.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include "base/env.h"
#include "base/fork.h"
#include "compile/describe.h"
#include "graph/layer_log.h"
#include "graph/thread_state.h"
#include "ingot/error.h"
#include "ingot/profile.h"

namespace ingot {
namespace {

struct Log {
  ForkMutex<ForkOrder::Small> mutex;
  std::vector<LaunchTime> launches;
  double begin = 0;
};
Log& profile_log() {
  static Log* log = new Log;
  return *log;
}
std::atomic<bool> profiling{false};

}  // namespace

DryRun::DryRun() : previous_(std::exchange(this_thread.dry_run, true)) {
  if (!previous_) clear_dry_runs();
  ++layer_log().wanted;
}
DryRun::~DryRun() {
  this_thread.dry_run = previous_;
  if (--layer_log().wanted == 0) layer_log().calls.clear();
  if (!previous_) clear_dry_runs();
}

double clock_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool launches_are_timed() {
  return profiling.load(std::memory_order_relaxed) || env::debug("time");
}

void report_launch_times(std::span<const Step> steps, double start, const std::vector<double>& us) {
  const bool debug = env::debug("time"), logged = profiling.load(std::memory_order_relaxed);
  Log& log = profile_log();
  std::lock_guard lock(log.mutex);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& s = steps[i];
    DeviceRates rates = backend_for(s.device.type())->rates(s.device.index());
    if (debug)
      std::fprintf(stderr, "[ingot time] %10.1f us, floor %10.1f  %s\n", us[i],
                   predicted_seconds(s, rates) * 1e6, s.label.substr(0, 120).c_str());
    if (logged)
      log.launches.push_back({s.label, kind_name(s), s.device, start - log.begin, us[i],
                              s.bytes_read + s.bytes_written, s.flops,
                              1e6 * memory_seconds(s, rates), 1e6 * compute_seconds(s, rates)});
    start += us[i];
  }
}

Profile::Profile(SourceLoc loc) {
  if (profiling.exchange(true))
    throw Error(ErrorKind::State, "Profile", "another Profile is active already", user_loc(loc),
                "end it first");
  Log& log = profile_log();
  std::lock_guard lock(log.mutex);
  log.launches.clear();
  log.begin = clock_us();
}

Profile::~Profile() { profiling = false; }

std::vector<LaunchTime> Profile::launches() const {
  Log& log = profile_log();
  std::lock_guard lock(log.mutex);
  return log.launches;
}

double Profile::now_us() const { return clock_us() - profile_log().begin; }

}  // namespace ingot
