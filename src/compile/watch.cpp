#include "compile/watch.h"

#include <mutex>
#include <utility>

#include "base/fork.h"

namespace ingot {
namespace {

struct Watched {
  Device device;
  uint64_t ticket;
  std::vector<CheckSite> sites;
  RunStatus status;
  bool answered = false;

  bool ask(bool wait) {
    if (!answered)
      answered = backend_for(device.type())->poll(device.index(), ticket, wait, status);
    return answered;
  }
};
struct Watch {
  ForkMutex<ForkOrder::Plans> mutex;
  std::vector<Watched> runs;
};
Watch& watch() {
  static Watch* w = new Watch;
  return *w;
}

}  // namespace

void watch_run(Device d, uint64_t ticket, std::vector<CheckSite> sites) {
  Watched w{d, ticket, std::move(sites), {}, false};
  std::lock_guard lock(watch().mutex);
  // A loop that never asks for a value must not pile them up.
  if (watch().runs.size() >= 32)
    std::erase_if(watch().runs, [](Watched& r) { return r.ask(false) && !r.status.code; });
  watch().runs.push_back(std::move(w));
}

void check_watched(Device device, bool wait) {
  Watch& w = watch();
  std::lock_guard lock(w.mutex);
  for (size_t i = 0; i < w.runs.size();) {
    if (w.runs[i].device != device || !w.runs[i].ask(wait)) {
      ++i;
      continue;
    }
    Watched done = std::move(w.runs[i]);
    w.runs.erase(w.runs.begin() + static_cast<int64_t>(i));
    if (done.status.code) throw failure_of(done.status, done.sites);
  }
}

}  // namespace ingot
