#include "graph/sync.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "graph/thread_state.h"

namespace ingot {

void on_synchronised(const std::shared_ptr<SyncListener>& listener) {
  auto& listeners = thread_lists().listeners;
  std::erase_if(listeners, [](const auto& l) { return l.expired(); });
  listeners.push_back(listener);
}

void synchronised(const Device& device) {
  if (thread_lists().listeners.empty()) return;
  const auto now = thread_lists().listeners;  // a listener may add others
  for (const auto& weak : now)
    if (const std::shared_ptr<SyncListener> listener = weak.lock()) (*listener)(device);
}

}  // namespace ingot
