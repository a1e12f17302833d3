#include "graph/layer_log.h"

#include "graph/thread_state.h"

namespace ingot {

LayerLog& layer_log() { return thread_lists().layers; }

std::string layer_of(const std::vector<LayerCall>& calls, uint64_t seq) {
  for (const LayerCall& c : calls)
    if (c.first <= seq && seq < c.last) return c.path;
  return "";
}

}  // namespace ingot
