#include "graph/sync.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace ingot {
namespace {

std::vector<std::weak_ptr<SyncListener>>& listeners() {
  thread_local std::vector<std::weak_ptr<SyncListener>> all;
  return all;
}

}  // namespace

void on_synchronised(const std::shared_ptr<SyncListener>& listener) {
  std::erase_if(listeners(), [](const auto& l) { return l.expired(); });
  listeners().push_back(listener);
}

void synchronised(const Device& device) {
  if (listeners().empty()) return;
  const std::vector<std::weak_ptr<SyncListener>> now = listeners();  // a listener may add others
  for (const auto& weak : now)
    if (const std::shared_ptr<SyncListener> listener = weak.lock()) (*listener)(device);
}

}  // namespace ingot
