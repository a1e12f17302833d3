// The context of an error: nn reports here which layer's forward() is running, so that every
// error raised inside names it.
#pragma once
#include <string>

namespace ingot {

/// The layer this thread is in ("fc1 (Linear) of Net"), or "". Null until nn has set it.
extern std::string (*current_layer)();

}  // namespace ingot
