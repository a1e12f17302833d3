// Who wants to hear that the host has waited for a device: a check that costs nothing then would be
// a wait of its own elsewhere.
#pragma once
#include <functional>
#include <memory>

#include "ingot/device.h"

namespace ingot {

using SyncListener = std::function<void(const Device&)>;
/// Calls the listener whenever this thread has waited for a device, until its last owner lets it
/// go. It may throw.
void on_synchronised(const std::shared_ptr<SyncListener>& listener);
/// This thread has waited for the device.
void synchronised(const Device& device);

}  // namespace ingot
