// Callbacks for when the host has waited for a device. A check that costs nothing then would need a
// separate wait elsewhere.
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
