// Devices are values, and may name what is not there: this is asked before one is used.
#pragma once
#include "runtime/backend.h"

namespace ingot {

/// The backend of a device that is there; throws Error(Device), saying why, when it is not.
Backend& require_device(Device device);

}  // namespace ingot
