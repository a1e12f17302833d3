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

bool has_attention(const Node& q, const Node& k, const Node& v, const Node* bias, bool causal,
                   double scale) {
  return engine().attention(q, k, v, bias, causal, scale);
}
bool has_cached_attention(std::span<Node* const> inputs, double scale) {
  return engine().cached_attention(inputs, scale);
}
bool has_lstm(const Node& z, const Node& weight) { return engine().lstm(z, weight); }

}  // namespace ingot
