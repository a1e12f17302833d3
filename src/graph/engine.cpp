#include "graph/engine.h"

namespace ingot {

Engine& engine() {
  static Engine& made = make_engine();
  return made;
}

void materialise(std::span<Node* const> nodes, const SourceLoc&) { engine().run(nodes); }
void run_pending() { engine().run_pending(); }
void flush_if_due(Recorder& r) { engine().flush(r); }
void check_runs(Device device, bool wait) { engine().check(device, wait); }

}  // namespace ingot
