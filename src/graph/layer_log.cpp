#include "graph/layer_log.h"

namespace ingot {

LayerLog& layer_log() {
  thread_local LayerLog log;
  return log;
}

std::string layer_of(const std::vector<LayerCall>& calls, uint64_t seq) {
  for (const LayerCall& c : calls)
    if (c.first <= seq && seq < c.last) return c.path;
  return "";
}

}  // namespace ingot
